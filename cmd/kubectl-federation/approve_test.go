package main

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	explainplan "federation/controllers/explain/plan"
)

// TestApproveDeletions checks that held sets are printed, and approved once somebody confirms.
func TestApproveDeletions(t *testing.T) {
	w := newWorld(t)
	clusters := w.f.Dynamic.Resource(v1beta1.ClustersResource)
	u, err := clusters.Get(t.Context(), "east-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.Object["status"].(map[string]any)["deletionsPendingApproval"] = []any{
		map[string]any{"set": "aaa", "copies": int64(16), "of": int64(18), "examples": []any{"ConfigMap shop/one", "ConfigMap shop/two"}},
		map[string]any{"resource": "widgets.example.com", "set": "bbb", "copies": int64(11), "of": int64(11), "examples": []any{"Widget shop/w"}},
	}
	if _, err := clusters.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	approve := func(cluster, answer, format string, dry client.DryRun, yes bool) (string, error) {
		out.Reset()
		o := &approveCommand{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(answer), Out: &out, ErrOut: &bytes.Buffer{}}, output: output(format), dry: dry, yes: yes}
		err := o.approve(t.Context(), w.f, cluster)
		return out.String(), err
	}
	approved := func() string {
		u, err := clusters.Get(t.Context(), "east-a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, _, _ := unstructured.NestedString(u.Object, "metadata", "annotations", v1beta1.ApproveDeletionsAnnotation)
		return s
	}
	if said, err := approve("east-a", "east-b\n", "table", "none", false); err == nil || approved() != "" || !strings.Contains(said, "east-a: 16 of 18 copies would be deleted") ||
		!strings.Contains(said, "  ConfigMap shop/two\n  and 14 more\n") || !strings.Contains(said, "11 of 11 copies of widgets.example.com") {
		t.Errorf("another name was typed: %v\n%s", err, said)
	}
	if said, err := approve("east-a", "", "yaml", "client", false); err != nil || approved() != "" || !strings.Contains(said, "set: bbb") {
		t.Errorf("a dry run: %v\n%s", err, said)
	}
	if said, err := approve("west-a", "", "table", "none", false); err != nil || !strings.Contains(said, "no deletions wait for approval") {
		t.Errorf("nothing is held: %v\n%s", err, said)
	}
	if said, err := approve("east-a", "east-a\n", "table", "none", false); err != nil || approved() != "aaa,bbb" || !strings.Contains(said, "deletions approved") {
		t.Errorf("approved %q: %v\n%s", approved(), err, said)
	}
	c, err := w.f.Cluster(t.Context(), "east-a")
	if err != nil {
		t.Fatal(err)
	}
	if s := explainplan.ClusterStatusOf(c); s.DeletionsPendingApproval != 27 || s.Healthy() || !strings.Contains(s.Message, "approve-deletions east-a") {
		t.Errorf("status %+v", s)
	}
}
