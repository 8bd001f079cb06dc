package azuredns

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
)

// fake is a server that behaves as the REST reference of Azure DNS (2018-05-01) says: one request for
// a record set, conditional by If-Match and If-None-Match, pages (of 100 here), a filter by suffix,
// CNAMEs alone, a TTL of at least 1 s, 429 with Retry-After. It speaks TLS, as the SDK gives tokens
// to nobody else.
type fake struct {
	*httptest.Server
	mu   sync.Mutex
	sets map[string]*armdns.RecordSet // of the one zone, by type and relative name
	next int
	// busy is how many requests get 429, and are then served.
	busy int
	// refuse is a type that no set may be created of.
	refuse string
	// read counts the sets that were listed.
	read int
}

const zonePath = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com/"

func startFake(t *testing.T) *fake {
	f := &fake{sets: map[string]*armdns.RecordSet{}}
	f.store("NS", "@", &armdns.RecordSet{Properties: &armdns.RecordSetProperties{TTL: new(int64(172800)), NsRecords: []*armdns.NsRecord{{Nsdname: new("ns.azure.test.")}}}})
	f.store("SOA", "@", &armdns.RecordSet{Properties: &armdns.RecordSetProperties{TTL: new(int64(3600)), SoaRecord: &armdns.SoaRecord{Host: new("ns.azure.test.")}}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+zonePath+"all", f.list)
	mux.HandleFunc("PUT "+zonePath+"{type}/{name}", f.put)
	mux.HandleFunc("DELETE "+zonePath+"{type}/{name}", f.remove)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, 404, "ParentResourceNotFound", "Can not perform requested operation on nested resource. Parent resource not found.")
	})
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer good":
			fail(w, 401, "InvalidAuthenticationToken", "The access token is invalid.")
		case f.busy > 0:
			f.busy--
			w.Header().Set("Retry-After-Ms", "1")
			fail(w, 429, "TooManyRequests", "Too many requests")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	f.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = atOnce // as the SDK's own
	t.Cleanup(f.Close)
	return f
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %q, "message": %q}}`, code, message)
}

func (f *fake) store(typ, name string, set *armdns.RecordSet) {
	f.next++
	set.Etag, set.Name, set.Type = new(strconv.Itoa(f.next)), &name, new("Microsoft.Network/dnszones/"+typ)
	set.Properties.Fqdn = new(name + ".example.com.")
	f.sets[typ+"/"+name] = set
}

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	suffix, after := r.FormValue("$recordsetnamesuffix"), r.FormValue("$skipToken")
	out := armdns.RecordSetListResult{Value: []*armdns.RecordSet{}}
	for _, key := range slices.Sorted(maps.Keys(f.sets)) {
		if key <= after || !strings.HasSuffix(*f.sets[key].Name, suffix) {
			continue
		}
		if len(out.Value) == 100 {
			query := r.URL.Query()
			query.Set("$skipToken", after)
			out.NextLink = new(f.URL + r.URL.Path + "?" + query.Encode())
			break
		}
		out.Value, after = append(out.Value, f.sets[key]), key
		f.read++
	}
	_ = json.NewEncoder(w).Encode(out)
}

// passes answers with an error and returns false when the request's conditions are not met.
func (f *fake) passes(w http.ResponseWriter, r *http.Request) bool {
	there, ok := f.sets[r.PathValue("type")+"/"+r.PathValue("name")]
	match := r.Header.Get("If-Match")
	if ok && r.Header.Get("If-None-Match") == "*" || match != "" && (!ok || match != *there.Etag) {
		fail(w, 412, "PreconditionFailed", "The condition '"+match+r.Header.Get("If-None-Match")+"' in the request was not satisfied.")
		return false
	}
	return true
}

func (f *fake) put(w http.ResponseWriter, r *http.Request) {
	typ, name := r.PathValue("type"), r.PathValue("name")
	var set armdns.RecordSet
	if err := json.NewDecoder(r.Body).Decode(&set); err != nil || set.Properties == nil || set.Properties.TTL == nil || *set.Properties.TTL < 1 {
		fail(w, 400, "BadRequest", fmt.Sprintf("The record set is not valid: %v", err))
		return
	}
	if !f.passes(w, r) {
		return
	}
	if typ == f.refuse {
		fail(w, 400, "BadRequest", "told to refuse")
		return
	}
	for _, other := range []string{"A", "AAAA", "CNAME", "TXT", "NS", "SOA"} {
		if f.sets[other+"/"+name] != nil && other != typ && (other == "CNAME" || typ == "CNAME") {
			fail(w, 409, "Conflict", "The record could not be created because a CNAME record with the same name already exists in this zone.")
			return
		}
	}
	f.store(typ, name, &set)
	_ = json.NewEncoder(w).Encode(set)
}

func (f *fake) remove(w http.ResponseWriter, r *http.Request) {
	if f.passes(w, r) {
		delete(f.sets, r.PathValue("type")+"/"+r.PathValue("name"))
	}
}
