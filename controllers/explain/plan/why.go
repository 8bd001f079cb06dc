package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	customkindsplan "federation/controllers/customkinds/plan"
	propagationplan "federation/controllers/propagation/plan"
	"federation/scheduler"
)

// decision is the placement's decision about one object.
type decision struct {
	reasons map[string][]string
	notes   []string
	policy  *v1beta1.PlacementPolicy
	// everywhere: without a placement it goes to every cluster that its annotation selects.
	everywhere bool
	divided    bool
	keeps      bool // scheduler.Decision's KeepsReplicas
}

// replicaFields returns the fields of spec and status with the number of replicas, and of ready ones; none if they are not
// divided.
func (d *decision) replicaFields(r schema.GroupVersionResource) (spec, ready string) {
	if k := v1beta1.FederatedKindOf(r.GroupResource()); k != nil && k.Preferences != "" {
		return k.Replicas, k.Ready
	}
	if d.divided {
		return "replicas", "readyReplicas"
	}
	return "", ""
}

func (d *decision) policyName() string {
	if d.policy == nil {
		return ""
	}
	return d.policy.Name
}

// replayDecision runs the placement controller's own functions on what was read. It does not know what other objects have taken
// of the room since the clusters reported it.
func replayDecision(e Evidence) decision {
	o, err := scheduler.Read(e.Object)
	if err != nil {
		return decision{reasons: map[string][]string{}, notes: []string{err.Error()}}
	}
	w := scheduler.NewWorld(e.Clusters, e.Policies)
	w.SecretsEverywhere = o.Current != nil && o.Current.Everywhere // counts only if nothing refers to it
	followReferrers(&o, w, e.Referrers)
	d := scheduler.Decide(o, w, e.Now)
	out := decision{reasons: d.Reasons, notes: d.Notes, policy: w.Policy(&o), divided: o.Divided || d.Placement.Inputs != "", keeps: d.KeepsReplicas}
	if d.None {
		named := e.isDefinition() && len(customkindsplan.Wanted([]customkindsplan.Definition{customkindsplan.Read(e.Object)}, e.Policies)) > 0
		out.everywhere = named || v1beta1.FederatedKindOf(e.Resource.GroupResource()) != nil
		out.reasons = explainUngoverned(e, out.everywhere)
	}
	return out
}

// defaultReason explains a cluster's number if no rule has a reason.
func (d *decision) defaultReason(wanted int64) []string {
	switch {
	case d.divided && wanted == 0 && d.keeps:
		return []string{"all replicas are placed in other clusters, and stay there, as rebalance is off: new ones may come here"}
	case d.divided && wanted == 0:
		return []string{"other clusters have all replicas, by weight and what they have already"}
	case wanted > 0:
		return []string{"it goes to every cluster that may be used"}
	}
	return []string{"it is not placed there"}
}

// followReferrers lets an object go where its referrers go, if they take it along.
func followReferrers(o *scheduler.Object, w *scheduler.World, referrers []*unstructured.Unstructured) {
	with := *w
	with.SecretsEverywhere = false // the object decides whether that takes it along
	var from []scheduler.Reach
	for _, u := range referrers {
		r, err := scheduler.Read(u)
		if err != nil || u.GetDeletionTimestamp() != nil {
			continue
		}
		if slices.Contains(with.References(&r), v1beta1.Reference{Kind: o.Kind, Name: o.Name}) {
			from, o.Followed = append(from, with.Reach(&r, scheduler.Standing(&r))), append(o.Followed, r.Kind+" "+r.Name)
		}
	}
	if from != nil {
		slices.Sort(o.Followed)
		o.Follow = scheduler.Follow(from)
	}
	if w.SecretsEverywhere && o.Follow != nil && !o.Follow.Everywhere {
		o.Follow, o.Followed = nil, nil // it goes everywhere for another reason
	}
}

// explainUngoverned explains where an object without a rule goes.
func explainUngoverned(e Evidence, everywhere bool) map[string][]string {
	reasons := map[string][]string{}
	_, selecting := e.Object.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	for _, c := range e.Clusters {
		switch {
		case !everywhere:
			reasons[c.Name] = []string{"no policy names the kind: it goes nowhere"}
		case c.RefusesNamespace(e.Object.GetNamespace()) != "":
			reasons[c.Name] = []string{c.RefusesNamespace(e.Object.GetNamespace())}
		case e.isDefinition():
			reasons[c.Name] = []string{"a policy names the kind: its definition goes to every cluster"}
		case !selecting:
			reasons[c.Name] = []string{"no policy selects it: it goes to every cluster"}
		case propagationplan.Selected(e.Object, c.Labels):
			reasons[c.Name] = []string{"its annotation " + v1beta1.ClusterSelectorAnnotation + " selects the cluster"}
		default:
			reasons[c.Name] = []string{"its annotation " + v1beta1.ClusterSelectorAnnotation + " does not select the cluster"}
		}
	}
	return reasons
}

// desiredNow returns what propagation wants in a cluster.
func (e *Evidence) desiredNow(c *v1beta1.Cluster) propagationplan.Desired {
	siblings := map[string]*unstructured.Unstructured{}
	for name, a := range e.Copies {
		if a.Copy != nil && name != c.Name {
			siblings[name] = a.Copy
		}
	}
	t := e.targetOf(c)
	t.Siblings, t.Scaled = siblings, e.isAutoscaled(c)
	return propagationplan.Desire(e.sourceOf(e.kindOf(), e.Object), t)
}

func (e *Evidence) targetOf(c *v1beta1.Cluster) propagationplan.Target {
	return propagationplan.Target{Cluster: c, Federation: e.UID, Have: e.Copies[c.Name].Copy}
}

// sourceOf returns an object with the policy that governs it.
func (e *Evidence) sourceOf(kind *propagationplan.Kind, u *unstructured.Unstructured) propagationplan.Source {
	s := propagationplan.Source{Kind: kind, Object: u, Placement: propagationplan.Read(u)}
	if s.Placement != nil {
		i := slices.IndexFunc(e.Policies, func(p *v1beta1.PlacementPolicy) bool { return p.Name == s.Placement.Policy })
		if i >= 0 {
			s.Policy = e.Policies[i]
		}
	}
	return s
}

// isAutoscaled reports whether an autoscaler of the federation scales the object in a cluster.
func (e *Evidence) isAutoscaled(c *v1beta1.Cluster) bool {
	return slices.ContainsFunc(e.Autoscalers, func(u *unstructured.Unstructured) bool {
		return e.sourceOf(AutoscalerKind, u).Comes(propagationplan.Target{Cluster: c, Federation: e.UID})
	})
}

// isDefinition: the object is a CustomResourceDefinition.
func (e *Evidence) isDefinition() bool {
	return e.Resource.GroupResource() == propagationplan.CustomResourceDefinitions.Resource.GroupResource()
}

// kindOf returns the object's kind in the table of propagated kinds, which has no custom kinds.
func (e *Evidence) kindOf() *propagationplan.Kind {
	if row := propagationplan.KindOf(e.Resource); row != nil {
		return row
	}
	custom := propagationplan.CustomKind(e.Resource, e.Object.GetKind())
	return &custom
}

// inSync reports whether a copy was applied as it should be now. Further differences are drift, which is corrected at
// once, or the member's own defaults.
func inSync(wish propagationplan.Desired, copy *unstructured.Unstructured) bool {
	return wish.Presence == propagationplan.Undecided || wish.Kept || copy.GetAnnotations()[v1beta1.AppliedHashAnnotation] == wish.Hash
}
