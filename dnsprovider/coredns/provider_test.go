package coredns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
	"federation/dnsprovider/servertest"
)

func TestCoreDNSConforms(t *testing.T) {
	etcd := startEtcd(t)
	providertest.Run(t, testZone, func(t *testing.T) dnsprovider.Provider {
		if _, err := etcd.Delete(context.Background(), "/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		return newProvider(t, etcd)
	})
}

// TestCoreDNSAnswers asks a real CoreDNS for what was put into etcd, and shows its peculiarities.
func TestCoreDNSAnswers(t *testing.T) {
	etcd := startEtcd(t)
	address := startCoreDNS(t, etcd)
	web := providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.1", "192.0.2.2")
	apply(t, newProvider(t, etcd), dnsprovider.Diff(nil, []dnsprovider.RRSet{
		web, providertest.Set(t, "web."+testZone, dnsprovider.AAAA, "2001:db8::1"), providertest.Set(t, "web."+testZone, dnsprovider.TXT, `"owner=federation"`),
		providertest.Set(t, "below.web."+testZone, dnsprovider.A, "192.0.2.3"), providertest.Set(t, "alias."+testZone, dnsprovider.CNAME, web.Name),
		providertest.Set(t, "only.below.empty."+testZone, dnsprovider.A, "192.0.2.4"),
	}))
	for _, c := range []struct {
		name string
		t    uint16
		want string
	}{
		{"web", dns.TypeA, "NOERROR A 192.0.2.1, A 192.0.2.2"},
		{"web", dns.TypeAAAA, "NOERROR AAAA 2001:db8::1"},
		{"web", dns.TypeTXT, `NOERROR TXT "owner=federation"`},
		{"below.web", dns.TypeA, "NOERROR A 192.0.2.3"},
		{"alias", dns.TypeA, "NOERROR A 192.0.2.1, A 192.0.2.2, CNAME web.example.test."},
		{"none", dns.TypeA, "NXDOMAIN "},
		{"only.below.empty", dns.TypeAAAA, "NOERROR "},
		// what the package warns of: it should be no data, the CNAME, and no data
		{"empty", dns.TypeA, "NOERROR A 192.0.2.4"},
		{"alias", dns.TypeCNAME, "NXDOMAIN "},
		{"", dns.TypeNS, "NXDOMAIN "},
	} {
		reply, err := dns.Exchange(new(dns.Msg).SetQuestion(strings.TrimPrefix(c.name+"."+testZone, "."), c.t), address)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(reply); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, dns.TypeToString[c.t], got, c.want)
		}
	}
}

// answer returns a reply's code and records, sorted.
func answer(m *dns.Msg) string {
	var records []string
	for _, rr := range m.Answer {
		records = append(records, dns.TypeToString[rr.Header().Rrtype]+" "+strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(records)
	return dns.RcodeToString[m.Rcode] + " " + strings.Join(records, ", ")
}

// TestCoreDNSSwitchIsAtomic asks a real CoreDNS while a name becomes a CNAME and back.
func TestCoreDNSSwitchIsAtomic(t *testing.T) {
	etcd := startEtcd(t)
	address, p := startCoreDNS(t, etcd), newProvider(t, etcd)
	other := providertest.Set(t, "other."+testZone, dnsprovider.A, "192.0.2.3")
	states := [][]dnsprovider.RRSet{
		{providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.1", "192.0.2.2"), providertest.Set(t, "web."+testZone, dnsprovider.AAAA, "2001:db8::1"), other},
		{providertest.Set(t, "web."+testZone, dnsprovider.CNAME, other.Name), other},
	}
	apply(t, p, dnsprovider.Diff(nil, states[0]))
	servertest.AskWhile(t, address, "web."+testZone, 2, func() {
		for i := range 200 {
			apply(t, p, dnsprovider.Diff(states[i%2], states[1-i%2]))
		}
	})
}

// TestCoreDNSRepairsHandEdit: others put keys beside ours, in SkyDNS' ways of doing so.
func TestCoreDNSRepairsHandEdit(t *testing.T) {
	etcd := startEtcd(t)
	p := newProvider(t, etcd)
	put := func(key, value string) {
		t.Helper()
		if _, err := etcd.Put(context.Background(), "/skydns/test/example/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	one := providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.1")
	apply(t, p, dnsprovider.Diff(nil, []dnsprovider.RRSet{one}))
	put("by-hand", `{"host":"192.0.2.7"}`)
	put("by-hand/x1", `{"host":"192.0.2.8","ttl":20,"port":80}`)
	put("both", `{"host":"192.0.2.9","text":"two in one"}`)
	put("dns/ns/a", `{"host":"192.0.2.53"}`)
	put("no/json", `{`)
	put("no name", `{"host":"192.0.2.9"}`)
	put("web/_fother", `{"host":"192.0.2.66","ttl":15}`)

	have, err := p.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	want := `- both.example.test. 300 IN A 192.0.2.9
- both.example.test. 300 IN TXT "two in one"
- by-hand.example.test. 300 IN A 192.0.2.7
- web.example.test. 15 IN A 192.0.2.1
- web.example.test. 15 IN A 192.0.2.66
- x1.by-hand.example.test. 20 IN A 192.0.2.8
`
	if got := dnsprovider.Diff(have, nil).String(); got != want {
		t.Errorf("records\n%swant\n%s", got, want)
	}
	var conflict *dnsprovider.ConflictError
	err = p.Apply(context.Background(), testZone, dnsprovider.Diff([]dnsprovider.RRSet{one}, nil))
	if !errors.As(err, &conflict) || len(conflict.Found.Rdata) != 2 {
		t.Errorf("error %v, want a conflict that names the value by hand", err)
	}
	err = p.Apply(context.Background(), testZone, dnsprovider.Diff(have[:1], nil))
	if err == nil || !strings.Contains(err.Error(), "/skydns/test/example/both") {
		t.Errorf("error %v, want that a key has two records", err)
	}
	apply(t, p, dnsprovider.Diff(have, []dnsprovider.RRSet{one}))
	if have, err = p.Records(context.Background(), testZone); err != nil || len(have) != 1 || !have[0].Equal(one) {
		t.Errorf("after the repair there is %v, %v", have, err)
	}
}

// racing has somebody else write between reading and writing.
type racing struct {
	clientv3.KV
	write func()
}

func (r *racing) Txn(ctx context.Context) clientv3.Txn { return &racingTxn{r.KV.Txn(ctx), r} }

type racingTxn struct {
	clientv3.Txn
	r *racing
}

func (x *racingTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	if len(conditions) > 0 {
		x.r.write()
	}
	return x.Txn.If(conditions...)
}

func TestWriteInBetweenIsSeen(t *testing.T) {
	etcd := startEtcd(t)
	one, two := providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.1"), providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.2")
	for name, write := range map[string]func() error{
		"another record": func() error {
			_, err := etcd.Put(context.Background(), "/skydns/test/example/web/"+ours+"x", `{"host":"192.0.2.66"}`)
			return err
		},
		"a record of the old kind": func() error {
			_, err := etcd.Put(context.Background(), "/skydns/test/example/web", `{"host":"192.0.2.66"}`)
			return err
		},
		"a deletion": func() error {
			_, err := etcd.Delete(context.Background(), "/skydns/test/example/web", clientv3.WithPrefix())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := etcd.Delete(context.Background(), "/skydns", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			apply(t, newProvider(t, etcd), dnsprovider.Diff(nil, []dnsprovider.RRSet{one}))
			p := newProvider(t, &racing{KV: etcd, write: func() {
				if err := write(); err != nil {
					t.Error(err)
				}
			}})
			err := p.Apply(context.Background(), testZone, dnsprovider.Diff([]dnsprovider.RRSet{one}, []dnsprovider.RRSet{two}))
			var conflict *dnsprovider.ConflictError
			if !errors.As(err, &conflict) {
				t.Errorf("error %v, want a conflict", err)
			}
		})
	}
}

func TestCoreDNSErrors(t *testing.T) {
	if _, err := New(Options{Zones: []string{"a..b"}}); err == nil || !strings.Contains(err.Error(), "a..b") {
		t.Errorf("a wrong zone: %v", err)
	}
	p := newProvider(t, newClient(t, "http://127.0.0.1:1"))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	err := p.Apply(ctx, testZone, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), testZone) {
		t.Errorf("etcd is away: %v", err)
	}
	away, tries := errors.New("etcd is away"), 0
	p, err = New(Options{Zones: []string{testZone}, Connect: func() (clientv3.KV, error) {
		if tries++; tries < 3 {
			return nil, away
		}
		return startEtcd(t), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for try := range 3 {
		if err := p.Apply(context.Background(), testZone, nil); errors.Is(err, away) != (try < 2) {
			t.Errorf("try %d to connect: %v", try, err)
		}
	}
	zero := providertest.Set(t, "web."+testZone, dnsprovider.A, "192.0.2.1")
	zero.TTL = 0
	if _, err := valueOf(zero, "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("TTL 0: %v", err)
	}
}

// FuzzEntries: whatever is in etcd, reading it ends well, and what comes out are sets that New makes.
func FuzzEntries(f *testing.F) {
	f.Add("test/example/web/_f0", `{"host":"192.0.2.1","ttl":15}`)
	f.Add("test/example", `{"text":"\u0000\"\\;","host":"a..b"}`)
	s := &store{prefix: "/skydns"}
	f.Fuzz(func(t *testing.T, key, value string) {
		for _, set := range setsOf(s.entries([]*mvccpb.KeyValue{{Key: []byte("/skydns/" + key), Value: []byte(value)}})) {
			again, err := dnsprovider.New(set.Name, set.Type, set.TTL, set.Rdata...)
			if err != nil || !again.Equal(set) {
				t.Errorf("%q %q: set %v is not canonical: %v", key, value, set, err)
			}
			if set.Type == dnsprovider.TXT {
				if _, err := dns.NewRR(fmt.Sprint(set)); err != nil {
					t.Errorf("%q: %v", set, err)
				}
			}
		}
	})
}
