package clusterregistry

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"federation/clusterregistry/health"
)

// TestALostConnectionCostsOneLook: several connections that looks could use are cut at once. Were the next look to
// use another one of them, it would be a second failure of one event, and the cluster would be marked.
func TestALostConnectionCostsOneLook(t *testing.T) {
	east := newFakeMember(t)
	l, err := newLink(&rest.Config{Host: east.URL, TLSClientConfig: rest.TLSClientConfig{CAData: east.ca()}}, "good", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	var together, done sync.WaitGroup
	together.Add(3)
	east.set(func() { east.meet = func() { together.Done(); together.Wait() } })
	for range 3 {
		done.Go(func() {
			if _, _, err := l.get(t.Context(), "/version"); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	east.forget()
	var answers []health.Answer
	for range 2 {
		answers = append(answers, l.look(t.Context(), 500*time.Millisecond).Answer)
	}
	if answers[0] != health.Unreachable || answers[1] != health.Healthy {
		t.Errorf("answers %v: want one failure", answers)
	}
}
