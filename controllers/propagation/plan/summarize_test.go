package plan

import (
	"reflect"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestSummarize_SaysWhereItIsOutOfSync as data, in the patch of the condition, and only while it is so.
func TestSummarize_SaysWhereItIsOutOfSync(t *testing.T) {
	for name, text := range map[string]string{
		"Deployment": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"}}`,
		"ConfigMap":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"web"}}`,
	} {
		k, federated := kind(t, name), parse(t, text)
		copies := []Copy{
			{Cluster: "a", State: Synced}, {Cluster: "b", State: Rejected, Message: "no; c: I am another"}, {Cluster: "c", State: Progressing, Message: "waits"},
			{Cluster: "d", State: Unreachable, Message: "the cluster is not reachable"},
		}
		s := Summarize(k, federated, copies, "2026-01-03T00:00:00Z")
		text, _ := s.Annotations[v1beta1.OutOfSyncAnnotation].(string)
		want := &v1beta1.OutOfSync{Clusters: []v1beta1.ClusterOutOfSync{{Cluster: "b", Reason: "Rejected", Message: "no; c: I am another"}, {Cluster: "c", Reason: "Progressing", Message: "waits"}}}
		if got := v1beta1.ParseOutOfSync(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %+v", name, text, want)
		}
		annotate(v1beta1.OutOfSyncAnnotation, text)(federated)
		if s := Summarize(k, federated, copies, "2026-01-03T00:00:00Z"); s.Annotations[v1beta1.OutOfSyncAnnotation] != nil {
			t.Errorf("%s: it is written again: %v", name, s.Annotations)
		}
		s = Summarize(k, federated, []Copy{{Cluster: "a", State: Synced}, {Cluster: "d", State: Unreachable}}, "2026-01-03T00:00:00Z")
		if value, there := s.Annotations[v1beta1.OutOfSyncAnnotation]; !there || value != nil {
			t.Errorf("%s: it stays: %v", name, s.Annotations)
		}
	}
	pending := parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"web","annotations":{"federation.kubernetes.io/placement":"pending"}}}`)
	if s := Summarize(kind(t, "ConfigMap"), pending, []Copy{{Cluster: "a", State: Pending, Message: "to be written"}}, "2026-01-03T00:00:00Z"); len(s.Annotations) > 0 {
		t.Errorf("of what goes nowhere yet: %v", s.Annotations)
	}
}
