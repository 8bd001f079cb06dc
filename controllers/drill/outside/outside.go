// Package outside is what somebody outside of the federation's processes can do with drills: say whether one would be allowed now, and take
// one to its end when no process is left that could. It runs the function that the federation runs, on what a client sees.
package outside

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/clusterregistry/isolation"
	"federation/controllers/drill/plan"
)

// ReadWorld returns the input of drills, as far as a client sees it: without the DNS servers' answers, and the
// federation's isolation.
func ReadWorld(ctx context.Context, f *client.Federation) (*plan.World, error) {
	w := &plan.World{Now: time.Now()}
	var err, listErr error
	note := func(e error) { err = errors.Join(err, e) }
	w.Clusters, listErr = client.ReadAll[v1beta1.Cluster](ctx, f.Dynamic.Resource(v1beta1.ClustersResource))
	note(listErr)
	w.Drills, listErr = client.ReadAll[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource))
	note(listErr)
	budgets, listErr := f.Kube.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if note(listErr); listErr == nil {
		for i := range budgets.Items {
			w.AddBudget(&budgets.Items[i])
		}
	}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		note(client.ListPages(ctx, f.Dynamic.Resource(k.Resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			if u.GetDeletionTimestamp() == nil {
				w.Add(new(plan.ReadObject(u)))
			}
			return nil
		}))
	}
	note(addStanding(ctx, f, w))
	return w, err
}

// addStanding adds the state in the federation's own namespace: the stop switch, the providers, and the Lease that
// isolates.
func addStanding(ctx context.Context, f *client.Federation, w *plan.World) error {
	namespace, err := f.Kube.CoreV1().Namespaces().Get(ctx, v1beta1.FederationNamespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.Stopped = plan.StoppedBy(namespace.Annotations)
	providers, err := f.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		if w.Providers, err = v1beta1.ReadDNSProviders(providers.Data); err != nil {
			return err
		}
	}
	lease, err := f.Kube.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(ctx, v1beta1.DrillLease, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	w.Lease = leaseOf(lease)
	return nil
}

func leaseOf(lease *coordinationv1.Lease) plan.Lease {
	drill, _, renewed := isolation.Read(lease)
	return plan.Lease{Drill: drill, Renewed: renewed}
}

// Verdict says whether a drill of a method would be allowed now: it would if there is no reason against it.
type Verdict struct {
	Method          v1beta1.DrillMethod
	Reason, Message string
}

// MayBegin says for each method whether a drill of some clusters would be allowed now. lost is the review of their loss.
func MayBegin(ctx context.Context, f *client.Federation, lost *v1beta1.FailoverReview) (all []Verdict, err error) {
	w, err := ReadWorld(ctx, f)
	if err != nil {
		return nil, err
	}
	spec := lost.Spec
	spec.Drained = true
	drained, err := f.Review(ctx, spec)
	if err != nil {
		return nil, err
	}
	for _, d := range w.Drills {
		if !d.IsFinished() {
			w.Other = d.Name
		}
	}
	for _, method := range []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation} {
		w.Review = &drained.Status
		if method == v1beta1.DrillIsolation {
			w.Review = &lost.Status
		}
		v := Verdict{Method: method}
		v.Reason, v.Message = plan.Preflight(&v1beta1.FailoverDrill{Spec: v1beta1.FailoverDrillSpec{Method: method}}, w)
		all = append(all, v)
	}
	return all, nil
}
