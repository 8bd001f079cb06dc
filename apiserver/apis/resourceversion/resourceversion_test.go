package resourceversion

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "9": 9, "10": 10, "18446744073709551615": 1<<64 - 1} {
		if got := Of(&metav1.ObjectMeta{ResourceVersion: text}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
