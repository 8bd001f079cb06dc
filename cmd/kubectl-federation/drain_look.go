package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	drainplan "federation/controllers/drain/plan"
	failoverplan "federation/controllers/failover/plan"
)

// clusterContents is what is known of a cluster.
type clusterContents struct {
	// objects are those that are placed or have a copy there.
	objects []remainder
	// unknown is why it is unknown what runs there, or "".
	unknown string
	// reported: without permission to read the cluster, the federation's report must do.
	reported bool
}

// contentsOf returns the state of each object that is placed in the cluster or has a copy there. In a lost cluster only
// placed ones count.
func (o *drainCommand) contentsOf(ctx context.Context, c *v1beta1.Cluster) (s clusterContents, err error) {
	policies, err := o.policies(ctx, "")
	if err != nil {
		return s, err
	}
	stay := toleratingPolicies(policies)
	uid, err := o.uid(ctx)
	if err != nil {
		return s, err
	}
	workloads := append(slices.Clone(divided), o.customWorkloads(policies)...)
	for i := range workloads {
		w := &workloads[i]
		found := map[string]*remainder{}
		if err := o.recordPlaced(ctx, w, c.Name, stay, found); err != nil {
			return s, err
		}
		if !isFailedOver(c) {
			if err := o.recordRunning(ctx, w, c.Name, uid, found, &s); err != nil {
				return s, err
			}
		}
		for _, r := range found {
			s.objects = append(s.objects, *r)
		}
	}
	return s, ctx.Err() // an interrupted read looks as if the cluster were empty
}

// isFailedOver reports whether failover has given up what ran in the cluster: it has not been ready for longer than the grace
// period, or never was. A cluster that answers and rejects the federation is not lost.
func isFailedOver(c *v1beta1.Cluster) bool {
	ready := c.Condition(v1beta1.ClusterReady)
	if c.IsReached() || ready != nil && failoverplan.Unclear(ready.Reason) {
		return false
	}
	return c.Status.Failover == nil || c.Phase() == v1beta1.PhaseFailedOver || c.Phase() == v1beta1.PhaseFailoverSuspended
}

// recordPlaced records what is placed in the cluster. An older federation does not serve each kind.
func (o *drainCommand) recordPlaced(ctx context.Context, w *workload, cluster string, stay map[string]bool, found map[string]*remainder) error {
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
		err = listPages(ctx, o.dyn.Resource(w.resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
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

// recordRunning records what is in the cluster or, without permission to read it, what the federation reports of it. If
// neither can be read, what runs there is unknown.
func (o *drainCommand) recordRunning(ctx context.Context, w *workload, cluster, uid string, found map[string]*remainder, s *clusterContents) error {
	err := o.recordCopies(ctx, w, cluster, uid, found)
	if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil { // a custom kind need not be served there
		return nil
	}
	if !apierrors.IsForbidden(err) {
		s.unknown = fmt.Sprintf("%ss cannot be read: %v", w.kind, err)
		return nil
	}
	s.reported = true
	if !o.blind {
		o.blind = true
		tell(o.ErrOut, "what is in cluster %s cannot be read (%v): going by what the federation reports of it\n", cluster, err)
	}
	return o.recordReported(ctx, w, cluster, found)
}

// recordCopies records what is in the cluster.
func (o *drainCommand) recordCopies(ctx context.Context, w *workload, cluster, uid string, found map[string]*remainder) error {
	return o.members.list(ctx, cluster, w.resource, "", v1beta1.ManagedByLabel+"="+uid, func(u *unstructured.Unstructured) {
		if !v1beta1.IsCopy(u, schema.GroupKind{Group: w.resource.Group, Kind: w.kind}, uid) {
			return // somebody's own object with our labels
		}
		r := remainderOf(w, u, found)
		r.There, _, _ = unstructured.NestedInt64(u.Object, "spec", w.specField)
		r.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", w.readyField)
		r.Finished = r.Finished || v1beta1.JobEnd(u) != ""
	})
}

func remainderOf(w *workload, u *unstructured.Unstructured, found map[string]*remainder) *remainder {
	key := u.GetNamespace() + "/" + u.GetName()
	if found[key] == nil {
		found[key] = &remainder{Kind: w.kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	}
	return found[key]
}

// recordReported records what the condition Propagated of each object says of the cluster. It names ten clusters at most: if
// it leaves some out, this one may be among them. An object that is as desired everywhere has its placed replicas
// ready, if it is ready as a whole.
func (o *drainCommand) recordReported(ctx context.Context, w *workload, cluster string, found map[string]*remainder) error {
	err := listPages(ctx, o.dyn.Resource(w.resource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		says := notPropagated(u)
		_, named := byCluster(&condition{Message: says})[cluster]
		ready, _, _ := unstructured.NestedInt64(u.Object, "status", w.readyField)
		wanted, _, _ := unstructured.NestedInt64(u.Object, "spec", w.specField)
		switch key := u.GetNamespace() + "/" + u.GetName(); {
		case named || strings.Contains(says, "; and "):
			remainderOf(w, u, found).Unsettled = true
		case found[key] != nil && ready >= wanted:
			found[key].There, found[key].Ready = found[key].Placed, found[key].Placed
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// customWorkloads returns the custom kinds that policies divide. A kind that is not served has no objects. Each is
// queried once.
func (o *drainCommand) customWorkloads(policies []*v1beta1.PlacementPolicy) (all []workload) {
	if o.found == nil {
		o.found = map[string]schema.GroupVersionResource{}
	}
	for _, p := range policies {
		for _, sel := range p.Spec.ResourceSelectors {
			gv, err := schema.ParseGroupVersion(sel.APIVersion)
			if err != nil || p.Spec.ReplicaPreferences == nil {
				continue
			}
			word := strings.TrimSuffix(sel.Kind+"."+gv.Group, ".")
			r, there := o.found[word]
			if !there {
				if r, _, err = o.resource(word); err != nil {
					continue
				}
				o.found[word] = r
			}
			known := slices.ContainsFunc(all, func(w workload) bool { return w.resource == r })
			if !known && v1beta1.FederatedKindOf(r.GroupResource()) == nil {
				all = append(all, workload{r, sel.Kind, "replicas", "readyReplicas"})
			}
		}
	}
	return all
}

// toleratingPolicies has NAMESPACE/NAME of the policies whose objects a drain leaves in place.
func toleratingPolicies(policies []*v1beta1.PlacementPolicy) map[string]bool {
	stay := map[string]bool{}
	for _, p := range policies {
		if isTolerated(p.Spec.Tolerations, drainplan.Taint) {
			stay[p.Namespace+"/"+p.Name] = true
		}
	}
	return stay
}

func isTolerated(by []corev1.Toleration, taint corev1.Taint) bool {
	for i := range by {
		if by[i].TolerationSeconds == nil && by[i].ToleratesTaint(klog.Background(), &taint, false) {
			return true
		}
	}
	return false
}

// whyLeft has the federation's messages about the printed objects.
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
