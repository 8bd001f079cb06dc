package clouddns

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/api/dns/v1"
)

// fake is a server that behaves as the API reference of Cloud DNS (v1) says: transactions whose
// deletions must match in every value and whose additions must be new, pages (of 100 here), limits of a
// Change, too many requests, several zones of one name, Changes that are pending at first.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	zones map[string]*managed // by resource name
	// deny are codes and reasons that the next requests get.
	deny []denial
	// changes are the additions of the Changes that were taken.
	changes []int
}

type denial struct {
	code   int
	reason string
}

type managed struct {
	dnsName, visibility string
	sets                map[string]*dns.ResourceRecordSet // by name and type
}

func startFake(t *testing.T, zones map[string]*managed) *fake {
	f := &fake{zones: zones}
	for _, z := range zones {
		if z.sets == nil {
			z.sets = map[string]*dns.ResourceRecordSet{}
		}
		for typ, data := range map[string]string{"SOA": "ns.google. host.google. 1 21600 3600 259200 300", "NS": "ns.google."} {
			z.sets[z.dnsName+" "+typ] = &dns.ResourceRecordSet{Name: z.dnsName, Type: typ, Ttl: 21600, Rrdatas: []string{data}}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dns/v1/projects/{project}/managedZones", f.listZones)
	mux.HandleFunc("GET /dns/v1/projects/{project}/managedZones/{zone}/rrsets", f.listSets)
	mux.HandleFunc("POST /dns/v1/projects/{project}/managedZones/{zone}/changes", f.change)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.deny) > 0 {
			d := f.deny[0]
			f.deny = f.deny[1:]
			fail(w, d.code, d.reason, "told to deny")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"error": {"code": %d, "message": %q, "errors": [{"message": %[2]q, "domain": "global", "reason": %q}]}}`, code, message, reason)
}

func give(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

// page returns some of the keys after the token, and the token for the next ones.
func page(keys []string, token string) ([]string, string) {
	keys = slices.DeleteFunc(keys, func(k string) bool { return k <= token })
	if len(keys) <= 100 {
		return keys, ""
	}
	return keys[:100], keys[99]
}

func (f *fake) listZones(w http.ResponseWriter, r *http.Request) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.zones)), func(n string) bool { return f.zones[n].dnsName != r.FormValue("dnsName") })
	names, next := page(names, r.FormValue("pageToken"))
	out := &dns.ManagedZonesListResponse{NextPageToken: next}
	for _, name := range names {
		out.ManagedZones = append(out.ManagedZones, &dns.ManagedZone{Name: name, DnsName: f.zones[name].dnsName, Visibility: f.zones[name].visibility})
	}
	give(w, out)
}

func (f *fake) zone(w http.ResponseWriter, r *http.Request) *managed {
	zone, ok := f.zones[r.PathValue("zone")]
	if !ok {
		fail(w, 404, "notFound", "The 'parameters.managedZone' resource named '"+r.PathValue("zone")+"' does not exist.")
		return nil
	}
	return zone
}

func (f *fake) listSets(w http.ResponseWriter, r *http.Request) {
	zone := f.zone(w, r)
	if zone == nil {
		return
	}
	keys, next := page(slices.Sorted(maps.Keys(zone.sets)), r.FormValue("pageToken"))
	out := &dns.ResourceRecordSetsListResponse{NextPageToken: next}
	for _, key := range keys {
		out.Rrsets = append(out.Rrsets, zone.sets[key])
	}
	give(w, out)
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	zone := f.zone(w, r)
	if zone == nil {
		return
	}
	var in dns.Change
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, 400, "parseError", err.Error())
		return
	}
	if len(in.Additions) > maxSets || len(in.Deletions) > maxSets {
		fail(w, 403, "quotaExceeded", "more record sets than a change may have")
		return
	}
	next := maps.Clone(zone.sets)
	for i, set := range in.Deletions {
		key := set.Name + " " + set.Type
		there, ok := next[key]
		if !ok {
			fail(w, 404, "notFound", fmt.Sprintf("The 'entity.change.deletions[%d]' resource named '%s (%s)' does not exist.", i, set.Name, set.Type))
			return
		}
		if there.Ttl != set.Ttl || !slices.Equal(slices.Sorted(slices.Values(there.Rrdatas)), slices.Sorted(slices.Values(set.Rrdatas))) {
			fail(w, 412, "conditionNotMet", fmt.Sprintf("Precondition not met for 'entity.change.deletions[%d]'", i))
			return
		}
		delete(next, key)
	}
	for i, set := range in.Additions {
		key := set.Name + " " + set.Type
		if _, ok := next[key]; ok {
			fail(w, 409, "alreadyExists", fmt.Sprintf("The resource 'entity.change.additions[%d]' named '%s (%s)' already exists", i, set.Name, set.Type))
			return
		}
		if !strings.HasSuffix("."+set.Name, "."+zone.dnsName) {
			fail(w, 400, "invalid", fmt.Sprintf("Invalid value for 'entity.change.additions[%d].name': '%s'", i, set.Name))
			return
		}
		next[key] = set
	}
	if name := notAlone(next); name != "" {
		fail(w, 400, "cnameResourceRecordSetConflict", "The resource record set '"+name+" (CNAME)' is invalid because the CNAME must be alone at its name")
		return
	}
	zone.sets = next
	f.changes = append(f.changes, len(in.Additions))
	give(w, &dns.Change{Id: "7", Status: "pending"})
}

// notAlone names one that has a CNAME beside something else.
func notAlone(sets map[string]*dns.ResourceRecordSet) string {
	count := map[string]int{}
	for _, set := range sets {
		count[set.Name]++
	}
	for _, set := range sets {
		if set.Type == "CNAME" && count[set.Name] > 1 {
			return set.Name
		}
	}
	return ""
}
