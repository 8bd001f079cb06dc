package cluster

import "testing"

func TestJoinPathKeepsWhatIsAskedFor(t *testing.T) {
	for sub, want := range map[string]string{"": "/base", "/api/": "/base/api/", "api/v1": "/base/api/v1", "/../../x": "/base/x"} {
		if got := joinPath("/base", sub); got != want {
			t.Errorf("%q: %q, want %q", sub, got, want)
		}
	}
}
