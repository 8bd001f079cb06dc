package plan

import (
	"fmt"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
)

// lostData returns the data that a record set is to lose.
func lostData(c *v1beta1.RecordChange) []string {
	return slices.DeleteFunc(slices.Clone(c.Before), func(data string) bool { return slices.Contains(c.After, data) })
}

// followed are the record sets that a drill follows, and what DNS has.
type followed struct {
	records   []v1beta1.RecordChange
	has       map[Record][]string
	providers []v1beta1.DNSProvider
}

func (r *run) followed() followed {
	return followed{r.next.Report.Prediction.Followed, r.Records, r.Providers}
}

// notOut returns what in DNS still points to the scope, or "".
func (f followed) notOut() string {
	for _, p := range f.providers {
		if !p.Published {
			return "provider " + p.Name + " is behind: " + p.Message
		}
	}
	for _, change := range f.records {
		has := f.has[Record{change.Name, change.Type}]
		for _, data := range lostData(&change) {
			if slices.Contains(has, data) {
				return fmt.Sprintf("%s %s has %s", change.Name, change.Type, data)
			}
		}
	}
	return ""
}

// answersAgain reports whether everything followed is in DNS again and all providers are in sync.
func (f followed) answersAgain() bool {
	if f.isBehind() {
		return false
	}
	for _, change := range f.records {
		has := f.has[Record{change.Name, change.Type}]
		if slices.ContainsFunc(lostData(&change), func(data string) bool { return !slices.Contains(has, data) }) {
			return false
		}
	}
	return true
}

// isBehind reports whether a provider has not published all.
func (f followed) isBehind() bool {
	return slices.ContainsFunc(f.providers, func(p v1beta1.DNSProvider) bool { return !p.Published })
}

// inDNS returns how many of the record sets have data that they are to lose.
func (f followed) inDNS() (n int32) {
	for _, change := range f.records {
		has := f.has[Record{change.Name, change.Type}]
		if slices.ContainsFunc(lostData(&change), func(data string) bool { return slices.Contains(has, data) }) {
			n++
		}
	}
	return n
}
