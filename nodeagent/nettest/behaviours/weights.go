package behaviours

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// weights has other clusters with the weights 3 and 1 get such shares of connections, by chi-square: above 10.8 is 0.1 % of
// fair dice.
func weights(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t)
	for cluster, is := range map[string]struct {
		host   *nettest.Host
		weight string
	}{"heavy": {w.There, "3"}, "light": {w.Far, "1"}} {
		s := w.Slice("web", is.host)
		s.Name = cluster
		s.Labels = map[string]string{ruleset.LabelRemoteService: "web", ruleset.LabelSourceCluster: cluster, corev1.LabelTopologyRegion: "rb"}
		s.Annotations = map[string]string{ruleset.AnnotationWeight: is.weight}
		s.Endpoints[0].NodeName = nil
		w.Apply(t, w.Model.SetSlice(s)...)
	}
	const n = 600
	got := w.servers(t, w.Client, w.Web(w.VIP), n)
	chi2 := 0.0
	for host, want := range map[*nettest.Host]float64{w.There: n * 3 / 4, w.Far: n / 4} {
		off := float64(got[host.Name]) - want
		chi2 += off * off / want
	}
	if chi2 > 10.8 || len(got) != 2 {
		t.Errorf("shares of %d: %v, chi-square %.1f", n, got, chi2)
	}
}
