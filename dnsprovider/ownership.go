package dnsprovider

import (
	"fmt"
	"strings"
)

const (
	// markLabel is the first label of the name at which a name's mark is.
	markLabel = "_federation"
	// MarkPrefix is what the name of a mark has before the name that it marks.
	MarkPrefix = markLabel + "."
	// markTTL is the time to live of marks in seconds. No resolver needs them.
	markTTL = 300
)

// Mark returns the record that marks a name as owner's in a zone that others write to: a TXT record at
// _federation.NAME, beside which NAME itself can be a CNAME. It fails for a name that is too long to be marked. Owner
// is a DNS label.
func Mark(name, owner string) (RRSet, error) {
	set, err := New(markLabel+"."+name, TXT, markTTL, fmt.Sprintf("%q", markLabel+"="+owner))
	if err != nil {
		return RRSet{}, fmt.Errorf("no mark of ownership: %w", err)
	}
	return set, nil
}

// Marked returns the canonical names that are marked as owner's among all records of a zone.
func Marked(all []RRSet, owner string) map[string]bool {
	names := map[string]bool{}
	for _, set := range all {
		name, isMark := strings.CutPrefix(set.Name, markLabel+".")
		if !isMark || set.Type != TXT {
			continue
		}
		for _, text := range set.Rdata {
			if strings.Trim(text, `"`) == markLabel+"="+owner {
				names[name] = true
			}
		}
	}
	return names
}
