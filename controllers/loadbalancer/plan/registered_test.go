package plan

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"
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
	text, err := Says(Site{Region: "east", Zone: "a"}, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")})
	if want := `{"region":"east","zone":"a","addresses":["192.0.2.1","2001:db8::1"]}`; err != nil || text != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if _, err := Says(Site{}, nil); err == nil {
		t.Error("one without addresses says something")
	}
	got := Addresses(map[string]string{"b": text, "a": `{"addresses":["192.0.2.9","192.0.2.1"]}`, "c": "x"})
	if want := "[192.0.2.1 192.0.2.9 2001:db8::1]"; fmt.Sprint(got) != want {
		t.Errorf("addresses %v, want %s", got, want)
	}
}
