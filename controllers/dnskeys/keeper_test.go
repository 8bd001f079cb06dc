package dnskeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys/plan"
	"federation/dnsprovider/dnssec"
)

// above is a parent zone with two servers.
type above struct {
	mu      sync.Mutex
	servers [2][]*dns.DS
	err     error
}

func (a *above) ask(context.Context, string) ([][]*dns.DS, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.servers[:]), a.err
}

// publish changes what the parent zone's servers answer.
func (a *above) publish(change func(servers *[2][]*dns.DS)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.servers)
}

// keeps rolls over keys until the test ends. last holds the last key of a zone that is signed with them.
func keeps(ctx context.Context, secrets typedcorev1.SecretInterface, a *above) (last *atomic.Pointer[dnssec.Signer], events chan string) {
	last = runs(ctx, secrets, true)
	recorder := record.NewFakeRecorder(1000)
	go Keeper{Secrets: secrets, Zone: zone, Settings: plan.DefaultSettings(time.Hour), Above: a.ask, Recorder: recorder}.Run(ctx)
	return last, recorder.Events
}

func ringOf(t *testing.T, secrets typedcorev1.SecretInterface) Ring {
	t.Helper()
	secret, err := secrets.Get(t.Context(), v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := Read(zone, secret)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func annotate(t *testing.T, secrets typedcorev1.SecretInterface, key, value string) {
	t.Helper()
	secret, err := secrets.Get(t.Context(), v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestAKeyIsRolled follows a rollover and checks what a server of the zone signs with at each point.
func TestAKeyIsRolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		secrets, a := fake.NewClientset().CoreV1().Secrets(v1beta1.FederationNamespace), &above{}
		signs, events := keeps(ctx, secrets, a)
		time.Sleep(49*time.Hour + decideEvery/2) // between two passes
		old := signs.Load().Key
		if got := signs.Load().Submitted(); len(got) != 1 || got[0].Tag() != old.Tag() {
			t.Fatalf("the parent zone is to have DS records of %v, want %d", got, old.Tag())
		}
		a.publish(func(servers *[2][]*dns.DS) { *servers = [2][]*dns.DS{{old.DS(zone)}, {old.DS(zone)}} })
		time.Sleep(askEvery)
		annotate(t, secrets, v1beta1.DNSSECKeyRolloverAnnotation, "now")
		time.Sleep(time.Hour)
		if len(signs.Load().More) != 1 || signs.Load().Key.Tag() != old.Tag() || signs.Load().Submitted()[0].Tag() != old.Tag() {
			t.Fatalf("a roll has begun: %+v", ringOf(t, secrets).State)
		}
		if waits := ringOf(t, secrets).State.Waits; !strings.Contains(waits, fmt.Sprintf("key %d signs from", signs.Load().More[0].Tag())) {
			t.Errorf("a roll that has begun waits for %q", waits)
		}
		time.Sleep(25 * time.Hour)
		next := signs.Load().Key
		if next.Tag() == old.Tag() || next.Algorithm != old.Algorithm || len(signs.Load().More) != 1 || signs.Load().Submitted()[0].Tag() != next.Tag() {
			t.Fatalf("the new key does not sign: %+v", ringOf(t, secrets).State)
		}
		a.publish(func(servers *[2][]*dns.DS) { servers[0] = []*dns.DS{next.DS(zone)} }) // the other server of the parent zone lags
		time.Sleep(3 * 24 * time.Hour)
		if ring := ringOf(t, secrets); len(signs.Load().More) != 1 || !strings.Contains(ring.State.Waits, fmt.Sprint(next.Tag())) {
			t.Fatalf("the old key went before all servers of the parent zone had followed: %+v", ring.State)
		}
		a.publish(func(servers *[2][]*dns.DS) { servers[1] = servers[0] })
		time.Sleep(50 * time.Hour)
		if ring := ringOf(t, secrets); len(signs.Load().More) != 0 || signs.Load().Key.Tag() != next.Tag() || ring.State.Waits != "" {
			t.Fatalf("the roll did not end: %+v", ring.State)
		}
		end()
		close(events)
		said := []string{}
		for e := range events {
			said = append(said, strings.Fields(e)[1])
		}
		if want := []string{"ParentZoneDSPublished", "KeyCreated", "KeyActive", "ParentZoneDSPublished", "KeyRemoved"}; !slices.Equal(said, want) {
			t.Errorf("events %q, want %q", said, want)
		}
	})
}

// TestWhoCannotAskIsTold checks that a rollover waits while the parent zone cannot be queried, reports it, and
// continues when a person confirms the DS record.
func TestWhoCannotAskIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		secrets := fake.NewClientset().CoreV1().Secrets(v1beta1.FederationNamespace)
		signs, events := keeps(ctx, secrets, &above{err: errors.New("nobody answers")})
		time.Sleep(time.Hour + decideEvery/2)
		annotate(t, secrets, v1beta1.DNSSECKeyRolloverAnnotation, "now")
		time.Sleep(80 * time.Hour)
		synctest.Wait()
		if len(signs.Load().More) != 1 {
			t.Fatalf("the roll did not wait: %+v", ringOf(t, secrets).State)
		}
		told := false
		for range len(events) {
			told = told || strings.Contains(<-events, "ParentZoneLookupFailed the parent zone cannot be asked for DS records (say what it has in the annotation")
		}
		if !told {
			t.Error("no event says that the parent zone cannot be queried")
		}
		annotate(t, secrets, v1beta1.DNSSECParentDSAnnotation, fmt.Sprint(signs.Load().Key.Tag()))
		time.Sleep(50 * time.Hour)
		synctest.Wait()
		if len(signs.Load().More) != 0 {
			t.Errorf("the roll did not go on: %+v", ringOf(t, secrets).State)
		}
	})
}

func TestWhatPeopleSayIsChecked(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets(v1beta1.FederationNamespace)
	if _, err := (Options{Secrets: secrets, Zone: zone, Make: true, Use: func(*dnssec.Signer) error { return nil }}).loadKeys(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"none": "", "11": "11", "11, 12": "11 12", "all": "must be tags", "70000": "must be tags"} {
		annotate(t, secrets, v1beta1.DNSSECParentDSAnnotation, value)
		secret, err := secrets.Get(t.Context(), v1beta1.DNSKeysSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := confirmedParent(secret)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case p != nil:
			got = strings.Trim(fmt.Sprint(p.All), "[]")
		}
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q is taken for %q, want %q", value, got, want)
		}
	}
}

// TestDSRecordsAreKnownByTheirDigest checks that a tag alone identifies no key.
func TestDSRecordsAreKnownByTheirDigest(t *testing.T) {
	key, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	good, sha384, wrong := key.DS(zone), key.DNSKEY(zone).ToDS(dns.SHA384), key.DS(zone)
	good.Digest, wrong.Digest, sha384.Hdr.Ttl = strings.ToUpper(good.Digest), strings.Repeat("0", len(wrong.Digest)), 7200
	p := matchKeys(zone, []dnssec.Key{key}, [][]*dns.DS{{good}, {sha384, good}})
	if !slices.Equal(p.All, []uint16{key.Tag()}) || !slices.Equal(p.Any, p.All) || p.Others || p.TTL != 2*time.Hour {
		t.Errorf("two servers with good records: %+v", p)
	}
	if p := matchKeys(zone, []dnssec.Key{key}, [][]*dns.DS{{good}, {wrong}}); len(p.All) != 0 || !slices.Equal(p.Any, []uint16{key.Tag()}) || !p.Others {
		t.Errorf("one server with a record of another key: %+v", p)
	}
}
