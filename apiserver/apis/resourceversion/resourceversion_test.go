package resourceversion

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestResourceVersionOf(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "9": 9, "10": 10, "18446744073709551615": 1<<64 - 1} {
		if got := Of(&metav1.ObjectMeta{ResourceVersion: text}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// The result of a write is waited for, but not for ever: a restored store has lower versions.
func TestWhatAWriteLeftIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(version string) *metav1.ObjectMeta { return &metav1.ObjectMeta{ResourceVersion: version} }
		left := LeftAt(10)
		if !left.Unseen(at("9")) || left.Unseen(at("10")) || left.Unseen(at("11")) || !left.Is(at("10")) || left.Is(at("9")) {
			t.Errorf("%+v", left)
		}
		time.Sleep(Believed)
		if left.Unseen(at("9")) {
			t.Error("a version that never comes is waited for")
		}
		if left.Is(at("10")) {
			t.Error("what comes when nobody waits for it any more is no news")
		}
		if none := (Left{}); none.Unseen(at("")) || none.Is(at("")) {
			t.Error("nothing was written")
		}
	})
}
