package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Merge makes one import of all exports of a name, in whatever order; nil where none is valid. It returns the conditions of each
// export by its cluster: Valid, Ready and Conflict, the last with the same reasons for all that are valid.
func Merge(exports []Export) (*Import, map[string][]metav1.Condition) {
	conditions := map[string][]metav1.Condition{}
	var valid []*Export
	selectors := map[string][]clusterSelector{} // of the valid ones, by cluster
	for i := range exports {
		e := &exports[i]
		reason, message := invalid(e)
		if reason == "" {
			selectors[e.Cluster], reason, message = validSelectors(e)
		}
		if reason != "" {
			conditions[e.Cluster] = []metav1.Condition{
				condition(mcsv1beta1.ServiceExportConditionValid, false, reason, message),
				condition(mcsv1beta1.ServiceExportConditionReady, false, string(mcsv1beta1.ServiceExportReasonFailed), "the export is not valid"),
			}
			continue
		}
		valid = append(valid, e)
	}
	if len(valid) == 0 {
		return nil, conditions
	}
	slices.SortFunc(valid, older)
	in, conflicts := merge(valid)
	in.selectors = selectors[valid[0].Cluster]
	for _, e := range valid {
		conditions[e.Cluster] = []metav1.Condition{
			condition(mcsv1beta1.ServiceExportConditionValid, true, string(mcsv1beta1.ServiceExportReasonValid), ""),
			condition(mcsv1beta1.ServiceExportConditionReady, true, string(mcsv1beta1.ServiceExportReasonExported), ""),
			conflictCondition(conflicts, valid[0].Cluster),
		}
	}
	return in, conditions
}

// older orders exports: the oldest first, of the same age by cluster.
func older(a, b *Export) int {
	return cmp.Or(a.Export.CreationTimestamp.Compare(b.Export.CreationTimestamp.Time), strings.Compare(a.Cluster, b.Cluster))
}

// conflicts are the clusters that differ from the oldest export, by reason.
type conflicts map[mcsv1beta1.ServiceExportConditionReason][]string

func conflictCondition(of conflicts, oldest string) metav1.Condition {
	if len(of) == 0 {
		return condition(mcsv1beta1.ServiceExportConditionConflict, false, string(mcsv1beta1.ServiceExportReasonNoConflicts), "")
	}
	var reasons, texts []string
	for _, reason := range slices.Sorted(maps.Keys(of)) {
		const most = 5
		clusters, more := of[reason], ""
		slices.Sort(clusters)
		if len(clusters) > most {
			clusters, more = clusters[:most], fmt.Sprintf(" and %d more", len(clusters)-most)
		}
		reasons = append(reasons, string(reason))
		texts = append(texts, fmt.Sprintf("%s in %s%s", reason, strings.Join(clusters, ", "), more))
	}
	return condition(mcsv1beta1.ServiceExportConditionConflict, true, strings.Join(reasons, ","),
		fmt.Sprintf("the oldest export, that of cluster %s, decides; others differ: %s", oldest, strings.Join(texts, "; ")))
}

// merge merges valid exports, the oldest first.
func merge(exports []*Export) (*Import, conflicts) {
	oldest := exports[0]
	in := &Import{Spec: specOf(oldest.Service), Labels: oldest.Export.Spec.ExportedLabels, Annotations: oldest.Export.Spec.ExportedAnnotations}
	found := conflicts{}
	ports := portsOf(oldest.Service)
	for _, e := range exports {
		spec := specOf(e.Service)
		for reason, differs := range map[mcsv1beta1.ServiceExportConditionReason]bool{
			mcsv1beta1.ServiceExportReasonPortConflict:                  !samePorts(ports, portsOf(e.Service)),
			mcsv1beta1.ServiceExportReasonTypeConflict:                  spec.Type != in.Spec.Type,
			mcsv1beta1.ServiceExportReasonSessionAffinityConflict:       spec.SessionAffinity != in.Spec.SessionAffinity,
			mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict: !equality.Semantic.DeepEqual(spec.SessionAffinityConfig, in.Spec.SessionAffinityConfig),
			mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict: !equality.Semantic.DeepEqual(spec.InternalTrafficPolicy, in.Spec.InternalTrafficPolicy),
			mcsv1beta1.ServiceExportReasonTrafficDistributionConflict:   !equality.Semantic.DeepEqual(spec.TrafficDistribution, in.Spec.TrafficDistribution),
			mcsv1beta1.ServiceExportReasonIPFamilyConflict:              !slices.Equal(spec.IPFamilies, in.Spec.IPFamilies),
			mcsv1beta1.ServiceExportReasonLabelsConflict:                !maps.Equal(e.Export.Spec.ExportedLabels, in.Labels),
			mcsv1beta1.ServiceExportReasonAnnotationsConflict:           !maps.Equal(withoutSelectors(e.Export.Spec.ExportedAnnotations), withoutSelectors(in.Annotations)),
			ReasonClusterSelectorsConflict:                              e.Export.Spec.ExportedAnnotations[v1beta1.ClusterSelectorsAnnotation] != in.Annotations[v1beta1.ClusterSelectorsAnnotation],
		} {
			if differs {
				found[reason] = append(found[reason], e.Cluster)
			}
		}
		in.Spec.Ports = union(in.Spec.Ports, portsOf(e.Service))
		in.Clusters = append(in.Clusters, e.Cluster)
	}
	slices.Sort(in.Clusters)
	return in, found
}

func withoutSelectors(annotations map[string]string) map[string]string {
	left := maps.Clone(annotations)
	delete(left, v1beta1.ClusterSelectorsAnnotation)
	return left
}

// specOf returns what an import has of a Service, if it were the only one exported; without ports.
func specOf(s *corev1.Service) mcsv1beta1.ServiceImportSpec {
	spec := mcsv1beta1.ServiceImportSpec{
		Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{}, SessionAffinity: cmp.Or(s.Spec.SessionAffinity, corev1.ServiceAffinityNone),
		InternalTrafficPolicy: s.Spec.InternalTrafficPolicy, TrafficDistribution: s.Spec.TrafficDistribution,
	}
	if isHeadless(s) {
		spec.Type = mcsv1beta1.Headless
	}
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		spec.SessionAffinityConfig = c
	}
	for _, f := range s.Spec.IPFamilies {
		if (f == corev1.IPv4Protocol || f == corev1.IPv6Protocol) && !slices.Contains(spec.IPFamilies, f) {
			spec.IPFamilies = append(spec.IPFamilies, f)
		}
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return spec
}

func isHeadless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }

func portsOf(s *corev1.Service) (ports []mcsv1beta1.ServicePort) {
	for _, p := range s.Spec.Ports {
		ports = append(ports, mcsv1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol})
	}
	return ports
}

// samePorts reports whether two Services have the same ports, in whatever order.
func samePorts(a, b []mcsv1beta1.ServicePort) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p mcsv1beta1.ServicePort) bool {
		return !slices.ContainsFunc(b, func(q mcsv1beta1.ServicePort) bool { return equality.Semantic.DeepEqual(p, q) })
	})
}

// union adds ports of a younger export: those whose name and number nobody has yet. Of several ports each must have a name, since
// a Service could not have them otherwise.
func union(ports, more []mcsv1beta1.ServicePort) []mcsv1beta1.ServicePort {
	for _, p := range more {
		taken := slices.ContainsFunc(ports, func(q mcsv1beta1.ServicePort) bool {
			return p.Name == q.Name || p.Protocol == q.Protocol && p.Port == q.Port || p.Name == "" || q.Name == ""
		})
		if !taken && len(ports) < maxPorts {
			ports = append(ports, p)
		}
	}
	return ports
}
