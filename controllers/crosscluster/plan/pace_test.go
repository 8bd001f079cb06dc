package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	begin := time.Unix(0, 0)
	p := Pace{Settle: 50 * time.Millisecond, Every: time.Second, Burst: 2}
	for _, c := range []struct {
		key       string
		now, want int // ms
	}{
		{"a", 0, 50},
		{"a", 20, 30}, // goes with the first
		{"a", 50, 50}, // the second of the burst
		{"a", 100, 950},
		{"a", 1000, 50},
		{"b", 1000, 50},
		{"a", 1050, 1000}, // one a second from here on
		{"a", 5000, 50},
		{"a", 5050, 50},
		{"a", 5100, 950},
	} {
		if got := p.Delay(c.key, begin.Add(time.Duration(c.now)*time.Millisecond)).Milliseconds(); got != int64(c.want) {
			t.Errorf("%s at %d ms: a delay of %d ms, want %d", c.key, c.now, got, c.want)
		}
	}
	p.Delay("c", begin.Add(time.Minute))
	if len(p.due) != 1 {
		t.Errorf("%d keys are kept, want that of the last minute alone", len(p.due))
	}
}

// However changes come, none waits longer than Settle and Every together, and no more are acted upon than is said.
func TestPaceOfRandomChanges(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := Pace{Settle: time.Duration(r.IntN(100)) * time.Millisecond, Every: time.Duration(1+r.IntN(1000)) * time.Millisecond, Burst: 1 + r.IntN(4)}
		now, turns := time.Unix(0, 0), []time.Time{}
		for range 2000 {
			now = now.Add(time.Duration(r.IntN(1+r.IntN(2000))) * time.Millisecond)
			p.Delay(fmt.Sprint("other", r.IntN(50)), now)
			due := now.Add(p.Delay("a", now))
			if due.Before(now) || due.Sub(now) > p.Settle+p.Every {
				t.Fatalf("seed %d: %+v: a change waits for %v", seed, p, due.Sub(now))
			}
			if n := len(turns); n == 0 || !turns[n-1].Equal(due) {
				turns = append(turns, due)
			}
			if n := len(turns); n > p.Burst && turns[n-1].Sub(turns[n-1-p.Burst]) < p.Every {
				t.Fatalf("seed %d: %+v: %d turns within %v", seed, p, p.Burst+1, turns[n-1].Sub(turns[n-1-p.Burst]))
			}
		}
	}
}
