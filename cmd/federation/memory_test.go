package main

import "testing"

func TestSoftLimit(t *testing.T) {
	for _, c := range []struct{ live, want int64 }{{0, 256}, {100, 256}, {200, 298}, {1000, 1298}} {
		if got := softLimit(c.live<<20) >> 20; got != c.want {
			t.Errorf("%d MiB live: %d MiB, want %d", c.live, got, c.want)
		}
	}
}
