package cloudflare

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a server that behaves as Cloudflare's API reference (v4) says: single records with IDs, the
// batch endpoint that makes all or none in the order deletes, patches, posts and compares nothing,
// pages (of 100 here), least TTLs, limits of a batch, identical and conflicting records refused, 429
// with Retry-After.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	zones map[string]string // names by ID
	sets  map[string][]item // by zone ID
	next  int
	// busy is how many requests get 429, and are then served.
	busy int
	// batches are the numbers of deletes, patches and posts of the batches that were taken.
	batches [][3]int
	// lists counts the pages of records that were asked for.
	lists int
}

// item is a record on the wire.
type item struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Content string `json:"content"`
	TTL     int    `json:"ttl"`
	Proxied bool   `json:"proxied"`
}

func startFake(t *testing.T, zones map[string]string) *fake {
	f := &fake{zones: zones, sets: map[string][]item{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /zones", f.listZones)
	mux.HandleFunc("GET /zones/{zone}/dns_records", f.listRecords)
	mux.HandleFunc("POST /zones/{zone}/dns_records/batch", f.batch)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer good":
			fail(w, 403, 9109, "Invalid access token")
		case f.busy > 0:
			f.busy--
			w.Header().Set("Retry-After", "0")
			fail(w, 429, 971, "Please wait and consider throttling your request speed")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func fail(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"success": false, "errors": [{"code": %d, "message": %q}], "messages": [], "result": null}`, code, message)
}

func give(w http.ResponseWriter, r *http.Request, result []any) {
	w.Header().Set("Content-Type", "application/json")
	number, _ := strconv.Atoi(r.FormValue("page"))
	from := min(max(number-1, 0)*100, len(result))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"success": true, "errors": []any{}, "messages": []any{}, "result": result[from:min(from+100, len(result))],
		"result_info": map[string]any{"page": number, "per_page": 100, "total_count": len(result)},
	})
}

func (f *fake) listZones(w http.ResponseWriter, r *http.Request) {
	result := []any{}
	for id, name := range f.zones {
		if name == r.FormValue("name") {
			result = append(result, map[string]any{"id": id, "name": name, "account": map[string]any{"id": "a", "name": "account " + id}})
		}
	}
	give(w, r, result)
}

func (f *fake) listRecords(w http.ResponseWriter, r *http.Request) {
	f.lists++
	result := []any{}
	for _, i := range f.sets[r.PathValue("zone")] {
		if exact := r.FormValue("name.exact"); exact == "" || exact == i.Name {
			result = append(result, i)
		}
	}
	give(w, r, result)
}

type patch struct {
	ID  string
	TTL *int
}

func (f *fake) batch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Deletes []struct{ ID string }
		Patches []patch
		Posts   []item
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		fail(w, 400, 9207, err.Error())
		return
	}
	zone := r.PathValue("zone")
	if n := len(in.Deletes) + len(in.Patches) + len(in.Posts); n > 200 || n == 0 {
		fail(w, 400, 9206, "a batch must have 1 to 200 changes")
		return
	}
	records := slices.Clone(f.sets[zone])
	at := func(id string) int { return slices.IndexFunc(records, func(i item) bool { return i.ID == id }) }
	for _, d := range in.Deletes {
		i := at(d.ID)
		if i < 0 {
			fail(w, 404, 81044, "Record does not exist.")
			return
		}
		records = slices.Delete(records, i, i+1)
	}
	for _, p := range in.Patches {
		i := at(p.ID)
		if i < 0 {
			fail(w, 404, 81044, "Record does not exist.")
			return
		}
		if p.TTL != nil {
			records[i].TTL = *p.TTL
		}
	}
	for _, add := range in.Posts {
		if code, message := wrong(add, records, f.zones[zone]); code != 0 {
			fail(w, 400, code, message)
			return
		}
		f.next++
		add.ID = strconv.Itoa(f.next)
		records = append(records, add)
	}
	f.sets[zone] = records
	f.batches = append(f.batches, [3]int{len(in.Deletes), len(in.Patches), len(in.Posts)})
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"success": true, "errors": [], "messages": [], "result": {"deletes": [], "patches": [], "puts": [], "posts": []}}`)
}

// wrong returns why the API rejects a new record.
func wrong(add item, records []item, zone string) (int, string) {
	if add.TTL != automatic && (add.TTL < 60 || add.TTL > 86400) {
		return 9021, "Invalid TTL. Must be between 60 and 86400 seconds, or 1 for Automatic."
	}
	if !strings.HasSuffix("."+add.Name, "."+zone) {
		return 9000, "DNS name is invalid"
	}
	for _, there := range records {
		switch {
		case there.Name != add.Name:
		case there.Type == add.Type && there.Content == add.Content:
			return 81058, "An identical record already exists."
		case there.Type == "CNAME":
			return 81054, "A CNAME record with that host already exists."
		case add.Type == "CNAME":
			return 81053, "An A, AAAA, or CNAME record with that host already exists."
		}
	}
	return 0, ""
}
