package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Copy returns the ServiceExport that a member is to have of the federation's, and what is to be deleted. have is the one that is
// there, or nil: one that a user of the member wrote stays as it is, and counts for itself. hasService: the member has a copy of the
// Service.
func Copy(federation string, export, have *mcsv1beta1.ServiceExport, hasService bool) (want, gone *mcsv1beta1.ServiceExport) {
	ours := have != nil && have.Labels[v1beta1.ManagedByLabel] == federation
	switch {
	case have != nil && !ours:
		return nil, nil
	case export == nil || export.DeletionTimestamp != nil || !hasService:
		return nil, have
	}
	want = &mcsv1beta1.ServiceExport{}
	if have != nil {
		want = have.DeepCopy()
	}
	want.TypeMeta = metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceExportKindName}
	want.Namespace, want.Name = export.Namespace, export.Name
	want.Labels = map[string]string{v1beta1.ManagedByLabel: federation, v1beta1.ShardLabel: strconv.Itoa(v1beta1.Shard(export.Namespace, export.Name))}
	want.Spec = export.Spec
	return want, nil
}

// FederationConditions returns the conditions of the federation's ServiceExport from those of the clusters' exports of the name: those
// of a valid one, if there is any, as conflicts are the same for all.
func FederationConditions(of map[string][]metav1.Condition) []metav1.Condition {
	clusters := slices.Sorted(maps.Keys(of))
	for _, cluster := range clusters {
		if c := of[cluster]; len(c) > 0 && c[0].Status == metav1.ConditionTrue {
			return c
		}
	}
	if len(clusters) > 0 {
		first := slices.Clone(of[clusters[0]])
		first[0].Message = fmt.Sprintf("cluster %s: %s", clusters[0], first[0].Message)
		return first
	}
	return []metav1.Condition{
		condition(mcsv1beta1.ServiceExportConditionValid, false, string(mcsv1beta1.ServiceExportReasonNoService), "no cluster that takes part (kubectl federation join --with-mcs) has a copy of the Service"),
		condition(mcsv1beta1.ServiceExportConditionReady, false, string(mcsv1beta1.ServiceExportReasonPending), "no cluster exports it yet"),
	}
}
