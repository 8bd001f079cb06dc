package main

import "testing"

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live int64 // MiB
		want int
	}{{0, 400}, {32, 400}, {64, 200}, {128, 100}, {256, 50}, {1000, 50}} {
		if got := gcPercent(c.live << 20); got != c.want {
			t.Errorf("%d MiB live: %d %%, want %d", c.live, got, c.want)
		}
	}
}
