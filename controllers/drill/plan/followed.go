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

// notOut returns what in DNS still points to the scope, or "".
func (d *drill) notOut() string {
	for _, p := range d.Providers {
		if !p.Published {
			return "provider " + p.Name + " is behind: " + p.Message
		}
	}
	for _, followed := range d.step.Status.Report.Prediction.Followed {
		has := d.Records[Record{followed.Name, followed.Type}]
		for _, data := range lostData(&followed) {
			if slices.Contains(has, data) {
				return fmt.Sprintf("%s %s has %s", followed.Name, followed.Type, data)
			}
		}
	}
	return ""
}

// answersAgain reports whether everything followed is in DNS again and all providers are in sync.
func (d *drill) answersAgain() bool {
	if slices.ContainsFunc(d.Providers, func(p v1beta1.DNSProvider) bool { return !p.Published }) {
		return false
	}
	for _, followed := range d.step.Status.Report.Prediction.Followed {
		has := d.Records[Record{followed.Name, followed.Type}]
		if slices.ContainsFunc(lostData(&followed), func(data string) bool { return !slices.Contains(has, data) }) {
			return false
		}
	}
	return true
}

// recordsOfScope returns how many of the followed record sets have data that they are to lose.
func (d *drill) recordsOfScope() (n int32) {
	for _, followed := range d.step.Status.Report.Prediction.Followed {
		has := d.Records[Record{followed.Name, followed.Type}]
		if slices.ContainsFunc(lostData(&followed), func(data string) bool { return slices.Contains(has, data) }) {
			n++
		}
	}
	return n
}
