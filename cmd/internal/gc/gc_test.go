package gc

import "testing"

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live int64 // MiB
		want int
	}{{0, 400}, {32, 400}, {64, 200}, {128, 100}, {256, 50}, {1000, 50}} {
		if got := gcPercent(c.live<<20, 128<<20); got != c.want {
			t.Errorf("%d MiB live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

func TestMemory_AQuietProcessGivesItBack(t *testing.T) {
	for _, c := range []struct {
		name                        string
		live, held, free, allocated int64 // MiB
		want                        bool
	}{
		{"quiet, and holds garbage", 100, 170, 0, 1, true},
		{"quiet, and holds pages", 100, 100, 70, 1, true},
		{"quiet, and holds a little of both", 100, 120, 20, 1, true},
		{"quiet, and holds little", 100, 110, 10, 1, false},
		{"busy", 100, 200, 100, 100, false},
	} {
		now := memory{c.live << 20, c.held << 20, c.free << 20, (1000 + c.allocated) << 20}
		if got := now.givesBack(memory{allocated: 1000 << 20}, 128<<20); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if m := lookAtMemory(); m.held <= 0 || m.allocated < m.held {
		t.Errorf("a look shows %+v", m)
	}
}
