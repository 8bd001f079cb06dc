package plan

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestStatusForPrograms: scripts read these fields, and no others.
func TestStatusForPrograms(t *testing.T) {
	s := &Status{Name: "prod", Clusters: []ClusterStatus{ClusterStatusOf(&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}})}}
	s.Summarize()
	got, err := json.Marshal(s)
	want := `{"name":"prod","healthy":false,"clusters":[{"name":"east-a","ready":false,"phase":"Serving","dnsWeight":100,` +
		`"message":"the federation's controllers have not looked at it; do they run?"}],"kinds":null}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
