package servicedns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

func set(t *testing.T, name string, typ dnsprovider.Type, data ...string) dnsprovider.RRSet {
	t.Helper()
	s, err := dnsprovider.New(name+"."+zone, typ, 15, data...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shared is a zone that others write to, with the publisher that keeps it, in the time of a synctest bubble.
type shared struct {
	*testing.T
	*memory
	world *desiredRecords
	state atomic.Pointer[ProviderState]
	kube  *fake.Clientset
}

// approve approves what the first pass would have removed.
func (s *shared) approve() {
	s.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.DNSProvidersConfigMap,
		Annotations: map[string]string{v1beta1.RemoveNamesAnnotation: "outside"}}}
	if _, err := s.kube.CoreV1().ConfigMaps(m.Namespace).Create(s.Context(), m, metav1.CreateOptions{}); err != nil {
		s.Error(err)
	}
}

func (s *shared) approved() bool {
	m, err := s.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(s.Context(), v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	return err == nil && m.Annotations[v1beta1.RemoveNamesAnnotation] != ""
}

func startShared(t *testing.T, provider dnsprovider.Provider, m *memory) *shared {
	return startPublisher(t, NamedProvider{Name: "outside", Provider: provider}, m)
}

func startPublisher(t *testing.T, provider NamedProvider, m *memory) *shared {
	s := &shared{T: t, memory: m, world: newWorld(), kube: fake.NewClientset()}
	p := newPublisher(provider, plan.Zone{Federation: "fed", Name: zone}, s.world, func(now ProviderState) { s.state.Store(&now) })
	p.kube = s.kube
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return s
}

// want makes the world one object with these records.
func (s *shared) want(sets ...dnsprovider.RRSet) {
	s.world.set(records{"web": sets}, time.Now())
	synctest.Wait()
}

// is checks the zone: lines without marks, and the number of marks.
func (s *shared) is(marks int, want ...string) {
	s.Helper()
	var got []string
	for _, line := range s.names() {
		if strings.Contains(line, "_federation") {
			marks--
		} else {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) || marks != 0 {
		s.Errorf("zone\n%q, want\n%q, and %d marks more", s.names(), want, marks)
	}
}

func (s *shared) says(reason string, published bool, words string) {
	s.Helper()
	if state := s.state.Load(); state.Reason != reason || state.Published != published || !strings.Contains(state.Message, words) {
		s.Errorf("state %+v, want %s, %t, with %q", *state, reason, published, words)
	}
}

// behind checks for which objects the provider lacks changes.
func (s *shared) behind(want ...string) {
	s.Helper()
	if got := slices.Sorted(maps.Keys(s.state.Load().Objects)); !slices.Equal(got, want) {
		s.Errorf("behind with %q, want %q", got, want)
	}
}

// edit changes the zone behind the provider's back.
func (s *shared) edit(change func([]dnsprovider.RRSet) []dnsprovider.RRSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = change(slices.Clone(s.sets))
	slices.SortFunc(s.sets, dnsprovider.Compare)
}

func TestHostsAreMarkedAndLeaveWithTheirMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := startShared(t, m, m)
		s.want(set(t, "www", dnsprovider.A, "192.0.2.1"), set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		s.is(1, "web A 192.0.2.1", "www A 192.0.2.1")
		s.says(ReasonPublished, true, "all records")
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		s.is(0, "web A 192.0.2.1")
		s.want()
		s.is(0)
	})
}

func TestWhatOthersWroteIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := []dnsprovider.RRSet{set(t, "api", "TXT", `"x"`), set(t, "mail", dnsprovider.AAAA, "2001:db8::1"), set(t, "shop", "MX", "10 mail.example.com."), set(t, "web.default.other.svc", dnsprovider.A, "192.0.2.8")}
		m := &memory{sets: slices.Clone(theirs)}
		s := startShared(t, m, m)
		s.want(set(t, "mail", dnsprovider.A, "192.0.2.1"), set(t, "shop", dnsprovider.A, "192.0.2.1"), set(t, "api", dnsprovider.CNAME, "lb.test"))
		s.is(1, `api TXT "x"`, "mail AAAA 2001:db8::1", "shop A 192.0.2.1", "shop MX 10 mail", "web.default.other.svc A 192.0.2.8")
		s.says(ReasonNameConflict, true, "api.example.com., mail.example.com.")

		s.edit(func(sets []dnsprovider.RRSet) []dnsprovider.RRSet {
			return slices.DeleteFunc(sets, theirs[1].Equal)
		})
		time.Sleep(resyncTime) // mail is free now
		synctest.Wait()
		s.is(2, `api TXT "x"`, "mail A 192.0.2.1", "shop A 192.0.2.1", "shop MX 10 mail", "web.default.other.svc A 192.0.2.8")
		s.want()
		s.is(0, `api TXT "x"`, "shop MX 10 mail", "web.default.other.svc A 192.0.2.8")
	})
}

func TestAZoneEditedByHandIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := startShared(t, m, m)
		s.want(set(t, "www", dnsprovider.A, "192.0.2.1"), set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		time.Sleep(settleTime)
		synctest.Wait()
		s.edit(func(sets []dnsprovider.RRSet) []dnsprovider.RRSet {
			kept := slices.DeleteFunc(sets, func(s dnsprovider.RRSet) bool { return s.Name == "www.example.com." })
			return append(kept, set(t, "www", dnsprovider.A, "192.0.2.66"))
		})
		calls := s.callCount()
		time.Sleep(resyncTime)
		synctest.Wait()
		s.is(1, "web A 192.0.2.1", "www A 192.0.2.1")
		s.says(ReasonDriftCorrected, true, "www.example.com.")
		time.Sleep(settleTime)
		synctest.Wait()
		s.says(ReasonPublished, true, "")
		if n := s.callCount() - calls; n > 1 {
			t.Errorf("%d calls for one repair", n)
		}
	})
}

// liar reports success without applying.
type liar struct{ *memory }

func (liar) Apply(context.Context, string, dnsprovider.ChangeSet) error { return nil }

func TestAProviderThatLiesIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := startShared(t, liar{m}, m)
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		time.Sleep(settleTime)
		synctest.Wait()
		time.Sleep(2 * settleTime)
		synctest.Wait()
		s.says(ReasonChangesNotApplied, false, "web.default.fed.svc.example.com.")
	})
}

func TestAFailingProviderSaysSoAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{fails: 3}
		s := startShared(t, m, m)
		s.want(set(t, "www", dnsprovider.A, "192.0.2.1"))
		s.says(ReasonFailing, false, "the provider is away")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.is(1, "www A 192.0.2.1")
		s.says(ReasonPublished, true, "")
	})
}

// A call without an answer says nothing about the state before it: changes that wait for it are out of sync.
func TestAHungProviderIsBehindWhileTheCallIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{gate: make(chan struct{}, 1)}
		s := startShared(t, m, m)
		m.gate <- struct{}{}
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		s.says(ReasonPublished, true, "all records")
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.2"))
		time.Sleep(behindAfter - time.Second)
		synctest.Wait()
		s.says(ReasonPublished, true, "")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.says(ReasonNotResponding, false, "has not answered since")
		s.behind("web")

		s.world.set(records{"api": {set(t, "api.default.fed.svc", dnsprovider.A, "192.0.2.5")}}, time.Now()) // it waits behind that call
		time.Sleep(behindAfter + time.Second)
		synctest.Wait()
		s.behind("api", "web")

		m.gate <- struct{}{}
		synctest.Wait()
		s.says(ReasonNotResponding, false, "") // the next call is in flight
		s.behind("api")
		m.gate <- struct{}{}
		synctest.Wait()
		s.says(ReasonPublished, true, "")
		s.behind()
	})
}

// A process that was paused while it led must not bring back what its successor has changed since.
func TestAProviderIsWrittenByTheLeaderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, closed := &memory{}, errors.New("the Lease was not renewed in time")
		s := &shared{T: t, memory: m, world: newWorld(), kube: fake.NewClientset()}
		c := &Controller{Options: Options{Federation: "fed", Zone: zone, Kube: s.kube, Providers: []NamedProvider{{Name: "outside", Provider: m}}}, world: s.world}
		c.Report = func(now ProviderState) { s.state.Store(&now) }
		c.told = newConditions(c.Options, &c.stores)
		var leads atomic.Bool
		c.Fence = func() error {
			if leads.Load() {
				return nil
			}
			return closed
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.publish(ctx, false); close(done) }()
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		time.Sleep(time.Second)
		synctest.Wait()
		if sets, _ := m.Records(ctx, zone); len(sets) > 0 {
			t.Errorf("written by who may not lead: %v", sets)
		}
		s.says(ReasonFailing, false, closed.Error())
		leads.Store(true)
		time.Sleep(maxBackoff)
		synctest.Wait()
		if sets, _ := m.Records(ctx, zone); len(sets) == 0 {
			t.Error("not written by who leads")
		}
		stop()
		<-done
	})
}

// A panic in a call ends only its publisher, which is restarted.
func TestAPanicOfAProviderIsThatOfItsPublisher(t *testing.T) {
	m := &memory{}
	p := newPublisher(NamedProvider{Name: "outside", Provider: m}, plan.Zone{Name: zone}, newWorld(), func(ProviderState) {})
	defer func() {
		if r := recover(); !strings.Contains(fmt.Sprint(r), "out of its mind") {
			t.Errorf("recovered from %v", r)
		}
	}()
	_ = p.withWatchdog(func() error { panic("out of its mind") })
}

// A provider may hang from the start: then its content is unknown.
func TestAProviderThatNeverAnsweredSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{gate: make(chan struct{}, 1)}
		s := startShared(t, m, m)
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		time.Sleep(behindAfter + time.Second)
		synctest.Wait()
		s.says(ReasonNotResponding, false, "its zone is unknown")
		m.gate <- struct{}{}
		synctest.Wait()
		s.says(ReasonPublished, true, "")
	})
}

// Changes also come while the next attempt is delayed.
func TestWhatWaitsForTheNextAttemptIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := startShared(t, m, m)
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
		m.mu.Lock()
		m.fails = 1000
		m.mu.Unlock()
		s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.2"))
		time.Sleep(112 * time.Second) // the last attempt was a moment ago, and the next is half a minute away
		synctest.Wait()
		s.says(ReasonFailing, false, "the provider is away")
		s.world.set(records{"api": {set(t, "api.default.fed.svc", dnsprovider.A, "192.0.2.5")}}, time.Now())
		time.Sleep(behindAfter + time.Second)
		synctest.Wait()
		s.says(ReasonFailing, false, "the provider is away")
		s.behind("api", "web")
	})
}

// named returns names of Services, each with an address.
func named(t *testing.T, names ...string) (sets []dnsprovider.RRSet) {
	for i, name := range names {
		sets = append(sets, set(t, name+".default.fed.svc", dnsprovider.A, fmt.Sprintf("192.0.2.%d", i+1)))
	}
	return sets
}

// A federation with a new or restored store knows nothing of what runs: it must not empty the zone.
func TestMostNamesAreNotRemovedInTheFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{sets: append(named(t, "a", "b", "c", "d"), set(t, "www", dnsprovider.A, "192.0.2.9")), fails: 1}
		s := startShared(t, m, m)
		s.want(named(t, "e")...)
		time.Sleep(time.Second) // the first attempt fails
		synctest.Wait()
		s.is(0, "a A 192.0.2.1", "b A 192.0.2.2", "c A 192.0.2.3", "d A 192.0.2.4", "e A 192.0.2.1", "www A 192.0.2.9")
		s.says(ReasonRemovalPendingApproval, false, "4 of 4")
		s.says(ReasonRemovalPendingApproval, false, "kubectl annotate -n federation-system configmap federation-dns-providers federation.kubernetes.io/remove-names=outside")
		time.Sleep(2 * resyncTime) // it is no drift
		synctest.Wait()
		s.is(0, "a A 192.0.2.1", "b A 192.0.2.2", "c A 192.0.2.3", "d A 192.0.2.4", "e A 192.0.2.1", "www A 192.0.2.9")
		s.says(ReasonRemovalPendingApproval, false, "4 of 4")

		s.want(set(t, "b.default.fed.svc", dnsprovider.A, "192.0.2.22")) // one is wanted after all, and e is gone
		s.is(0, "a A 192.0.2.1", "b A 192.0.2.22", "c A 192.0.2.3", "d A 192.0.2.4", "www A 192.0.2.9")
		s.says(ReasonRemovalPendingApproval, false, "3 of 4")

		s.approve()
		time.Sleep(settleTime)
		synctest.Wait()
		s.is(0, "b A 192.0.2.22", "www A 192.0.2.9")
		s.says(ReasonPublished, true, "")
		if s.approved() {
			t.Error("the approval is there for another time")
		}
	})
}

// Half of the names may go in the first pass, and everything later.
func TestSomeNamesAreRemovedInTheFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{sets: named(t, "a", "b", "c", "d")}
		s := startShared(t, m, m)
		s.want(named(t, "a", "b")...)
		s.is(0, "a A 192.0.2.1", "b A 192.0.2.2")
		s.want()
		s.is(0)
		s.says(ReasonPublished, true, "")
	})
}

// Names removed by hand need no approval.
func TestWhatIsHeldMayGoByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{sets: named(t, "a", "b")}
		s := startShared(t, m, m)
		s.want()
		s.says(ReasonRemovalPendingApproval, false, "2 of 2")
		s.edit(func([]dnsprovider.RRSet) []dnsprovider.RRSet { return nil })
		time.Sleep(resyncTime)
		synctest.Wait()
		s.says(ReasonPublished, true, "")
	})
}

func TestNothingLeavesTheZoneBeforeTheWorldIsPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{sets: named(t, "api", "web")}
		s := startShared(t, m, m)
		time.Sleep(2 * resyncTime) // until the federation's caches have it
		synctest.Wait()
		s.is(0, "api A 192.0.2.1", "web A 192.0.2.2")
		s.want(named(t, "api")...)
		s.is(0, "api A 192.0.2.1")
	})
}

// The zone may be due for a read while a local provider fails. Its missing records are not forgotten then.
func TestALocalProviderThatFailedForLongGetsAll(t *testing.T) {
	for range 20 { // which of two wake-ups comes first is random
		synctest.Test(t, func(t *testing.T) {
			m := &memory{fails: 1000}
			s := startPublisher(t, NamedProvider{Name: "local", Provider: m, Local: true}, m)
			s.want(set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1"))
			time.Sleep(resyncTime)
			m.mu.Lock()
			m.fails = 0
			m.mu.Unlock()
			time.Sleep(maxBackoff)
			synctest.Wait()
			s.is(0, "web A 192.0.2.1")
			s.says(ReasonPublished, true, "")
		})
	}
}

func TestASlowProviderDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := &memory{}, &memory{gate: make(chan struct{})}
		c := &Controller{Options: Options{Zone: zone, Federation: "fed", Providers: []NamedProvider{{Name: "slow", Provider: slow}, {Name: "fast", Provider: fast}}}, world: newWorld(), told: newConditions(Options{}, nil)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Lead(ctx); close(done) }()
		c.world.set(records{"web": {set(t, "web.default.fed.svc", dnsprovider.A, "192.0.2.1")}}, time.Now())
		synctest.Wait()
		if got := fast.names(); !slices.Equal(got, []string{"web A 192.0.2.1"}) {
			t.Errorf("the fast one has %q", got)
		}
		if got := slow.names(); len(got) > 0 {
			t.Errorf("the slow one has %q already", got)
		}
		close(slow.gate)
		synctest.Wait()
		if got := slow.names(); !slices.Equal(got, []string{"web A 192.0.2.1"}) {
			t.Errorf("the slow one has %q", got)
		}
		stop()
		<-done
	})
}

// chooser keeps variants.
type chooser struct{ *memory }

func (chooser) Chooses() {}

func TestOnlyAProviderThatChoosesHasVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weighted, err := dnsprovider.NewChoice("web.default.fed.svc."+zone, dnsprovider.A, 15,
			dnsprovider.Variant{Rdata: []string{"192.0.2.1"}, Weight: 1}, dnsprovider.Variant{Rdata: []string{"192.0.2.2"}, Weight: 3})
		if err != nil {
			t.Fatal(err)
		}
		plain, choosing := &memory{}, &memory{}
		startShared(t, plain, plain).want(weighted)
		startShared(t, chooser{choosing}, choosing).want(weighted)
		if got := plain.sets; len(got) != 1 || !got[0].Equal(weighted.Plain()) {
			t.Errorf("one that does not choose has %v", got)
		}
		if got := choosing.sets; len(got) != 1 || !got[0].Equal(weighted) {
			t.Errorf("one that chooses has %v", got)
		}
	})
}

// holding is a provider with a zone file that has some names.
type holding struct {
	dnsprovider.Provider
	names []string
}

func (h *holding) Held() []string { return h.names }

func TestNamesThatAZoneFileHoldsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		h := &holding{Provider: m}
		s := startShared(t, h, m)
		s.want(set(t, "www", dnsprovider.A, "192.0.2.1"))
		s.says(ReasonPublished, true, "all records")
		h.names = []string{"www." + zone}
		s.want(set(t, "www", dnsprovider.A, "192.0.2.2"))
		s.says(ReasonOverriddenByZoneFile, true, "held by the zone file, which wins over the federation: www.example.com.")
	})
}
