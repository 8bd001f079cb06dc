package manager

import (
	"reflect"
	"testing"

	drillplan "federation/controllers/drill/plan"
	"federation/dnsprovider"
)

// TestRecordsServed: of each name the set of the type that is asked for; what is not there is left out.
func TestRecordsServed(t *testing.T) {
	served := map[string][]dnsprovider.RRSet{"web.": {
		{Name: "web.", Type: dnsprovider.A, Rdata: []string{"192.0.2.1", "192.0.2.2"}}, {Name: "web.", Type: dnsprovider.AAAA, Rdata: []string{"2001:db8::1"}},
	}}
	records := RecordsServed(func(name string) []dnsprovider.RRSet { return served[name] })
	got, err := records(t.Context(), []drillplan.Record{{Name: "web.", Type: "A"}, {Name: "web.", Type: "CNAME"}, {Name: "none.", Type: "A"}})
	if want := map[drillplan.Record][]string{{Name: "web.", Type: "A"}: {"192.0.2.1", "192.0.2.2"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
