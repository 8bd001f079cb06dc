// Package phrase writes numbers, names and times as people read them: on screens, in conditions and in reports alike.
package phrase

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Count returns "1 replica", "2 replicas".
func Count(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// Subject returns "1 replica fits", "2 replicas fit": a count with the verb that goes with one, or with more.
func Subject(n int64, of, does, do string) string {
	if n == 1 {
		return Count(n, of) + " " + does
	}
	return Count(n, of) + " " + do
}

// MaxNames bounds how many names a sentence has.
const MaxNames = 10

// Some joins names, with the number of those beyond MaxNames; "none" if there are none.
func Some(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > MaxNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MaxNames], ", "), len(names)-MaxNames)
	}
	return strings.Join(names, ", ")
}

// Join joins the parts that are not empty.
func Join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), separator)
}

// Prefixed returns text behind a prefix, and nothing if there is no text.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Since returns how long something has been so, in kubectl's format.
func Since(since, now time.Time) string { return duration.HumanDuration(now.Sub(since)) }
