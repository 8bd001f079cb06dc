package plan

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestWhichLoadBalancersAreAlive(t *testing.T) {
	now := time.Unix(1000, 0)
	says := func(n int) string { return fmt.Sprintf(`{"region":"east","zone":"a","addresses":["192.0.2.%d"]}`, n) }
	ago := func(n int, d time.Duration) Lease { return Lease{Says: says(n), Renewed: now.Add(-d)} }
	for name, c := range map[string]struct {
		leases        map[string]Lease
		written, want map[string]string
	}{
		"those that renew their Leases": {map[string]Lease{"a": ago(1, time.Second), "b": ago(2, 2999*time.Millisecond)}, nil, map[string]string{"a": says(1), "b": says(2)}},
		"not one that died":             {map[string]Lease{"a": ago(1, time.Second), "b": ago(2, 3*time.Second)}, map[string]string{"a": says(1), "b": says(2)}, map[string]string{"a": says(1)}},
		"all seem dead: they stay":      {map[string]Lease{"a": ago(1, time.Minute), "b": ago(2, time.Hour)}, map[string]string{"a": says(1)}, map[string]string{"a": says(1)}},
		"the last one has ended":        {map[string]Lease{}, map[string]string{"a": says(1)}, map[string]string{}},
		"one says nothing that counts":  {map[string]Lease{"a": ago(1, 0), "b": {Says: "{", Renewed: now}, "c": {Says: `{"addresses":[]}`, Renewed: now}}, nil, map[string]string{"a": says(1)}},
		"one moves":                     {map[string]Lease{"a": ago(7, 0)}, map[string]string{"a": says(1)}, map[string]string{"a": says(7)}},
		"none":                          {nil, nil, map[string]string{}},
	} {
		if got := Alive(c.leases, c.written, now); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatALoadBalancerSays(t *testing.T) {
	text, err := Says(Site{Region: "east", Zone: "a"}, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, PortRanges{{5432, 5432}, {9000, 9100}}, true)
	if want := `{"region":"east","zone":"a","addresses":["192.0.2.1","2001:db8::1"],"servicePorts":"5432,9000-9100","udp":true}`; err != nil || text != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if _, err := Says(Site{}, nil, nil, false); err == nil {
		t.Error("one without addresses says something")
	}
	got := Addresses(map[string]string{"b": text, "a": `{"addresses":["192.0.2.9","192.0.2.1"]}`, "c": "x"})
	if want := "[192.0.2.1 192.0.2.9 2001:db8::1]"; fmt.Sprint(got) != want {
		t.Errorf("addresses %v, want %s", got, want)
	}
}

// TestWhatIsSaidOfRegistrations: which load balancers are alive, which are not, and why, in the words that users see.
func TestWhatIsSaidOfRegistrations(t *testing.T) {
	now := time.Unix(10_000, 0)
	says := func(n int) string { return fmt.Sprintf(`{"region":"east","zone":"a","addresses":["192.0.2.%d"]}`, n) }
	lease := func(name, says string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1beta1.LoadBalancerAnnotation: says}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now.Add(-ago)))},
		}
	}
	for name, c := range map[string]struct {
		lease     *coordinationv1.Lease
		published bool
		want      string
	}{
		"alive":                           {lease("a", says(1), time.Second), true, ""},
		"its clock is behind":             {lease("a", says(1), 20*time.Second), true, ""},
		"just begun":                      {lease("a", says(1), time.Second), false, ""},
		"dead":                            {lease("a", says(1), 10*time.Second), false, "for 10s: its addresses are out of DNS"},
		"dead, as all are: they stay":     {lease("a", says(1), time.Minute), true, "for 60s; its addresses stay in DNS"},
		"what it says cannot be used":     {lease("a", `{"addresses":[]}`, time.Second), false, "load balancer a: 0 addresses: must be from 1 to 16"},
		"it says what is not even a text": {lease("a", "{", time.Second), true, "load balancer a: unexpected end of JSON input"},
	} {
		written := map[string]string{}
		if c.published {
			written["a"] = says(1)
		}
		got := Registrations([]*coordinationv1.Lease{c.lease}, written, now)
		if len(got) != 1 || got[0].Name != "a" || got[0].Published != c.published || (got[0].Problem == "") != (c.want == "") || !strings.Contains(got[0].Problem, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestWhatIsOutIsToldAndRead: as each load balancer sees it, bounded, and nothing by what cannot be read.
func TestWhatIsOutIsToldAndRead(t *testing.T) {
	seen := map[Target]Health{target("b 192.0.2.2"): {Ejected: true}, target("a 192.0.2.1"): {Failing: true, Ejected: true}, target("c 192.0.2.3"): {Cold: 0.5}, target("d 192.0.2.4"): {Silent: true}}
	text := SaysOut(seen, []Target{target("a 192.0.2.201")})
	if want := `[{"cluster":"a","address":"192.0.2.201:80","own":true},{"cluster":"a","address":"192.0.2.1:80"},{"cluster":"b","address":"192.0.2.2:80","ejected":true},{"cluster":"d","address":"192.0.2.4:80","silent":true}]`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	r := Registration{Out: parseOut(text)}
	if got, want := r.Health(), (map[Target]Health{target("a 192.0.2.1"): {Failing: true}, target("b 192.0.2.2"): {Ejected: true}, target("d 192.0.2.4"): {Silent: true}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := r.Own(), (map[netip.Addr]bool{netip.MustParseAddr("192.0.2.201"): true}); !reflect.DeepEqual(got, want) {
		t.Errorf("own addresses %v, want %v", got, want)
	}
	many := map[Target]Health{}
	for n := range 500 {
		many[target(fmt.Sprintf("c%03d 192.0.2.1", n))] = Health{Failing: true}
	}
	if text = SaysOut(many, nil); len(text) > 8<<10 || len(parseOut(text)) != maxOut {
		t.Errorf("of 500 it tells of %d in %d bytes", len(parseOut(text)), len(text))
	}
	if n := len(parseOut("[" + strings.Repeat(`{"cluster":"x","address":"192.0.2.1:80"},`, 500) + `{}]`)); n != maxOut || SaysOut(nil, nil) != "" || parseOut("{") != nil {
		t.Errorf("%d are read", n)
	}
}
