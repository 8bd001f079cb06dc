package dnsprovider

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestMarks(t *testing.T) {
	mark := func(name, owner string) RRSet {
		t.Helper()
		set, err := Mark(name, owner)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	ours := mark("www.example.com.", "prod")
	if want := `_federation.www.example.com. 300 IN TXT "_federation=prod"`; ours.String() != want {
		t.Errorf("got %s, want %s", ours, want)
	}
	unquoted := mustNew(t, "_federation.api.example.com", TXT, 60, "_federation=prod")
	got := Marked([]RRSet{ours, unquoted, mark("shop.example.com.", "test"), mark("a.example.com.", "prod2"),
		mustNew(t, "mail.example.com", TXT, 60, `"_federation=prod"`), mustNew(t, "_federation.x.example.com", A, 60, "192.0.2.1")}, "prod")
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"api.example.com.", "www.example.com."}) {
		t.Errorf("marked as prod's: %q", names)
	}
	if _, err := Mark(strings.Repeat("abcdefg.", 31), "prod"); err == nil || !strings.Contains(err.Error(), "at most 255") {
		t.Errorf("a name that is too long to be marked: error %v", err)
	}
}
