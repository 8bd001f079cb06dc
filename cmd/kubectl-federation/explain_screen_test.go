package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// explanationOf reads an explanation that its room has decided in a test.
func explanationOf(t *testing.T, name string) *v1beta1.PlacementReviewStatus {
	t.Helper()
	b, err := os.ReadFile("../../controllers/explain/plan/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	x := &v1beta1.PlacementReviewStatus{}
	if err := json.Unmarshal(b, x); err != nil {
		t.Fatal(err)
	}
	return x
}

func explainScreen(x *v1beta1.PlacementReviewStatus, rows int) string {
	var out strings.Builder
	printExplanation(&out, x, rows, seenAt)
	return out.String()
}

func TestExplanationsOnAScreen(t *testing.T) {
	for _, name := range []string{"moving", "across", "ingress"} {
		golden(t, "testdata/explain."+name, explainScreen(explanationOf(t, name), maxRows))
	}
	golden(t, "testdata/explain.job", explainScreen(explanationOf(t, "job.first"), maxRows)+"\n--- the second round\n\n"+explainScreen(explanationOf(t, "job.second"), maxRows))
}

// TestExplainThousandClusters checks that it fits a screen that includes the problems.
func TestExplainThousandClusters(t *testing.T) {
	x := &v1beta1.PlacementReviewStatus{Kind: "ReplicaSet", Namespace: "default", Name: "web", Replicas: new(int64(300))}
	for i := range 1000 {
		c := v1beta1.ClusterExplanation{Name: fmt.Sprintf("cluster-%03d", i), Copy: v1beta1.CopyNone, Reasons: []string{"other clusters have all replicas, by weight and what they have already"}}
		if i%10 == 0 {
			c.Desired, c.Current, c.Ready, c.Copy, c.Generation, c.Reasons = 3, new(int64(3)), 3, v1beta1.CopyInSync, 2, []string{"by weight"}
		}
		x.Clusters = append(x.Clusters, c)
	}
	x.Clusters[990].Ready, x.Clusters[990].WaitsFor = 1, "2 replicas to get ready"
	x.Clusters[500].Current, x.Clusters[500].Copy, x.Clusters[500].Generation = nil, v1beta1.CopyMissing, 0
	text := explainScreen(x, maxRows)
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines", lines)
	}
	for _, want := range []string{"cluster-500   3         -         -       missing", "cluster-990   3         3         1       in sync   2     -       2 replicas to get ready", "And 980 clusters more"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if all := explainScreen(x, 1000); strings.Count(all, "\ncluster-") != 1000 {
		t.Error("--all does not show all")
	}
}

func TestObjectArguments(t *testing.T) {
	for line, want := range map[string]string{
		"rs/web": "rs web", "deploy web": "deploy web", "rs/": "!", "web": "!", "rs/a/b": "!", "": "!", "rs web/x": "!",
	} {
		kind, name, err := objectArgs(strings.Fields(line))
		if got := kind + " " + name; (want == "!") != (err != nil) || err == nil && got != want {
			t.Errorf("%q: %q %v", line, got, err)
		}
	}
}

func TestStatusTellsOfLoadBalancers(t *testing.T) {
	s := statusOf(t, []*v1beta1.Cluster{roomy("east-a", "east/a")}, "True 1 clusters are as desired")
	s.LoadBalancers = explanationOf(t, "ingress").Routes.LoadBalancers
	var out strings.Builder
	if s.Summarize(); s.Healthy {
		t.Error("all is well, though a load balancer does not renew its Lease")
	}
	printStatus(&out, s, extent{maxRows, true}, seenAt)
	for _, want := range []string{"Load balancers: 3 of 4 alive (east/a 2 of 2, west 1 of 2)\n", "  west-2 (west): has not renewed its Lease for 60s: its addresses are out of DNS; "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	s.LoadBalancers = s.LoadBalancers[:3]
	if s.Summarize(); !s.Healthy {
		t.Error("all are alive, and something is not well")
	}
}
