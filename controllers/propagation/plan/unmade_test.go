package plan

import (
	"fmt"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

const replicaSetText = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default, annotations: {%s}}
spec: {replicas: 12}
status:
  replicas: %d
  conditions: [{type: ReplicaFailure, status: "%s", reason: %s, message: exceeded quota, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

func TestUnmade(t *testing.T) {
	for _, c := range []struct {
		name, annotations, status, reason string
		share, there, want                int64
	}{
		{"a quota", "", "True", "FailedCreate", 12, 8, 4},
		{"more pods than wanted cannot be deleted", "", "True", "FailedDelete", 12, 14, 0},
		{"it was so once", "", "False", "FailedCreate", 12, 8, 0},
		{"others are there, as while it rolls", "", "True", "FailedCreate", 12, 13, 0},
		{"less has been its share since, but it cannot be written", "", "True", "FailedCreate", 9, 8, 1},
		{"the share is yet to be written", "", "True", "FailedCreate", 20, 8, 4},
		{"an autoscaler's", v1beta1.ScaledByAnnotation + ": x", "True", "FailedCreate", 12, 8, 0},
	} {
		pods, since := Unmade(parse(t, fmt.Sprintf(replicaSetText, c.annotations, c.there, c.status, c.reason)), c.share)
		if pods != c.want || pods > 0 && !since.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %d since %s, want %d", c.name, pods, since, c.want)
		}
	}
	if pods, _ := Unmade(nil, 12); pods != 0 {
		t.Errorf("no copy: %d", pods)
	}
}

// A condition reports pods that are not created, as does the annotation that placement reads; both end when they are
// created.
func TestWhatIsNotMadeIsTold(t *testing.T) {
	k := kind(t, "ReplicaSet")
	federated := parse(t, fmt.Sprintf(replicaSetText, "", 12, "False", "x"))
	federated.Object["status"] = map[string]any{}
	copied := Copy{Cluster: "west-a", State: Synced, Unmade: 4, Object: parse(t, fmt.Sprintf(replicaSetText, "", 8, "True", "FailedCreate"))}
	s := Summarize(k, federated, []Copy{copied}, "2026-01-03T00:00:00Z")
	if got := s.Annotations[v1beta1.CreatedPodsAnnotation]; got != `{"west-a":8}` {
		t.Errorf("annotation %v", got)
	}
	federated.Object["status"] = s.Status
	if got := conditionMessage(federated, replicaFailure); got != "cluster west-a could not make 4 pods: exceeded quota" {
		t.Errorf("condition %q", got)
	}
	federated.SetAnnotations(map[string]string{v1beta1.CreatedPodsAnnotation: `{"west-a":8}`})
	copied.Unmade = 0
	s = Summarize(k, federated, []Copy{copied}, "2026-01-03T00:00:00Z")
	if got, there := s.Annotations[v1beta1.CreatedPodsAnnotation]; got != nil || !there {
		t.Errorf("annotation %v is to be taken off", s.Annotations)
	}
	federated.Object["status"] = s.Status
	if !hasCondition(federated, replicaFailure, "False") {
		t.Errorf("conditions %v", s.Status["conditions"])
	}
}
