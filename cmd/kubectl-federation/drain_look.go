package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// left is what a drain of the cluster waits for.
func (o *drainCommand) left(ctx context.Context, c *v1beta1.Cluster) ([]remainder, error) {
	all, err := o.there(ctx, c)
	return leftover(all), err
}

// there is how every object stands in the cluster that is placed or has a copy there. Of a cluster that is
// not ready only what is placed is known, and what was there is lost: that does not hold up a drain.
func (o *drainCommand) there(ctx context.Context, c *v1beta1.Cluster) ([]remainder, error) {
	stay, err := o.tolerating(ctx)
	if err != nil {
		return nil, err
	}
	uid, err := o.uid(ctx)
	if err != nil {
		return nil, err
	}
	var all []remainder
	for i := range divided {
		w := &divided[i]
		found := map[string]*remainder{}
		if err := o.placed(ctx, w, c.Name, stay, found); err != nil {
			return nil, err
		}
		if c.IsReady() {
			o.copies(ctx, w, c.Name, uid, found)
		}
		for _, r := range found {
			all = append(all, *r)
		}
	}
	return all, ctx.Err() // what was cut off by the end looks as if it were empty
}

// placed notes what is placed in the cluster. An older federation does not serve each kind.
func (o *drainCommand) placed(ctx context.Context, w *workload, cluster string, stay map[string]bool, found map[string]*remainder) error {
	note := func(item metav1.Object, finished bool) {
		p := v1beta1.ParsePlacement(item.GetAnnotations()[v1beta1.PlacementAnnotation])
		if p == nil || p.Clusters[cluster]+p.Overflow[cluster] == 0 {
			return
		}
		found[item.GetNamespace()+"/"+item.GetName()] = &remainder{
			Kind: w.kind, Namespace: item.GetNamespace(), Name: item.GetName(),
			Placed: p.Clusters[cluster], Stays: stay[item.GetNamespace()+"/"+p.Policy], Finished: finished,
		}
	}
	var err error
	if w.kind == "Job" { // whether it is finished is in its status
		err = list(ctx, o.dyn.Resource(w.resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			note(u, v1beta1.JobEnd(u) != "")
			return nil
		})
	} else {
		err = o.listMetadata(ctx, w.resource, func(item metav1.Object) { note(item, false) })
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// copies notes what is in the cluster. Where it cannot be read, that is said once, and what the federation
// itself says has to do.
func (o *drainCommand) copies(ctx context.Context, w *workload, cluster, uid string, found map[string]*remainder) {
	err := o.members.list(ctx, cluster, w.resource, "", v1beta1.ManagedByLabel+"="+uid, func(u *unstructured.Unstructured) {
		key := u.GetNamespace() + "/" + u.GetName()
		r := found[key]
		if r == nil {
			r = &remainder{Kind: w.kind, Namespace: u.GetNamespace(), Name: u.GetName()}
			found[key] = r
		}
		r.There, _, _ = unstructured.NestedInt64(u.Object, "spec", w.specField)
		r.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", w.readyField)
		r.Finished = r.Finished || v1beta1.JobEnd(u) != ""
	})
	if err != nil && ctx.Err() == nil && !o.blind {
		o.blind = true
		tell(o.ErrOut, "what is in cluster %s cannot be read (%v): going by what is placed there\n", cluster, err)
	}
}

// tolerating has NAMESPACE/NAME of the policies whose objects a drain leaves where they are.
func (o *drainCommand) tolerating(ctx context.Context) (map[string]bool, error) {
	policies, err := o.policies(ctx, "")
	if err != nil {
		return nil, err
	}
	stay := map[string]bool{}
	for _, p := range policies {
		if tolerated(p.Spec.Tolerations, drainTaint) {
			stay[p.Namespace+"/"+p.Name] = true
		}
	}
	return stay, nil
}

func tolerated(by []corev1.Toleration, taint corev1.Taint) bool {
	for i := range by {
		if by[i].TolerationSeconds == nil && by[i].ToleratesTaint(klog.Background(), &taint, false) {
			return true
		}
	}
	return false
}

// whyLeft has, for the objects that are shown, what the federation says of them.
func (o *drainCommand) whyLeft(ctx context.Context, objects []remainder) map[string]string {
	why := map[string]string{}
	for _, r := range objects[:min(len(objects), maxWaits)] {
		for _, w := range divided {
			if w.kind != r.Kind {
				continue
			}
			u, err := o.dyn.Resource(w.resource).Namespace(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
			if err == nil {
				why[r.name()] = strings.TrimSpace(notPropagated(u))
			}
		}
	}
	return why
}
