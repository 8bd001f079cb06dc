package clusterregistry

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
	"federation/clusterregistry/limits"
)

func TestPenaltiesGrow(t *testing.T) {
	now, p := time.Unix(1e9, 0), penalty{}
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		p.impose("too much", now)
		p.impose("too much, again", now.Add(time.Second)) // as other requests end with it
		if p.reasonNow(now.Add(want-1)) == "" || p.reasonNow(now.Add(want)) != "" {
			t.Errorf("penalty %d does not last %v", i, want)
		}
		now = now.Add(want + time.Minute)
	}
	now = now.Add(2 * lastPenalty)
	if p.impose("too much", now); p.reasonNow(now.Add(firstPenalty)) != "" {
		t.Error("a member that was well for long is not forgiven")
	}
}

// A member that never ends what it sends, in one answer or in a watch, is cut off and said to misbehave, and costs no more than it may.
// The other member goes on.
func TestAMemberThatSendsTooMuchIsCutOff(t *testing.T) {
	for name, spoil := range map[string]func(*fakeMember){
		"watches": func(m *fakeMember) { m.endless = true },
		"a list":  func(m *fakeMember) { m.flood = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.options.Limits = limits.Limits{Response: 8 << 20, Open: 32 << 20, Burst: 32 << 20, Rate: 1 << 20, Held: 16 << 20}
			hostile, good := newFakeMember(t), newFakeMember(t)
			spoil(hostile)
			f.join("hostile", hostile, "good")
			f.join("well", good, "good")
			f.eventuallyReady("well", v1beta1.ReasonClusterReady)
			f.eventuallyReady("hostile", health.ReasonExceedsLimits)
			var memory runtime.MemStats
			runtime.GC()
			if runtime.ReadMemStats(&memory); memory.HeapAlloc > 256<<20 {
				t.Errorf("the heap has %d MiB", memory.HeapAlloc>>20)
			}
			if _, err := f.Member("well"); err != nil {
				t.Error(err)
			}
		})
	}
}

// endlessly answers a watch with ever more objects.
func endlessly(w http.ResponseWriter, r *http.Request) {
	padding := strings.Repeat("x", 64<<10)
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"c%d","uid":"%d","resourceVersion":"%d"},"data":{"a":"%s"}}}`, i, i, i+1, padding); err != nil {
			return
		}
	}
}
