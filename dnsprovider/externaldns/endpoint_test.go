package externaldns

import (
	"encoding/json"
	"testing"

	"federation/dnsprovider"
)

func TestSetsAndEndpointsAreTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   dnsprovider.Type
		rdata []string
		json  string
	}{
		{"a.example", dnsprovider.A, []string{"192.0.2.1", "192.0.2.2"}, `{"dnsName":"a.example","targets":["192.0.2.1","192.0.2.2"],"recordType":"A","recordTTL":15}`},
		{"a.example", dnsprovider.CNAME, []string{"b.example"}, `{"dnsName":"a.example","targets":["b.example"],"recordType":"CNAME","recordTTL":15}`},
		{"a.example", "TXT", []string{`"owner=x"`}, `{"dnsName":"a.example","targets":["\"owner=x\""],"recordType":"TXT","recordTTL":15}`},
	} {
		set, err := dnsprovider.New(c.name, c.typ, 15, c.rdata...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(Of(set))
		if err != nil || string(text) != c.json {
			t.Errorf("%s is %s, %v, want %s", set, text, err, c.json)
		}
		var e Endpoint
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		if back, ok := e.Set(); !ok || !back.Equal(set) {
			t.Errorf("%s came back as %s", set, back)
		}
	}
}

func TestInZoneLeavesOutWhatIsNoPlainSet(t *testing.T) {
	plain := Endpoint{DNSName: "a.example", Targets: []string{"192.0.2.1"}, RecordType: "A", Labels: map[string]string{"owner": "x"}}
	var list []Endpoint
	for _, change := range []func(*Endpoint){
		func(*Endpoint) {},
		func(e *Endpoint) { e.Targets = []string{"192.0.2.2"} }, // the same again
		func(e *Endpoint) { e.DNSName = "*.example" },
		func(e *Endpoint) { e.DNSName = "a.example.org" },
		func(e *Endpoint) { e.DNSName, e.SetIdentifier = "b.example", "one" },
		func(e *Endpoint) { e.DNSName, e.RecordTTL = "c.example", -1 },
		func(e *Endpoint) { e.DNSName, e.Targets = "d.example", nil },
		func(e *Endpoint) { e.DNSName, e.RecordType, e.Targets = "example", "NS", []string{"ns.test"} },
	} {
		e := plain
		change(&e)
		list = append(list, e)
	}
	sets, byKey := InZone(list, "example.")
	if len(sets) != 1 || sets[0].String() != "a.example. 0 IN A 192.0.2.1" || byKey[KeyOf(sets[0])].Labels["owner"] != "x" {
		t.Errorf("%v, %v, want the first alone", sets, byKey)
	}
}

func FuzzEndpoint(f *testing.F) {
	f.Add([]byte(`[{"dnsName":"a.example","targets":["192.0.2.1"],"recordType":"A","recordTTL":15}]`))
	f.Add([]byte(`[{"dnsName":"A.Example.","targets":["\u0000",""],"recordType":"cname","recordTTL":99999999999}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []Endpoint
		if json.Unmarshal(data, &list) != nil {
			return
		}
		sets, byKey := InZone(list, "example.")
		for _, set := range sets {
			if _, ok := byKey[KeyOf(set)]; !ok || !dnsprovider.InZone(set.Name, "example.") {
				t.Errorf("%s is no set of the zone", set)
			}
			if again, err := dnsprovider.New(set.Name, set.Type, set.TTL, set.Rdata...); err != nil || !again.Equal(set) {
				t.Errorf("%s is not canonical: %v", set, err)
			}
		}
	})
}
