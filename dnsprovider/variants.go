package dnsprovider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Variant is one of the answers that a set may give. A set's variants have weights, or regions.
type Variant struct {
	// Rdata is a sorted part of the set's.
	Rdata []string
	// Weight is its share of the answers, beside the weights of the set's other variants.
	Weight uint32
	// Region is what it is for: clients near this region get it. "" with Weight 0: those who are near none.
	Region string
}

// Chooser is implemented by a Provider whose server gives one variant of a set to each client. Other providers get sets
// without variants: see Plain.
type Chooser interface {
	Provider
	// Chooses does nothing: having it is the promise.
	Chooses()
}

// NewChoice makes a set of addresses that gives one of the variants at a time, in canonical form; its Rdata is the
// union of theirs. With a single variant there is nothing to choose, and the set has none. It fails where New does, for
// types other than A and AAAA, and unless the variants have either a weight each and no region, or a distinct region
// each and no weight.
func NewChoice(name string, t Type, ttl uint32, variants ...Variant) (RRSet, error) {
	var union []string
	for _, v := range variants {
		union = append(union, v.Rdata...)
	}
	set, err := New(name, t, ttl, union...)
	if err != nil || len(variants) < 2 {
		return set, err
	}
	if set.Type != A && set.Type != AAAA {
		return RRSet{}, fmt.Errorf("record %s %s: %d variants: only A and AAAA can have any", set.Name, set.Type, len(variants))
	}
	for _, v := range variants {
		part, err := New(name, t, ttl, v.Rdata...)
		if err != nil {
			return RRSet{}, err
		}
		set.Variants = append(set.Variants, Variant{Rdata: part.Rdata, Weight: v.Weight, Region: v.Region})
	}
	slices.SortFunc(set.Variants, compareVariants)
	return set, set.checkVariants()
}

// checkVariants returns what is wrong with sorted variants.
func (s RRSet) checkVariants() error {
	weighted := s.Variants[0].Weight > 0
	for i, v := range s.Variants {
		if (v.Weight > 0) != weighted || weighted && v.Region != "" {
			return fmt.Errorf("record %s %s: variant %s: all must have a weight and no region, or none a weight", s.Name, s.Type, v)
		}
		if !weighted && i > 0 && v.Region == s.Variants[i-1].Region {
			return fmt.Errorf("record %s %s: variant %s: must be the only one of its region", s.Name, s.Type, v)
		}
	}
	return nil
}

// Plain returns the set without variants, for a server that always gives all of Rdata.
func (s RRSet) Plain() RRSet {
	s.Variants = nil
	return s
}

// String gives the variant as "weight 50: 192.0.2.1 192.0.2.2", "region east: …" or "elsewhere: …".
func (v Variant) String() string {
	who := "elsewhere"
	if v.Region != "" {
		who = "region " + v.Region
	}
	if v.Weight > 0 {
		who = fmt.Sprintf("weight %d", v.Weight)
	}
	return who + ": " + strings.Join(v.Rdata, " ")
}

func compareVariants(a, b Variant) int {
	return cmp.Or(cmp.Compare(a.Region, b.Region), slices.Compare(a.Rdata, b.Rdata), cmp.Compare(a.Weight, b.Weight))
}

func equalVariants(a, b Variant) bool { return compareVariants(a, b) == 0 }
