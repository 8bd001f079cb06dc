package v1beta1

import (
	"fmt"
	"testing"
)

// The shard of an object is in the labels of its copies: it must be the same in every version.
func TestShardsStayWhatTheyAre(t *testing.T) {
	for key, want := range map[[2]string]int{{"default", "web"}: 59, {"", "default"}: 35} {
		if got := Shard(key[0], key[1]); got != want {
			t.Errorf("Shard(%q, %q) is %d, want %d", key[0], key[1], got, want)
		}
	}
}

func TestShardsAreEven(t *testing.T) {
	var count [Shards]int
	for i := range 6400 {
		count[Shard("default", fmt.Sprintf("web-%d", i))]++
	}
	for shard, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("shard %d has %d of 6400 objects", shard, n)
		}
	}
}
