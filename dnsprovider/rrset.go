package dnsprovider

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Type is the type of a record, as it stands in a zone file.
type Type string

// The types that the federation writes.
const (
	A     Type = "A"
	AAAA  Type = "AAAA"
	CNAME Type = "CNAME"
	TXT   Type = "TXT" // ownership
)

// maxTTL is the largest time to live in seconds (RFC 2181, section 8).
const maxTTL = 1<<31 - 1

// RRSet has all records of one name and type. Make it with New: then equal sets are equal text.
type RRSet struct {
	// Name is canonical: lower-case and with the final dot.
	Name string
	Type Type
	// TTL is in seconds.
	TTL uint32
	// Rdata has the data of each record in presentation format, sorted, each once. Never empty.
	Rdata []string
	// Variants are the alternatives that a server which can choose gives one of, sorted; none: always all of Rdata.
	// Make a set with variants by NewChoice.
	Variants []Variant
}

// New makes an RRSet in canonical form: names lower-case with a final dot, addresses in their shortest form, data
// sorted without duplicates. It fails if there is no data, if the name or the TTL is out of bounds, if a CNAME has
// several targets, or if data is invalid for the type.
func New(name string, t Type, ttl uint32, rdata ...string) (RRSet, error) {
	canonical, err := CanonicalName(name)
	if err != nil {
		return RRSet{}, err
	}
	if ttl > maxTTL {
		return RRSet{}, fmt.Errorf("record %s %s: TTL %d: must be at most %d", canonical, t, ttl, maxTTL)
	}
	set := RRSet{Name: canonical, Type: Type(strings.ToUpper(string(t))), TTL: ttl}
	for _, text := range rdata {
		data, err := canonicalRdata(set.Type, text)
		if err != nil {
			return RRSet{}, fmt.Errorf("record %s %s: %w", canonical, set.Type, err)
		}
		set.Rdata = append(set.Rdata, data)
	}
	slices.Sort(set.Rdata)
	set.Rdata = slices.Compact(set.Rdata)
	if n := len(set.Rdata); n == 0 || n > 1 && set.Type == CNAME {
		return RRSet{}, fmt.Errorf("record %s %s: %d values: must be at least one, and exactly one for CNAME", canonical, set.Type, n)
	}
	return set, nil
}

// CanonicalName returns name in lower case and with the final dot. It fails for a name that is
// longer than 255 bytes on the wire, that has a label of no or more than 63 bytes (RFC 1035, section
// 2.3.4), or other characters than letters, digits, "-" and "_".
func CanonicalName(name string) (string, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if len(name)+2 > 255 {
		return "", fmt.Errorf("name %q: %d bytes on the wire: must be at most 255", name, len(name)+2)
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) < 1 || len(label) > 63 {
			return "", fmt.Errorf("name %q: label %q: must have 1 to 63 bytes", name, label)
		}
		if i := strings.IndexFunc(label, notHostRune); i >= 0 {
			return "", fmt.Errorf("name %q: label %q: must be letters, digits, \"-\" and \"_\"", name, label)
		}
	}
	return name + ".", nil
}

func notHostRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// InZone reports whether name is zone or below it; both are canonical.
func InZone(name, zone string) bool {
	return name == zone || strings.HasSuffix(name, "."+zone)
}

func canonicalRdata(t Type, text string) (string, error) {
	switch t {
	case A, AAAA:
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" || addr.Is4() != (t == A) || addr.Is4In6() {
			return "", fmt.Errorf("value %q: must be an address of IPv%c", text, map[Type]rune{A: '4', AAAA: '6'}[t])
		}
		return addr.String(), nil
	case CNAME:
		return CanonicalName(text)
	}
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("value %q: must be one line of text", text)
	}
	return text, nil
}

// Equal reports whether two canonical sets are the same, TTL and variants included.
func (s RRSet) Equal(other RRSet) bool {
	return s.sameKey(other) && s.TTL == other.TTL && slices.Equal(s.Rdata, other.Rdata) &&
		slices.EqualFunc(s.Variants, other.Variants, equalVariants)
}

func (s RRSet) sameKey(other RRSet) bool {
	return s.Name == other.Name && s.Type == other.Type
}

// String gives the set as lines of a zone file, its variants as comments, without a newline at the end.
func (s RRSet) String() string {
	lines := make([]string, len(s.Rdata), len(s.Rdata)+len(s.Variants))
	for i, data := range s.Rdata {
		lines[i] = fmt.Sprintf("%s %d IN %s %s", s.Name, s.TTL, s.Type, data)
	}
	for _, v := range s.Variants {
		lines = append(lines, "; "+v.String())
	}
	return strings.Join(lines, "\n")
}

// Compare orders sets by name and type, for sorting.
func Compare(a, b RRSet) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
}
