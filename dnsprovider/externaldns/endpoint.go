package externaldns

import (
	"slices"
	"strings"

	"federation/dnsprovider"
)

// Endpoint is a record set in the form of external-dns, and its JSON.
type Endpoint struct {
	// DNSName has no final dot.
	DNSName string `json:"dnsName"`
	// Targets are the records' data: addresses, names without a final dot, text in quotes.
	Targets []string `json:"targets"`
	// RecordType is A, AAAA, CNAME, TXT and others.
	RecordType string `json:"recordType"`
	// SetIdentifier tells apart endpoints of one name and type where a routing policy chooses.
	SetIdentifier string `json:"setIdentifier,omitempty"`
	// RecordTTL is in seconds; 0 is the server's default.
	RecordTTL int64 `json:"recordTTL,omitempty"`
	// Labels are external-dns's own marks.
	Labels map[string]string `json:"labels,omitempty"`
	// ProviderSpecific are settings that only some provider knows.
	ProviderSpecific []Property `json:"providerSpecific,omitempty"`
}

// Property is a setting that only some provider knows.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Types are those that we write.
var Types = []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA, dnsprovider.CNAME, "TXT"}

// Of returns a set as an endpoint.
func Of(set dnsprovider.RRSet) Endpoint {
	e := Endpoint{DNSName: strings.TrimSuffix(set.Name, "."), RecordType: string(set.Type), RecordTTL: int64(set.TTL), Targets: slices.Clone(set.Rdata)}
	if set.Type == dnsprovider.CNAME {
		e.Targets[0] = strings.TrimSuffix(e.Targets[0], ".")
	}
	return e
}

// Set returns an endpoint as a set; false for one that is no plain set, or has a name or data that we never
// write, such as a wildcard.
func (e Endpoint) Set() (dnsprovider.RRSet, bool) {
	if e.SetIdentifier != "" || e.RecordTTL < 0 || e.RecordTTL > 1<<31-1 {
		return dnsprovider.RRSet{}, false
	}
	set, err := dnsprovider.New(e.DNSName, dnsprovider.Type(e.RecordType), uint32(e.RecordTTL), e.Targets...)
	return set, err == nil
}

// Key names the set that an endpoint is: name and type, as its set has them.
type Key struct {
	Name string
	Type dnsprovider.Type
}

// KeyOf returns the set.
func KeyOf(set dnsprovider.RRSet) Key { return Key{set.Name, set.Type} }

// InZone returns the plain sets among the endpoints that are in the zone, and which endpoint each is.
// Of several endpoints of one name and type it has the first.
func InZone(endpoints []Endpoint, zone string) ([]dnsprovider.RRSet, map[Key]Endpoint) {
	var sets []dnsprovider.RRSet
	byKey := map[Key]Endpoint{}
	for _, e := range endpoints {
		set, ok := e.Set()
		ownOfZone := set.Name == zone && (set.Type == "NS" || set.Type == "SOA")
		if !ok || ownOfZone || !dnsprovider.InZone(set.Name, zone) {
			continue
		}
		if _, twice := byKey[KeyOf(set)]; !twice {
			sets, byKey[KeyOf(set)] = append(sets, set), e
		}
	}
	return sets, byKey
}
