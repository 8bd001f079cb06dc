package behaviours

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// weights has other clusters with the weights 3 and 1 get such shares of connections.
func weights(t *testing.T, w *World) {
	w.Service(t)
	w.Endpoints(t)
	for cluster, is := range map[string]struct {
		host   *nettest.Host
		weight string
	}{"heavy": {w.There, "3"}, "light": {w.Far, "1"}} {
		s := w.Slice("web", is.host)
		s.Name = cluster
		s.Labels = map[string]string{ruleset.LabelManagedBy: "a-federation", ruleset.LabelRemoteService: "web", ruleset.LabelSourceCluster: cluster, corev1.LabelTopologyRegion: "rb"}
		s.Annotations = map[string]string{ruleset.AnnotationWeight: is.weight}
		s.Endpoints[0].NodeName = nil
		w.Apply(t, w.Model.SetSlice(s)...)
	}
	w.shared(t, map[*nettest.Host]float64{w.There: 0.75, w.Far: 0.25})
}

// shared checks which share of its client's connections each of two servers gets, by chi-square. Fair dice are above 10.8 once
// in 1000 times (one degree of freedom). As all modes together throw them 18 times, they are wrong when they are above it
// twice: once in 50 000 runs.
func (w *World) shared(t *testing.T, want map[*nettest.Host]float64) {
	t.Helper()
	const n, throws = 600, 2
	for range throws {
		got, chi2, rest := w.servers(t, w.Client, w.Web(w.VIP), n), 0.0, n
		for host, share := range want {
			off := float64(got[host.Name]) - n*share
			chi2 += off * off / (n * share)
			rest -= got[host.Name]
		}
		if rest != 0 {
			t.Fatalf("shares of %d: %v, want only of %d", n, got, len(want))
		}
		if chi2 <= 10.8 {
			return
		}
		t.Logf("shares of %d: %v, chi-square %.1f", n, got, chi2)
	}
	t.Errorf("the shares are not those wanted, %d times in a row", throws)
}
