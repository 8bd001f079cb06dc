package main

import (
	"slices"
	"testing"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		members, objects int
		rates            []int
	}{{3, 5000, []int{10, 50}}, {10, 1500, []int{3, 15}}, {20, 750, []int{1, 7}}, {200, 75, []int{1, 1}}} {
		b := &bench{}
		b.size(c.members)
		if b.objects != c.objects || !slices.Equal(b.rates, c.rates) {
			t.Errorf("%d members: got %d objects, %v a second", c.members, b.objects, b.rates)
		}
	}
}
