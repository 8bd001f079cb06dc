package servicedns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// refuses is a provider that refuses some names, and reserves one.
type refuses struct {
	*memory
	names atomic.Value // of []string
}

func newRefuses(m *memory, names ...string) *refuses {
	r := &refuses{memory: m}
	r.names.Store(names)
	return r
}

func (r *refuses) Apply(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	names := r.names.Load().([]string)
	for _, step := range changes {
		if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(step.Name, name+".") && len(step.New) > 0 }); i >= 0 {
			return dnsprovider.Refusef("it has no place for %s", names[i])
		}
	}
	return r.memory.Apply(ctx, zone, changes)
}

func (r *refuses) Reserves(name string) bool { return name == zone }

// refused returns the objects whose records a provider refuses.
func (s *shared) refused() (keys []string) {
	for key, why := range s.state.Load().Objects {
		if why.Code == plan.Rejected {
			keys = append(keys, key+": "+why.Message)
		}
	}
	slices.Sort(keys)
	return keys
}

// A refused name affects only its object: all others are published, now and later. It is retried with growing delays,
// and at once when it changes.
func TestARefusedNameCostsItsOwnerOnly(t *testing.T) {
	for _, local := range []bool{true, false} {
		t.Run(fmt.Sprintf("local %t", local), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				r := newRefuses(m, "bad")
				s := startPublisher(t, NamedProvider{Name: "outside", Provider: r, Local: local}, m)
				world := records{"Service shop/bad": {set(t, "bad", dnsprovider.A, "192.0.2.66"), set(t, "bad2", dnsprovider.A, "192.0.2.66")}}
				for i := range 99 {
					world[fmt.Sprintf("Service shop/n%02d", i)] = []dnsprovider.RRSet{set(t, fmt.Sprintf("n%02d", i), dnsprovider.A, "192.0.2.1")}
				}
				s.world.set(world, time.Now())
				synctest.Wait()
				has := func(names int) {
					t.Helper()
					sets := slices.DeleteFunc(s.names(), func(line string) bool { return strings.Contains(line, "_federation") })
					if len(sets) != names {
						t.Errorf("%d names, want %d: %q", len(sets), names, sets)
					}
				}
				has(100)
				if got := s.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "Service shop/bad: it refuses bad.example.com.: it has no place for bad") {
					t.Errorf("refused: %q", got)
				}
				s.says(ReasonRejected, true, "bad.example.com.")

				// Others proceed with one call each.
				before := s.callCount()
				s.world.set(records{"Service shop/n00": {set(t, "n00", dnsprovider.A, "192.0.2.2")}}, time.Now())
				synctest.Wait()
				if lines := s.names(); !slices.Contains(lines, "n00 A 192.0.2.2") || s.callCount() != before+1 {
					t.Errorf("%d calls: %q", s.callCount()-before, lines[:3])
				}
				// It stays so after reading the zone, with few calls.
				before = s.callCount()
				time.Sleep(time.Hour)
				synctest.Wait()
				has(100)
				s.says(ReasonRejected, true, "bad.example.com.")
				if calls := s.callCount() - before; calls > 30 {
					t.Errorf("%d calls in an hour", calls)
				}
				// Its owner corrects it: applied at once.
				s.world.set(records{"Service shop/bad": {set(t, "good", dnsprovider.A, "192.0.2.66"), set(t, "bad2", dnsprovider.A, "192.0.2.66")}}, time.Now())
				synctest.Wait()
				has(101)
				s.says(ReasonPublished, true, "all records")
				// The provider accepts it after all: applied soon.
				s.world.set(records{"Service shop/bad": {set(t, "bad", dnsprovider.A, "192.0.2.66")}}, time.Now())
				synctest.Wait()
				has(99)
				r.names.Store([]string(nil))
				time.Sleep(maxPause)
				synctest.Wait()
				has(100)
				s.says(ReasonPublished, true, "all records")
			})
		})
	}
}

// A refused change leaves the previous records, but records that leave for another reason do leave.
func TestARefusedChangeLeavesWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := newRefuses(m)
		s := startPublisher(t, NamedProvider{Name: "outside", Provider: r}, m)
		s.want(set(t, "www", dnsprovider.A, "192.0.2.1"))
		r.names.Store([]string{"www"})
		s.want(set(t, "www", dnsprovider.A, "192.0.2.2"))
		s.is(1, "www A 192.0.2.1")
		time.Sleep(time.Hour)
		synctest.Wait()
		s.is(1, "www A 192.0.2.1")
		s.want()
		s.is(0)
		s.says(ReasonPublished, true, "all records")
	})
}

// Most names are refused, as by a key without permission: no pass runs for ever, and the provider's state reports it.
func TestAProviderThatRefusesAllSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		var names []string
		world := records{}
		for i := range 500 {
			name := fmt.Sprintf("n%03d", i)
			names = append(names, name)
			world["Service shop/"+name] = []dnsprovider.RRSet{set(t, name, dnsprovider.A, "192.0.2.1")}
		}
		r := newRefuses(m, names...)
		s := startPublisher(t, NamedProvider{Name: "outside", Provider: r}, m)
		s.world.set(world, time.Now())
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(s.refused()); got != 500 {
			t.Errorf("%d objects refused", got)
		}
		s.says(ReasonRejected, false, "and 495 more")
		r.names.Store([]string(nil))
		time.Sleep(maxPause)
		synctest.Wait()
		s.says(ReasonPublished, true, "all records")
	})
}

// The zone's own name is reserved by this provider: it is not tried there, but elsewhere.
func TestAReservedNameIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apex, err := dnsprovider.New(zone, dnsprovider.A, 15, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		m := &memory{}
		s := startPublisher(t, NamedProvider{Name: "built-in", Provider: newRefuses(m), Local: true}, m)
		s.world.set(records{"Ingress shop/web": {apex, set(t, "www", dnsprovider.A, "192.0.2.1")}, "Ingress other/web": {set(t, "other", dnsprovider.A, "192.0.2.1")}}, time.Now())
		synctest.Wait()
		s.is(0, "other A 192.0.2.1", "www A 192.0.2.1")
		if got := s.refused(); len(got) != 1 || !strings.Contains(got[0], "Ingress shop/web: it cannot have example.com.: the server's own records are there") {
			t.Errorf("refused: %q", got)
		}
		s.world.set(records{"Ingress shop/web": {set(t, "www", dnsprovider.A, "192.0.2.1")}}, time.Now())
		synctest.Wait()
		if got := s.refused(); len(got) != 0 {
			t.Errorf("refused: %q", got)
		}
	})
}
