package drill

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Writes are how long the writes of this process at the federation's API have taken lately. The zero value is ready.
type Writes struct {
	mu   sync.Mutex
	last []write
}

// write is one that came back, or failed.
type write struct {
	at   time.Time
	took time.Duration
}

const (
	// looksBack is how long a write is remembered, in times of ten seconds each; maxWrites how many are.
	looksBack, slot = 3, 10 * time.Second
	maxWrites       = 10000
)

// Wrap has the writes that go through a transport counted.
func (w *Writes) Wrap(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return rt.RoundTrip(r)
		}
		begin := time.Now()
		answer, err := rt.RoundTrip(r)
		w.note(time.Now(), time.Since(begin))
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *Writes) note(at time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = append(w.last, write{at, took})
	if len(w.last) > maxWrites {
		w.last = slices.Delete(w.last, 0, maxWrites/2)
	}
}

// P99 is, for each of the last three times ten seconds, the latest first, the time within which 99 of 100 writes came back; 0: there was none.
func (w *Writes) P99(now time.Time) (all [looksBack]time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var took [looksBack][]time.Duration
	w.last = slices.DeleteFunc(w.last, func(one write) bool { return now.Sub(one.at) >= looksBack*slot })
	for _, one := range w.last {
		i := max(0, int(now.Sub(one.at)/slot))
		took[i] = append(took[i], one.took)
	}
	for i := range took {
		if n := len(took[i]); n > 0 {
			slices.Sort(took[i])
			all[i] = took[i][(n*99+99)/100-1]
		}
	}
	return all
}
