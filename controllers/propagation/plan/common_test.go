package plan

import (
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// A shared configuration equals the one that each cluster would get alone, in whatever order they ask, even if the
// policy changes in between.
func TestCommonIsWhatEachGetsAlone(t *testing.T) {
	here := v1beta1.Override{
		Clusters:  &v1beta1.ClusterAffinity{Names: []string{"east-a"}},
		JSONPatch: []v1beta1.JSONPatchOperation{op("replace", "/spec/template/spec/containers/0/image", `"mirror/web:1"`)},
	}
	west, other, scaled, waiting, left := east, east, east, east, east
	west.Cluster, other.Federation, scaled.Scaled = cluster("west-a", nil), "uid-2", true
	waiting.Have = parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, annotations: {federation.kubernetes.io/applied-hash: abc}}, spec: {replicas: 20}}`)
	waiting.Template = map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
	waiting.Number = new(int64(25))
	left.Have = parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, annotations: {federation.kubernetes.io/autoscaled: "true", `+v1beta1.ScaledByAnnotation+`: hpa}}, spec: {replicas: 3}}`)
	targets := []Target{east, west, other, scaled, waiting, left}

	federated := parse(t, web)
	alone := source(kind(t, "ReplicaSet"), federated)
	paced := governed(alone)
	paced.Policy.Spec.Rollout = &v1beta1.RolloutPolicy{Strategy: v1beta1.RolloutOneClusterAtATime}
	sources := map[string]Source{"no policy": alone, "an override": governed(alone, here), "one cluster at a time": paced}
	common := &Common{}
	for range 2 {
		for name, s := range sources {
			for _, target := range targets {
				want := Desire(s, target)
				together := s
				together.Common = common
				got := Desire(together, target)
				if asJSON(got) != asJSON(want) {
					t.Errorf("%s, %s: got\n%s\nwant\n%s", name, target.Cluster.Name, asJSON(got), asJSON(want))
				}
				for _, provided := range []Precondition{NotThere, {UID: "u7"}, NotThere} {
					if got, want := string(got.Body(provided)), string(want.Body(provided)); got != want {
						t.Errorf("%s, %s, provided %v: got\n%s\nwant\n%s", name, target.Cluster.Name, provided, got, want)
					}
				}
			}
		}
	}
	if len(common.made) != 6 { // 20 and 10 replicas and 20 of the other federation, each also with a hash of the template
		t.Errorf("%d configurations were made", len(common.made))
	}
}
