package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// statusPause is the delay that batches changes into one write of a policy's status.
const statusPause = time.Second

// tally counts the objects that policies govern.
type tally struct {
	sync.Mutex
	governs map[key]types.NamespacedName
	objects map[types.NamespacedName]int32
}

// recordGoverning records which policy governs an object; "" for none.
func (c *Controller) recordGoverning(k key, policy string) {
	c.tally.Lock()
	defer c.tally.Unlock()
	was, is := c.tally.governs[k], types.NamespacedName{}
	if policy != "" {
		is = types.NamespacedName{Namespace: k.Namespace, Name: policy}
	}
	if was == is {
		return
	}
	if c.tally.objects == nil {
		c.tally.objects = map[types.NamespacedName]int32{}
	}
	delete(c.tally.governs, k)
	if was.Name != "" {
		if c.tally.objects[was]--; c.tally.objects[was] == 0 {
			delete(c.tally.objects, was)
		}
		c.policies.AddAfter(was, statusPause)
	}
	if is.Name != "" {
		c.tally.governs[k] = is
		c.tally.objects[is]++
		c.policies.AddAfter(is, statusPause)
	}
}

// recordTogether enqueues a policy whose status does not say yet where all that it governs is.
func (c *Controller) recordTogether(i *item, d *scheduler.Decision) {
	if d.Together == nil {
		return
	}
	if p := c.state.world.Policy(&i.Object); p != nil && !slices.Equal(p.Status.Clusters, d.Together) {
		c.policies.AddAfter(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, gather)
	}
}

// together returns where a policy keeps all that it governs, as the deciding goroutine sees it, and has it reported again when that
// may change by time alone. ok is false if it does not keep it together.
func (c *Controller) together(p *v1beta1.PlacementPolicy) (clusters, home []string, ok bool) {
	if p.Spec.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return nil, nil, false
	}
	w := scheduler.NewWorld(c.joinedClusters(), []*v1beta1.PlacementPolicy{p})
	w.Grace = c.GracePeriod
	clusters, home, holds, ok := w.Together(p, time.Now())
	if holds > 0 {
		c.policies.AddAfter(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, holds)
	}
	return clusters, home, ok
}

func (t *tally) count(policy types.NamespacedName) int32 {
	t.Lock()
	defer t.Unlock()
	return t.objects[policy]
}

// reportPoliciesOf enqueues the policies that name a kind whose state changed.
func (c *Controller) reportPoliciesOf(kind schema.GroupKind) {
	for _, obj := range c.Informers(v1beta1.PoliciesResource).GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		for _, r := range readPolicy(u).Spec.ResourceSelectors {
			if schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind() == kind {
				c.policies.AddAfter(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, statusPause)
			}
		}
	}
}

// reportPolicies enqueues all policies: clusters have come or gone, or forbid other kinds.
func (c *Controller) reportPolicies() {
	for _, name := range c.objectNames(v1beta1.PoliciesResource, "") {
		c.policies.AddAfter(name, statusPause)
	}
}

// reportTogether enqueues the policies that keep all that they govern together, whether they govern anything or not: what a cluster can
// be used for has changed.
func (c *Controller) reportTogether() {
	for _, obj := range c.Informers(v1beta1.PoliciesResource).GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if affinity, _, _ := unstructured.NestedString(u.Object, "spec", "workloadAffinity"); affinity == string(v1beta1.WorkloadAffinityRequired) {
			c.policies.AddAfter(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, gather)
		}
	}
}

// reportPolicy writes the status of a policy if it changed: how many objects it governs, and whether all its kinds can
// be spread.
func (c *Controller) reportPolicy(ctx context.Context, name types.NamespacedName) error {
	obj, ok, err := c.Informers(v1beta1.PoliciesResource).GetStore().GetByKey(name.String())
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u == nil {
		return err
	}
	p := readPolicy(u)
	status := p.Status.DeepCopy()
	status.ObservedGeneration = p.Generation
	if c.kinds.areCounted(p) {
		status.Objects = c.tally.count(name)
	}
	if clusters, home, ok := c.together(p); !ok || len(clusters) > 0 {
		status.Clusters, status.Home = clusters, home // if none can be used, all stays
	}
	changed := meta.SetStatusCondition(&status.Conditions, c.acceptedCondition(p))
	if !changed && status.ObservedGeneration == p.Status.ObservedGeneration && status.Objects == p.Status.Objects &&
		slices.Equal(status.Clusters, p.Status.Clusters) && slices.Equal(status.Home, p.Status.Home) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{
		"observedGeneration": status.ObservedGeneration, "objects": status.Objects, "conditions": status.Conditions, // 0 is written, too
		"clusters": status.Clusters, "home": status.Home,
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = c.Client.Resource(v1beta1.PoliciesResource).Namespace(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "federation-placement"}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot write the status of a policy; will retry", "policy", name)
	}
	return err
}

// acceptedCondition returns the condition whether the federation can do what a policy asks for. It names clusters that forbid a
// kind, and names of clusters that do not exist.
func (c *Controller) acceptedCondition(p *v1beta1.PlacementPolicy) metav1.Condition {
	var not, nowhere, partly []string
	clusters := c.joinedClusters()
	for i, r := range p.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		field := fmt.Sprintf("spec.resourceSelectors[%d]: %s %s: ", i, r.APIVersion, r.Kind)
		if err := c.servedError(kind); err != nil {
			not = append(not, field+err.Error())
			continue
		}
		switch why, all := c.forbiddingClusters(p, kind, clusters); {
		case all:
			nowhere = append(nowhere, field+why)
		case why != "":
			partly = append(partly, field+why)
		}
	}
	out := metav1.Condition{Type: v1beta1.PolicyAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", Message: "all kinds can be spread", ObservedGeneration: p.Generation}
	switch {
	case len(not) > 0:
		out.Status, out.Reason = metav1.ConditionFalse, "KindNotServed"
	case len(nowhere) > 0:
		out.Status, out.Reason = metav1.ConditionFalse, "KindForbidden"
	}
	says := slices.Concat(not, nowhere, partly)
	if reason, why := scheduler.Impossible(p, clusters); reason != "" {
		says = append(says, why)
		if out.Status == metav1.ConditionTrue {
			out.Status, out.Reason = metav1.ConditionFalse, reason
		}
	}
	if len(says) == 0 {
		says = []string{out.Message}
	}
	if len(clusters) > 0 {
		says = append(says, p.Spec.Unknown(clusters)...)
	}
	out.Message = strings.Join(says, "; ")
	return out
}

// joinedClusters returns the joined clusters, ready or not.
func (c *Controller) joinedClusters() (all []*v1beta1.Cluster) {
	for _, obj := range c.Informers(v1beta1.ClustersResource).GetStore().List() {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			all = append(all, readCluster(u))
		}
	}
	return all
}

// maxNamed is the maximum of clusters that a condition names.
const maxNamed = 10

// forbiddingClusters returns which of a policy's clusters forbid a kind; nowhere: each of them does.
func (c *Controller) forbiddingClusters(p *v1beta1.PlacementPolicy, kind schema.GroupVersionKind, all []*v1beta1.Cluster) (why string, nowhere bool) {
	resource := c.kinds.resourceOf(kind).GroupResource()
	var by []string
	clusters := 0
	for _, cluster := range all {
		if p.Spec.Clusters.Matches(cluster) {
			clusters++
			if slices.Contains(cluster.Status.InaccessibleResources, resource.String()) {
				by = append(by, cluster.Name)
			}
		}
	}
	if len(by) == 0 {
		return "", false
	}
	slices.Sort(by)
	names := strings.Join(by[:min(maxNamed, len(by))], ", ")
	if more := len(by) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	how := ""
	if v1beta1.FederatedKindOf(resource) == nil {
		how = " with --custom-kinds " + resource.String()
	}
	return fmt.Sprintf("forbidden by %s: join again%s", names, how), len(by) == clusters
}
