package plan

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Decide returns what a member is to have of a Service.
func Decide(in Input) (d Decision) {
	imported, conditions := in.merge()
	d.Conditions = conditions[in.Member]
	if meta.IsStatusConditionTrue(d.Conditions, string(mcsv1beta1.ServiceExportConditionValid)) {
		d.Balancer = in.desiredBalancer()
	}
	if imported == nil || !in.Imports {
		return d
	}
	selected := in.selected(imported)
	d.Import = in.desiredImport(imported, selected)
	have := in.Have.Import
	if have == nil || have.DeletionTimestamp != nil {
		d.Keep = in.all() // it owns the rest
		return d
	}
	if imported.Spec.Type == mcsv1beta1.ClusterSetIP {
		d.Derived = in.desiredService(imported, have)
		if in.Have.Derived == nil { // somebody else's of that name would get the endpoints
			d.Keep = in.all()
			return d
		}
	}
	d.Slices, d.Keep = in.desiredSlices(d.Import, tiers(selected))
	return d
}

// all are the clusters of all slices.
func (in *Input) all() map[string]bool {
	clusters := map[string]bool{}
	for _, s := range in.Have.Slices {
		clusters[s.Labels[mcsv1beta1.LabelSourceCluster]] = true
	}
	return clusters
}

// merge merges what is known. While that is not all which the member has imported so far, its import stays as it is, and nobody is
// told of conflicts.
func (in *Input) merge() (*Import, map[string][]metav1.Condition) {
	var exports []Export
	var unknown []string
	for i := range in.Sources {
		switch s := &in.Sources[i]; {
		case !s.Known && in.imported(s.Cluster):
			unknown = append(unknown, s.Cluster)
		case s.Known && s.Export != nil:
			exports = append(exports, *s.Export)
		}
	}
	merged, conditions := Merge(exports)
	if len(unknown) == 0 {
		return merged, conditions
	}
	for cluster, of := range conditions {
		conditions[cluster] = slices.DeleteFunc(of, func(c metav1.Condition) bool {
			return c.Type == string(mcsv1beta1.ServiceExportConditionConflict)
		})
	}
	have := in.Have.Import
	kept := &Import{Spec: have.Spec, Clusters: unknown, Labels: maps.Clone(have.Labels), Annotations: have.Annotations}
	kept.Spec.IPs = nil
	kept.selectors, _ = selectorsOf(have.Annotations) // those that Merge let through
	if merged != nil {
		kept.Clusters = append(kept.Clusters, merged.Clusters...)
		slices.Sort(kept.Clusters)
	}
	return kept, conditions
}

// imported reports whether the member's import has a cluster.
func (in *Input) imported(cluster string) bool {
	return in.Have.Import != nil && slices.ContainsFunc(in.Have.Import.Status.Clusters, func(c mcsv1beta1.ClusterStatus) bool { return c.Cluster == cluster })
}

// desiredImport returns the ServiceImport, with the addresses of the derived Service once that has them, and the clusters that each selector selects.
func (in *Input) desiredImport(from *Import, selected [][]string) *mcsv1beta1.ServiceImport {
	want := newImport(in.Have.Import, in.Federation, in.Namespace, in.Name, from)
	if s := in.Have.Derived; s != nil && from.Spec.Type == mcsv1beta1.ClusterSetIP && len(s.Spec.ClusterIPs) > 0 && s.Spec.ClusterIP != corev1.ClusterIPNone {
		want.Spec.IPs, want.Spec.IPFamilies = slices.Clone(s.Spec.ClusterIPs), slices.Clone(s.Spec.IPFamilies)
	}
	delete(want.Annotations, v1beta1.ClusterSelectorResultsAnnotation)
	if selected != nil {
		want.Annotations[v1beta1.ClusterSelectorResultsAnnotation] = resultsText(selected)
	}
	ready := metav1.Condition{Type: string(mcsv1beta1.ServiceImportConditionReady), Status: metav1.ConditionTrue, Reason: string(mcsv1beta1.ServiceImportReasonReady)}
	if from.Spec.Type == mcsv1beta1.ClusterSetIP && len(want.Spec.IPs) == 0 {
		ready.Status, ready.Reason = metav1.ConditionFalse, string(mcsv1beta1.ServiceImportReasonPending)
		ready.Message = "its derived Service, " + DerivedName(in.Name) + ", has no cluster IP yet"
	}
	SetConditions(&want.Status.Conditions, ready)
	return want
}

// newImport makes a ServiceImport of the one that is there, which may be nil.
func newImport(have *mcsv1beta1.ServiceImport, federation, namespace, name string, from *Import) *mcsv1beta1.ServiceImport {
	want := &mcsv1beta1.ServiceImport{}
	if have != nil {
		want = have.DeepCopy()
	}
	want.TypeMeta = metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName}
	want.Namespace, want.Name = namespace, name
	want.Labels, want.Annotations = map[string]string{}, maps.Clone(from.Annotations)
	maps.Copy(want.Labels, from.Labels)
	want.Labels[v1beta1.ManagedByLabel], want.Labels[v1beta1.ShardLabel] = federation, strconv.Itoa(v1beta1.Shard(namespace, name))
	want.Spec = from.Spec
	want.Status.Clusters, want.Status.EndpointSliceObjects = nil, mcsv1beta1.EndpointSliceObjectsPresent
	for _, cluster := range from.Clusters {
		want.Status.Clusters = append(want.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: cluster})
	}
	return want
}

// Summary returns the ServiceImport at the federation, which has no addresses and no slices; nil: none. have is the one that is
// there, or nil; while not all is known of the clusters that it has, it stays.
func Summary(federation, namespace, name string, sources []Source, have *mcsv1beta1.ServiceImport) (*mcsv1beta1.ServiceImport, map[string][]metav1.Condition) {
	in := Input{Federation: federation, Namespace: namespace, Name: name, Sources: sources, Have: Have{Import: have}}
	merged, conditions := in.merge()
	if merged == nil {
		return nil, conditions
	}
	want := newImport(have, federation, namespace, name, merged)
	want.Status.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsAbsent
	return want, conditions
}

// desiredService returns the derived Service: one without selector, whose cluster IP is the import's, for any service proxy.
func (in *Input) desiredService(from *Import, imported *mcsv1beta1.ServiceImport) *corev1.Service {
	want := &corev1.Service{}
	if in.Have.Derived != nil {
		want = in.Have.Derived.DeepCopy()
	} else if families := from.Spec.IPFamilies; len(families) == 1 {
		want.Spec.IPFamilies, want.Spec.IPFamilyPolicy = families, new(corev1.IPFamilyPolicySingleStack)
	} else {
		want.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	}
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	want.Namespace, want.Name = in.Namespace, DerivedName(in.Name)
	want.Labels = map[string]string{
		v1beta1.ManagedByLabel: in.Federation, v1beta1.ShardLabel: strconv.Itoa(v1beta1.Shard(in.Namespace, in.Name)), mcsv1beta1.LabelServiceName: in.Name,
	}
	want.OwnerReferences = []metav1.OwnerReference{owner(imported)}
	want.Spec.Selector, want.Spec.Type, want.Spec.Ports = nil, corev1.ServiceTypeClusterIP, nil
	for _, p := range from.Spec.Ports {
		want.Spec.Ports = append(want.Spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, TargetPort: intstr.FromInt32(p.Port), AppProtocol: p.AppProtocol})
	}
	want.Spec.SessionAffinity, want.Spec.SessionAffinityConfig = from.Spec.SessionAffinity, nil
	if from.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		want.Spec.SessionAffinityConfig = from.Spec.SessionAffinityConfig
	}
	want.Spec.InternalTrafficPolicy = from.Spec.InternalTrafficPolicy
	if want.Spec.InternalTrafficPolicy == nil {
		want.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	return want
}

func owner(imported *mcsv1beta1.ServiceImport) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName, Name: imported.Name, UID: imported.UID}
}

// SetConditions sets conditions among others. One that says the same as before keeps its time; that of the others is zero, for who
// writes them to fill in.
func SetConditions(of *[]metav1.Condition, conditions ...metav1.Condition) {
	for _, c := range conditions {
		if is := meta.FindStatusCondition(*of, c.Type); is == nil {
			*of = append(*of, c)
		} else {
			if is.Status == c.Status {
				c.LastTransitionTime = is.LastTransitionTime
			}
			c.ObservedGeneration = is.ObservedGeneration
			*is = c
		}
	}
}
