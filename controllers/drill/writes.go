package drill

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Writes records how long this process's latest writes to the federation's API took. The zero value is ready to use.
type Writes struct {
	mu   sync.Mutex
	last []write
}

// write is one that returned or failed.
type write struct {
	at   time.Time
	took time.Duration
}

const (
	// looksBack is the number of ten-second slots that are kept, maxWrites the maximum of writes in each.
	looksBack, slot = 3, 10 * time.Second
	maxWrites       = 10000
)

// Wrap counts the writes that go through a transport.
func (w *Writes) Wrap(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return rt.RoundTrip(r)
		}
		begin := time.Now()
		answer, err := rt.RoundTrip(r)
		w.recordWrite(time.Now(), time.Since(begin))
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *Writes) recordWrite(at time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = append(w.last, write{at, took})
	if len(w.last) > maxWrites {
		w.last = slices.Delete(w.last, 0, maxWrites/2)
	}
}

// P99 returns, for each of the last three ten-second slots, the latest first, the 99th percentile of the writes'
// latency; 0 if there was none.
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
