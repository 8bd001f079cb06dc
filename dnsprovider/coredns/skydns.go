package coredns

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"federation/dnsprovider"
)

const (
	// ours begins the last label of the keys that we write: the record is one of the name above.
	ours = "_f"
	// defaultTTL is what CoreDNS takes where a record has none.
	defaultTTL = 300
	// maxString is how many bytes a string of a TXT record has at most; CoreDNS divides text there.
	maxString = 255
)

// value is what is in a key. Other fields of SkyDNS (port, priority, weight, mail) are not ours.
type value struct {
	Host  string `json:"host,omitempty"`
	Text  string `json:"text,omitempty"`
	TTL   uint32 `json:"ttl,omitempty"`
	Group string `json:"group,omitempty"`
}

// entry is a key with the records that CoreDNS makes of it.
type entry struct {
	key, name string
	revision  int64
	ttl       uint32
	records   []typed
}

type typed struct {
	t    dnsprovider.Type
	data string
}

// path returns the key of a name: its labels in reverse order.
func (s *store) path(name string) string {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	slices.Reverse(labels)
	return s.prefix + "/" + strings.Join(labels, "/")
}

// key returns where we put a record. It is the same for the same record, whatever the TTL.
func (s *store) key(set dnsprovider.RRSet, data string) string {
	sum := sha256.Sum256([]byte(string(set.Type) + " " + data))
	return s.path(set.Name) + "/" + ours + hex.EncodeToString(sum[:8])
}

// valueOf returns what we put there.
func valueOf(set dnsprovider.RRSet, data string) (string, error) {
	if set.TTL == 0 {
		return "", fmt.Errorf("record %s %s: TTL 0: must be at least 1, as CoreDNS takes 0 for %d", set.Name, set.Type, defaultTTL)
	}
	v := value{TTL: set.TTL, Group: set.Name, Host: data}
	if set.Type == dnsprovider.TXT {
		rr, err := dns.NewRR(fmt.Sprintf("%s IN TXT %s", set.Name, data))
		txt, ok := rr.(*dns.TXT)
		if err != nil || !ok {
			return "", fmt.Errorf("record %s TXT: value %q: must be quoted text", set.Name, data)
		}
		v.Host, v.Text = "", strings.Join(txt.Txt, "")
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// entries reads keys. Keys that are no names and values that CoreDNS would not read are left out.
func (s *store) entries(kvs []*mvccpb.KeyValue) (entries []entry) {
	for _, kv := range kvs {
		labels := strings.Split(strings.TrimPrefix(string(kv.Key), s.prefix+"/"), "/")
		if strings.HasPrefix(labels[len(labels)-1], ours) {
			labels = labels[:len(labels)-1]
		}
		slices.Reverse(labels)
		name, err := dnsprovider.CanonicalName(strings.Join(labels, "."))
		var v value
		if err != nil || json.Unmarshal(kv.Value, &v) != nil {
			continue
		}
		e := entry{key: string(kv.Key), name: name, revision: kv.ModRevision, ttl: v.TTL, records: v.records()}
		if e.ttl == 0 {
			e.ttl = defaultTTL
		}
		entries = append(entries, e)
	}
	return entries
}

// records returns those that CoreDNS answers with for a key.
func (v value) records() (records []typed) {
	if v.Host != "" {
		r := typed{dnsprovider.CNAME, v.Host}
		if addr, err := netip.ParseAddr(v.Host); err == nil {
			r.t = dnsprovider.A
			if addr.Is6() {
				r.t = dnsprovider.AAAA
			}
		}
		records = append(records, r)
	}
	if v.Text != "" {
		txt := &dns.TXT{}
		for chunk := range slices.Chunk([]byte(v.Text), maxString) {
			txt.Txt = append(txt.Txt, string(chunk))
		}
		records = append(records, typed{dnsprovider.TXT, strings.TrimPrefix(txt.String(), txt.Hdr.String())})
	}
	return records
}

// setsOf gathers the records of entries by name and type. The TTL is the least of a set's. What an
// RRSet cannot be, such as two CNAMEs, is left out.
func setsOf(entries []entry) (sets []dnsprovider.RRSet) {
	type key struct {
		name string
		t    dnsprovider.Type
	}
	data, ttls := map[key][]string{}, map[key]uint32{}
	for _, e := range entries {
		for _, r := range e.records {
			k := key{e.name, r.t}
			data[k] = append(data[k], r.data)
			ttls[k] = min(cmp.Or(ttls[k], e.ttl), e.ttl)
		}
	}
	for k, data := range data {
		if set, err := dnsprovider.New(k.name, k.t, ttls[k], data...); err == nil {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, dnsprovider.Compare)
	return sets
}
