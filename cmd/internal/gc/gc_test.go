package gc

import "testing"

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		headroom, heap, live int64 // MiB
		want                 int
	}{
		{128, 0, 0, 400}, {128, 0, 32, 400}, {128, 0, 64, 200}, {128, 0, 128, 100}, {128, 0, 256, 50}, {128, 0, 1000, 50},
		{12, 40, 4, 900}, {12, 40, 20, 100}, {12, 40, 30, 50}, {12, 40, 0, 1233}, {12, 40, 60, 50},
	} {
		if got := (Room{c.headroom << 20, c.heap << 20}).percent(c.live << 20); got != c.want {
			t.Errorf("%d MiB live, headroom %d MiB, heap %d MiB: %d %%, want %d", c.live, c.headroom, c.heap, got, c.want)
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
