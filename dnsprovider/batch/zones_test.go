package batch

import (
	"context"
	"errors"
	"maps"
	"testing"
)

func TestZonesAreFound(t *testing.T) {
	two := map[string]string{"Z2": "private", "Z1": "public"}
	for _, c := range []struct {
		named     map[string]string
		id        string
		want, err string
	}{
		{named: map[string]string{"Z1": "public"}, want: "Z1"},
		{named: two, id: "Z2", want: "Z2"},
		{named: two, err: "there are 2 hosted zones of that name in the account (Z1 public, Z2 private): say which one is meant"},
		{named: two, id: "Z3", err: `there is no hosted zone "Z3" of that name in the account`},
		{err: "there is no hosted zone of that name in the account"},
	} {
		z := Zones{Kind: "hosted zone", Where: "in the account", ID: c.id,
			Named: func(context.Context, string) (map[string]string, error) { return maps.Clone(c.named), nil }}
		id, err := z.Find(t.Context(), "example.com.")
		if id != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%v, ID %q: %q, %v, want %q, %q", c.named, c.id, id, err, c.want, c.err)
		}
	}
}

func TestZonesAreLookedForAnewAfterAnError(t *testing.T) {
	asked, failed := 0, errors.New("no such zone")
	z := Zones{Named: func(context.Context, string) (map[string]string, error) {
		asked++
		return map[string]string{"Z1": ""}, nil
	}}
	for _, step := range []struct {
		err   error
		asked int
	}{{nil, 1}, {nil, 1}, {failed, 1}, {nil, 2}} {
		id, err := z.Find(t.Context(), "example.com.")
		if id != "Z1" || err != nil || asked != step.asked {
			t.Errorf("%q, %v, asked %d times, want %d", id, err, asked, step.asked)
		}
		if got := z.Forget("example.com.", step.err); got != step.err {
			t.Errorf("error %v became %v", step.err, got)
		}
	}
}
