package route53

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is a server that behaves as the API reference of Route 53 (2013-04-01) says: transactions whose
// DELETEs must match in every value and whose CREATEs must be new, pages (of 100 here), limits of a
// batch, throttling, hosted zones of the same name, changes that are PENDING at first.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	zones map[string]*hosted // by ID
	// throttle is how many requests are refused as too many, and then served.
	throttle int
	// refuse is how many change batches from now on are taken before one is refused. -1: all.
	refuse int
	// batches are the sizes of the change batches that were taken, in changes.
	batches []int
}

type hosted struct {
	name    string
	private bool
	sets    map[string]recordSet // by key
}

type recordSet struct {
	Name          string
	Type          string
	SetIdentifier string    `xml:",omitempty"`
	TTL           *int64    `xml:",omitempty"`
	Records       []record  `xml:"ResourceRecords>ResourceRecord"`
	AliasTarget   *struct{} `xml:",omitempty"`
}

type record struct{ Value string }

func (r recordSet) values() (values []string) {
	for _, v := range r.Records {
		values = append(values, v.Value)
	}
	slices.Sort(values)
	return values
}

// key sorts as the API does: by labels from the right, then type.
func (r recordSet) key() string {
	labels := strings.Split(r.Name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + " " + r.Type + " " + r.SetIdentifier
}

func startFake(t *testing.T, zones map[string]*hosted) *fake {
	a := &fake{zones: zones, refuse: -1}
	for id, z := range zones {
		if z.sets == nil {
			z.sets = map[string]recordSet{}
		}
		ttl := int64(900)
		for _, own := range []recordSet{{Name: z.name, Type: "SOA", TTL: &ttl, Records: []record{{"ns.aws. host. 1 7200 900 1209600 86400"}}},
			{Name: z.name, Type: "NS", TTL: &ttl, Records: []record{{"ns." + id + ".aws."}}}} {
			z.sets[own.key()] = own
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2013-04-01/hostedzonesbyname", a.listZones)
	mux.HandleFunc("GET /2013-04-01/hostedzone/{id}/rrset", a.listSets)
	mux.HandleFunc("POST /2013-04-01/hostedzone/{id}/rrset", a.change)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
		switch {
		case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDTEST/"):
			fail(w, 403, "InvalidClientTokenId", "The security token included in the request is invalid.")
		case a.throttle > 0:
			a.throttle--
			fail(w, 400, "Throttling", "Rate exceeded")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, message)
}

func (a *fake) listZones(w http.ResponseWriter, r *http.Request) {
	type zone struct {
		Id, Name, CallerReference string
		PrivateZone               bool `xml:"Config>PrivateZone"`
	}
	out := struct {
		XMLName     xml.Name `xml:"ListHostedZonesByNameResponse"`
		Zones       []zone   `xml:"HostedZones>HostedZone"`
		IsTruncated bool
		NextDNSName string `xml:",omitempty"`
		NextID      string `xml:"NextHostedZoneId,omitempty"`
		MaxItems    int
	}{MaxItems: 1}
	reversed := func(id string) string { return recordSet{Name: a.zones[id].name, Type: id}.key() }
	from := recordSet{Name: r.FormValue("dnsname"), Type: r.FormValue("hostedzoneid")}.key()
	for _, id := range slices.SortedFunc(maps.Keys(a.zones), func(x, y string) int { return strings.Compare(reversed(x), reversed(y)) }) {
		if reversed(id) < strings.TrimRight(from, " ") {
			continue
		}
		if len(out.Zones) == out.MaxItems {
			out.IsTruncated, out.NextDNSName, out.NextID = true, a.zones[id].name, id
			break
		}
		out.Zones = append(out.Zones, zone{"/hostedzone/" + id, a.zones[id].name, id, a.zones[id].private})
	}
	_ = xml.NewEncoder(w).Encode(out)
}

func (a *fake) listSets(w http.ResponseWriter, r *http.Request) {
	zone, ok := a.zones[r.PathValue("id")]
	if !ok {
		fail(w, 404, "NoSuchHostedZone", "No hosted zone found with ID: "+r.PathValue("id"))
		return
	}
	out := struct {
		XMLName     xml.Name    `xml:"ListResourceRecordSetsResponse"`
		Sets        []recordSet `xml:"ResourceRecordSets>ResourceRecordSet"`
		IsTruncated bool
		NextName    string `xml:"NextRecordName,omitempty"`
		NextType    string `xml:"NextRecordType,omitempty"`
		NextID      string `xml:"NextRecordIdentifier,omitempty"`
		MaxItems    int
	}{MaxItems: 100}
	from := recordSet{Name: r.FormValue("name"), Type: r.FormValue("type"), SetIdentifier: r.FormValue("identifier")}.key()
	for _, key := range slices.Sorted(maps.Keys(zone.sets)) {
		if r.FormValue("name") != "" && key < from {
			continue
		}
		set := zone.sets[key]
		if len(out.Sets) == out.MaxItems {
			out.IsTruncated, out.NextName, out.NextType, out.NextID = true, set.Name, set.Type, set.SetIdentifier
			break
		}
		out.Sets = append(out.Sets, set)
	}
	_ = xml.NewEncoder(w).Encode(out)
}

// change is one of a change batch.
type change struct {
	Action string
	Set    recordSet `xml:"ResourceRecordSet"`
}

func (a *fake) change(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Changes []change `xml:"ChangeBatch>Changes>Change"`
	}
	if err := xml.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, 400, "InvalidInput", err.Error())
		return
	}
	zone, ok := a.zones[r.PathValue("id")]
	if !ok {
		fail(w, 404, "NoSuchHostedZone", "No hosted zone found with ID: "+r.PathValue("id"))
		return
	}
	next, wrong := zone.with(in.Changes)
	if a.refuse == 0 {
		wrong = append(wrong, "told to refuse")
	}
	if len(wrong) > 0 {
		w.WriteHeader(400)
		fmt.Fprintf(w, `<InvalidChangeBatch xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Messages><Message>%s</Message></Messages><RequestId>r</RequestId></InvalidChangeBatch>`,
			strings.Join(wrong, "</Message><Message>"))
		return
	}
	zone.sets = next
	a.refuse--
	a.batches = append(a.batches, len(in.Changes))
	fmt.Fprint(w, `<ChangeResourceRecordSetsResponse><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status><SubmittedAt>2026-11-21T10:00:00Z</SubmittedAt></ChangeInfo></ChangeResourceRecordSetsResponse>`)
}

// with returns what the zone becomes by the changes, and what is wrong with them.
func (z *hosted) with(changes []change) (next map[string]recordSet, wrong []string) {
	next = maps.Clone(z.sets)
	records := 0
	for _, c := range changes {
		key := c.Set.key()
		records += len(c.Set.Records)
		old, there := next[key]
		what := fmt.Sprintf("resource record set [name='%s', type='%s'] but", c.Set.Name, c.Set.Type)
		switch {
		case !strings.HasSuffix("."+c.Set.Name, "."+z.name):
			wrong = append(wrong, fmt.Sprintf("RRSet with DNS name %s is not permitted in zone %s", c.Set.Name, z.name))
		case c.Action == "DELETE" && !there:
			wrong = append(wrong, "Tried to delete "+what+" it was not found")
		case c.Action == "DELETE" && (*old.TTL != *c.Set.TTL || !slices.Equal(old.values(), c.Set.values())):
			wrong = append(wrong, "Tried to delete "+what+" the values provided do not match the current values")
		case c.Action == "DELETE":
			delete(next, key)
		case there:
			wrong = append(wrong, "Tried to create "+what+" it already exists")
		default:
			next[key] = c.Set
		}
	}
	if len(changes) == 0 || records > 1000 {
		wrong = append(wrong, fmt.Sprintf("%d changes with %d records: must be some, with 1000 records at most", len(changes), records))
	}
	return next, append(wrong, notAlone(next)...)
}

// notAlone returns which names have a CNAME beside something else.
func notAlone(sets map[string]recordSet) (wrong []string) {
	count, alias := map[string]int{}, map[string]bool{}
	for _, set := range sets {
		count[set.Name]++
		alias[set.Name] = alias[set.Name] || set.Type == "CNAME"
	}
	for name := range alias {
		if alias[name] && count[name] > 1 {
			wrong = append(wrong, fmt.Sprintf("RRSet of type CNAME with DNS name %s is not permitted as it conflicts with other records with the same DNS name", name))
		}
	}
	return wrong
}
