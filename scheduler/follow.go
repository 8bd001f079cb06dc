package scheduler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Reach is where an object goes.
type Reach struct {
	// Everywhere: to every cluster, including those that join later.
	Everywhere bool
	// Clusters that it goes to, sorted.
	Clusters []string
}

// Reach returns where an object goes by a decision: its clusters, and those that it will go back to. In a cluster that
// it leaves, copies of what it refers to stay until it has left: propagation does that.
func (w *World) Reach(o *Object, d *Decision) Reach {
	switch {
	case d.Wait, d.None && !builtIn(o):
		return Reach{}
	case d.None && o.Selector == nil, d.Placement.Everywhere:
		return Reach{Everywhere: true}
	}
	all := map[string]int64{}
	for _, c := range w.Clusters {
		if d.None && o.Selector.Matches(labels.Set(c.Labels)) {
			all[c.Name] = 1
		}
	}
	for _, of := range []map[string]int64{d.Placement.Clusters, d.Placement.Overflow, d.Placement.Home} {
		for name, n := range of {
			all[name] = max(all[name], n)
		}
	}
	return Reach{Clusters: sortedNames(withoutZeros(all))}
}

// Follow returns where an object with these referrers goes.
func Follow(referrers []Reach) *Reach {
	all := map[string]int64{}
	for _, r := range referrers {
		if r.Everywhere {
			return &Reach{Everywhere: true}
		}
		for _, name := range r.Clusters {
			all[name] = 1
		}
	}
	return &Reach{Clusters: sortedNames(all)}
}

// Standing returns the last decision about an object, from its annotation.
func Standing(o *Object) *Decision {
	switch {
	case o.Current != nil:
		return &Decision{Placement: *o.Current}
	case o.Divided || o.Pending || o.needsReferrer() && o.Selector == nil:
		return &Decision{Wait: true}
	}
	return &Decision{None: true}
}

// References returns the objects that an object refers to and takes along: all, if its policy says so; else those of
// confined kinds.
func (w *World) References(o *Object) (all []v1beta1.Reference) {
	if p := w.Policy(o); p != nil && p.Spec.PropagateReferences {
		return o.References()
	}
	if w.SecretsEverywhere {
		return nil
	}
	for _, r := range o.References() {
		if v1beta1.ConfinedKinds[r.Kind] {
			all = append(all, r)
		}
	}
	return all
}

// References returns what an object refers to.
func (o *Object) References() []v1beta1.Reference {
	return v1beta1.References(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind(), o.content)
}

// needsReferrer reports whether objects of the kind go nowhere unless referred to.
func (o *Object) needsReferrer() bool { return o.APIVersion == "v1" && v1beta1.ConfinedKinds[o.Kind] }

// Unreferred is the note on an object that goes nowhere.
const Unreferred = "nothing refers to it; a policy or --propagate-secrets=All would take it to clusters"

// followReferrers sends an object where its referrers go.
func (d *deciding) followReferrers() {
	by, plan := strings.Join(d.o.Followed, ", "), map[string]int64{}
	for _, name := range d.o.Follow.Clusters {
		plan[name] = 1
	}
	d.sendTo(plan)
	d.result.Placement.Everywhere = d.o.Follow.Everywhere
	for _, c := range d.w.Clusters {
		if d.o.Follow.Everywhere || plan[c.Name] > 0 {
			d.reasons.add(c.Name, "goes where its referrers go: "+by)
		} else {
			d.reasons.add(c.Name, fmt.Sprintf("does not go there, because %s does not", by))
		}
	}
}

// confine keeps an object away from clusters: nothing refers to it, or nothing does yet.
func (d *deciding) confine() {
	d.sendTo(nil)
	why := "goes to every cluster, by --propagate-secrets=All"
	if d.result.Placement.Everywhere = d.w.SecretsEverywhere; !d.w.SecretsEverywhere {
		d.result.Unreferred, why = true, Unreferred
	}
	for _, c := range d.w.Clusters {
		d.reasons.add(c.Name, why)
	}
}
