package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is a zone with its servers, the parent zone with its servers, and all that a resolver may have in its cache. A
// step is a minute.
type world struct {
	*rand.Rand
	settings Settings // the real durations
	now      time.Time
	secret   State // what the federation has written
	servers  []server
	above    []parent
	registry []uint16 // what the parent zone is going to have
	// cached has, by content, when a server last sent it.
	ds, keys map[string]cached
	signers  map[uint16]time.Time
	made     uint16
}

// server has what it last read from the federation; without keys it does not sign yet.
type server struct {
	read time.Time
	has  State
}

type parent struct {
	read time.Time
	ds   []uint16
}

type cached struct {
	tags []uint16
	last time.Time
}

// people submits DS records to the parent zone.
type people func(w *world)

var habits = map[string]people{
	"nobody does anything": func(*world) {},
	"the parent zone follows CDS": func(w *world) {
		s := w.servers[w.IntN(len(w.servers))].has
		if len(s.Submit) > 0 && w.IntN(30) == 0 {
			w.registry = s.Submit
		}
	},
	"what is printed is handed in": func(w *world) {
		if len(w.secret.Submit) > 0 && w.IntN(100) == 0 {
			w.registry = w.secret.Submit
		}
	},
	"first the new one, then not the old one": func(w *world) {
		if len(w.secret.Submit) == 0 || w.IntN(60) > 0 {
			return
		}
		if tag := w.secret.Submit[0]; !slices.Contains(w.registry, tag) {
			w.registry = append(slices.Clone(w.registry), tag)
		} else {
			w.registry = []uint16{tag}
		}
	},
}

func newWorld(seed uint64, real Settings) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 1)), settings: real, now: began, servers: make([]server, 3), above: make([]parent, 2),
		ds: map[string]cached{}, keys: map[string]cached{}, signers: map[uint16]time.Time{},
	}
	for i := range w.servers {
		w.servers[i].read = w.now
	}
	for i := range w.above {
		w.above[i].read = w.now
	}
	return w
}

// late reports whether a change reaches a server now that may take up to Propagation.
func (w *world) late(since time.Time) bool {
	return w.now.Sub(since) >= w.settings.Propagation-time.Minute || w.IntN(max(int(w.settings.Propagation/time.Minute), 1)) == 0
}

// step lets a minute pass with these settings.
func (w *world) step(settings Settings, do people) {
	w.now = w.now.Add(time.Minute)
	do(w)
	if w.IntN(5) > 0 { // the federation is there
		f := Facts{Now: w.now, Roll: w.IntN(300) == 0}
		if w.IntN(5) == 0 {
			f.Parent = w.look()
		}
		d := Decide(w.secret, settings, f)
		w.secret = d.State
		if d.Make {
			w.made++
			w.secret = Add(w.secret, w.made, w.now)
		}
	}
	for i := range w.servers {
		if s := &w.servers[i]; w.late(s.read) {
			s.read, s.has = w.now, w.secret
		}
		w.say(w.servers[i].has)
	}
	for i := range w.above {
		if p := &w.above[i]; w.late(p.read) {
			p.read, p.ds = w.now, w.registry
		}
		w.ds[fmt.Sprint(w.above[i].ds)] = cached{w.above[i].ds, w.now}
	}
}

// say adds to the caches what resolvers may get from a server.
func (w *world) say(s State) {
	w.signers[s.Active()] = w.now
	if len(s.Keys) > 0 {
		tags := []uint16{}
		for _, k := range s.Keys {
			tags = append(tags, k.Tag)
		}
		w.keys[fmt.Sprint(tags)] = cached{tags, w.now}
	}
}

// look returns what the federation sees in the parent zone.
func (w *world) look() *Parent {
	p := &Parent{All: w.above[0].ds}
	for _, one := range w.above {
		p.All = slices.DeleteFunc(slices.Clone(p.All), func(tag uint16) bool { return !slices.Contains(one.ds, tag) })
		for _, tag := range one.ds {
			if !slices.Contains(p.Any, tag) {
				p.Any = append(p.Any, tag)
			}
		}
	}
	return p
}

// refused tries every mix of cached records, and returns one that a validator refuses.
func (w *world) refused() string {
	forget := func(all map[string]cached, ttl time.Duration) {
		maps.DeleteFunc(all, func(_ string, c cached) bool { return w.now.Sub(c.last) > ttl })
	}
	forget(w.ds, w.settings.DSTTL)
	forget(w.keys, w.settings.KeyTTL)
	maps.DeleteFunc(w.signers, func(_ uint16, last time.Time) bool { return w.now.Sub(last) > w.settings.MaxTTL })
	for _, ds := range w.ds {
		if len(ds.tags) == 0 {
			continue // nothing is checked
		}
		for _, keys := range w.keys {
			vouched := slices.ContainsFunc(ds.tags, func(tag uint16) bool { return slices.Contains(keys.tags, tag) })
			for signer := range w.signers {
				if !vouched || !slices.Contains(keys.tags, signer) {
					return fmt.Sprintf("DS records of %v, keys %v, an answer signed by %d (0: by none)", ds.tags, keys.tags, signer)
				}
			}
		}
	}
	return ""
}

// play runs a zone for a while. It returns how many keys it had, and the first mix that is refused.
func play(seed uint64, real, settings Settings, do people) (made uint16, bad string) {
	w := newWorld(seed, real)
	for range 4000 {
		w.step(settings, do)
		if bad := w.refused(); bad != "" {
			return w.made, fmt.Sprintf("seed %d, %s after its begin: %s; the federation has %+v", seed, w.now.Sub(began), bad, w.secret)
		}
	}
	return w.made, ""
}

// randomSettings returns some minutes each, so that a rollover takes hours.
func randomSettings(r *rand.Rand) Settings {
	some := func() time.Duration { return time.Duration(1+r.IntN(60)) * time.Minute }
	return Settings{KeyTTL: some(), MaxTTL: some(), DSTTL: some(), Propagation: some(), Lifetime: time.Duration(r.IntN(3)) * 5 * time.Hour}
}

// TestNoMixOfCachesIsRefused rolls over keys in random worlds: whatever resolvers have cached must validate together.
func TestNoMixOfCachesIsRefused(t *testing.T) {
	for name, do := range habits {
		keys := 0
		for seed := range uint64(12) {
			settings := randomSettings(rand.New(rand.NewPCG(seed, 2)))
			made, bad := play(seed, settings, settings, do)
			if bad != "" {
				t.Errorf("%s: %s", name, bad)
			}
			keys += int(made)
		}
		t.Logf("%s: %d keys in 12 zones", name, keys)
		if keys < 24 {
			t.Errorf("%s: %d keys in 12 zones: nothing was rolled", name, keys)
		}
	}
}

// TestEachWaitIsNeeded checks that without any of the waits some mix is refused. So the test above can fail.
func TestEachWaitIsNeeded(t *testing.T) {
	for name, without := range map[string]func(*Settings){
		"the keys' TTL":       func(s *Settings) { s.KeyTTL = 0 },
		"the records' TTL":    func(s *Settings) { s.MaxTTL = 0 },
		"the DS records' TTL": func(s *Settings) { s.DSTTL = 0 },
		"the way to servers":  func(s *Settings) { s.Propagation = 0 },
	} {
		found := false
		for seed := uint64(0); seed < 200 && !found; seed++ {
			real := randomSettings(rand.New(rand.NewPCG(seed, 2)))
			settings := real
			without(&settings)
			_, bad := play(seed, real, settings, habits["what is printed is handed in"])
			found = bad != ""
		}
		if !found {
			t.Errorf("without %s no mix was refused: the test sees nothing, or the wait is for nothing", name)
		}
	}
}
