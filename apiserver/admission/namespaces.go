package admission

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// named is a cluster that is requested by name.
type named struct {
	cluster string
	path    *field.Path
}

// checkClusters rejects policies and preferences that name a cluster which is not for their namespace. Names that are
// stored already do not block changes: placement goes by the Cluster's present spec.
func (p *Plugin) checkClusters(a admission.Attributes) (errs field.ErrorList) {
	if a.GetSubresource() != "" {
		return nil
	}
	asked, before := clustersNamed(a, a.GetObject()), map[string]bool{}
	if len(asked) == 0 {
		return nil
	}
	for _, n := range clustersNamed(a, a.GetOldObject()) {
		before[n.cluster] = true
	}
	for _, c := range p.clusters() {
		why := c.RefusesNamespace(a.GetNamespace())
		if why == "" || before[c.Name] {
			continue
		}
		for _, n := range asked {
			if n.cluster == c.Name {
				errs = append(errs, field.Forbidden(n.path, why))
			}
		}
	}
	return errs
}

// clustersNamed returns the clusters that a policy, or the preferences of an object, ask for by name.
func clustersNamed(a admission.Attributes, object runtime.Object) (all []named) {
	if policy, ok := object.(*v1beta1.PlacementPolicy); ok {
		if policy == nil {
			return nil
		}
		spec := field.NewPath("spec")
		if policy.Spec.Clusters != nil {
			for i, name := range policy.Spec.Clusters.Names {
				all = append(all, named{name, spec.Child("clusters", "names").Index(i)})
			}
		}
		return append(all, preferredClusters(policy.Spec.ReplicaPreferences, spec.Child("replicaPreferences", "clusters"))...)
	}
	kind := v1beta1.FederatedKindOf(a.GetResource().GroupResource())
	if kind == nil || kind.Preferences == "" {
		return nil
	}
	preferences, errs := v1beta1.ParseReplicaPreferences(annotationsOf(object)[kind.Preferences], nil)
	if len(errs) > 0 {
		return nil // reported elsewhere
	}
	return preferredClusters(preferences, field.NewPath("metadata", "annotations").Key(kind.Preferences).Child("clusters"))
}

// preferredClusters returns the clusters that preferences give anything to, by name.
func preferredClusters(p *v1beta1.ReplicaPreferences, path *field.Path) (all []named) {
	if p == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Clusters)) {
		if c := p.Clusters[name]; c.Weight > 0 || c.MinReplicas > 0 {
			all = append(all, named{name, path.Key(name)})
		}
	}
	return all
}

// clusters returns the joined clusters; nil: they are not known.
func (p *Plugin) clusters() []*v1beta1.Cluster {
	if p.Clusters == nil {
		return nil
	}
	return p.Clusters()
}
