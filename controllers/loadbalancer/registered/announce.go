package registered

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// renewEvery is the time between two renewals of a Lease, renewTimeout bounds each.
	renewEvery, renewTimeout = time.Second, 2 * time.Second
	// leaseSeconds is what the Lease says of itself, for people.
	leaseSeconds = 3
)

// Announce keeps the Lease of a load balancer until ctx ends, and then deletes it. says is the value of its annotation, out returns
// that of the one that says which targets are out; "" if none is. Of two with one name, the one that writes last counts: start a new process before
// the old one ends, and the Lease goes on.
func Announce(ctx context.Context, kube kubernetes.Interface, name, identity, says string, out func() string) {
	a := announcer{kube: kube, name: name, identity: identity, says: says, out: out}
	ticks := time.NewTicker(renewEvery)
	defer ticks.Stop()
	failing := false
	for {
		err := a.renew(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot renew the Lease: DNS may leave this load balancer out", "lease", v1beta1.LoadBalancersNamespace+"/"+name)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			a.withdraw(context.WithoutCancel(ctx))
			return
		case <-ticks.C:
		}
	}
}

type announcer struct {
	kube                 kubernetes.Interface
	name, identity, says string
	out                  func() string
	// last is the Lease as written last.
	last *coordinationv1.Lease
}

// renew writes the Lease, or creates it.
func (a *announcer) renew(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	leases := a.kube.CoordinationV1().Leases(v1beta1.LoadBalancersNamespace)
	want := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Annotations: map[string]string{v1beta1.LoadBalancerAnnotation: a.says}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &a.identity, LeaseDurationSeconds: new(int32(leaseSeconds)), RenewTime: new(metav1.NowMicro())},
	}
	if out := a.out(); out != "" {
		want.Annotations[v1beta1.LoadBalancerOutAnnotation] = out
	}
	if a.last == nil {
		if a.last, err = leases.Get(ctx, a.name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			a.last, err = leases.Create(ctx, want, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			a.last = nil
			return err
		}
	}
	want.ResourceVersion = a.last.ResourceVersion
	is, err := leases.Update(ctx, want, metav1.UpdateOptions{})
	if a.last = is; err != nil {
		a.last = nil // it is read again
	}
	return err
}

// withdraw deletes the Lease, unless a new process has it already.
func (a *announcer) withdraw(ctx context.Context) {
	if a.last == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &a.last.ResourceVersion}}
	if err := a.kube.CoordinationV1().Leases(v1beta1.LoadBalancersNamespace).Delete(ctx, a.name, only); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		klog.ErrorS(err, "Cannot delete the Lease, which will run out", "lease", v1beta1.LoadBalancersNamespace+"/"+a.name)
	}
}
