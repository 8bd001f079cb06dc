package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

var monday = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func TestDeletionIsReadAsWritten(t *testing.T) {
	for _, want := range []Deletion{{Deleted, monday, "ConfigMap default/left"}, {Orphaned, monday, "Namespace shop"}} {
		if got, ok := ParseDeletion(want.String()); !ok || got != want {
			t.Errorf("%q is read as %v, %t", want, got, ok)
		}
	}
	for _, value := range []string{"", "Deleted", "2026-11-23T08:00:00Z", "2026-11-23T08:00:00Z Lost x", "yesterday Deleted x"} {
		if got, ok := ParseDeletion(value); ok {
			t.Errorf("%q is read as %v", value, got)
		}
	}
}

func TestExpired(t *testing.T) {
	records := map[string]string{
		"old":     Deletion{Orphaned, monday.Add(-KeepOrphaned - time.Hour), "x"}.String(),
		"new":     Deletion{Orphaned, monday.Add(-KeepOrphaned + time.Hour), "x"}.String(),
		"deleted": Deletion{Deleted, monday.Add(-time.Minute), "x"}.String(),
		"theirs":  "something else",
	}
	if got := Expired(records, false, monday); !reflect.DeepEqual(got, []string{"deleted", "old"}) {
		t.Errorf("with all members there, %v have expired", got)
	}
	if got := Expired(records, true, monday); got != nil {
		t.Errorf("with one away, %v have expired", got)
	}
}

// TestExpiredIsBounded checks that the oldest records go if there are too many, and that the rest fits into a
// ConfigMap.
func TestExpiredIsBounded(t *testing.T) {
	records, longest := map[string]string{}, strings.Repeat("n", 253+63+validation.DNS1123SubdomainMaxLength+validation.DNS1123LabelMaxLength)
	for fate, n := range map[Fate]int{Orphaned: MostOrphaned + 2, Deleted: MostDeleted + 1} {
		for i := range n {
			records[fmt.Sprintf("%s-%028d", fate, i)] = Deletion{fate, monday.Add(time.Duration(i) * time.Second), longest}.String()
		}
	}
	want := []string{fmt.Sprintf("Deleted-%028d", 0), fmt.Sprintf("Orphaned-%028d", 0), fmt.Sprintf("Orphaned-%028d", 1)}
	got := Expired(records, true, monday.Add(time.Hour))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v have expired, wanted %v", got, want)
	}
	size := 0
	for key, value := range records {
		size += len(key) + len(value)
	}
	if size > 1<<20 {
		t.Errorf("%d bytes are more than a ConfigMap holds", size)
	}
}
