package batch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// news returns steps that bring as many addresses as said, one name each.
func news(t *testing.T, sizes ...int) (c dnsprovider.ChangeSet) {
	for i, n := range sizes {
		var addresses []string
		for j := range n {
			addresses = append(addresses, fmt.Sprintf("192.0.2.%d", j))
		}
		set, err := dnsprovider.New(fmt.Sprintf("n%d.example", i), dnsprovider.A, 15, addresses...)
		if err != nil {
			t.Fatal(err)
		}
		c = append(c, dnsprovider.Step{Name: set.Name, New: []dnsprovider.RRSet{set}})
	}
	return c
}

func TestBatchesHoldAsMuchAsFits(t *testing.T) {
	for _, c := range []struct{ sizes, want []int }{
		{nil, nil},
		{[]int{10}, []int{1}},
		{[]int{4, 6, 1, 9, 10, 2}, []int{2, 2, 1, 1}},
		{[]int{9, 2, 2}, []int{1, 2}},
	} {
		changes := news(t, c.sizes...)
		batches, err := divideSteps(changes, 10, Records)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, b := range batches {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) || slices.Concat(batches...).String() != changes.String() {
			t.Errorf("sizes %v: batches of %v steps, want %v", c.sizes, got, c.want)
		}
	}
	if _, err := divideSteps(news(t, 1, 11), 10, Records); err == nil || !strings.Contains(err.Error(), "n1.example") {
		t.Errorf("a step that fits nowhere: error %v, want one that names it", err)
	}
}
