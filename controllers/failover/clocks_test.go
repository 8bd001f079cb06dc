package failover

import (
	"testing"
	"time"
)

func TestAProcessThatStoodStillKnows(t *testing.T) {
	start := readClocks()
	after := func(wall, running, boot time.Duration) clocks {
		return clocks{wall: start.wall.Add(wall), running: start.running.Add(running), boot: start.boot + boot}
	}
	const second, minute = time.Second, time.Minute
	for name, c := range map[string]struct {
		now  clocks
		want bool
	}{
		"a heartbeat":               {after(second, second, second), false},
		"a heartbeat that is late":  {after(2*second, 2*second, 2*second), false},
		"stopped by a signal":       {after(minute, minute, minute), true},
		"a machine that slept":      {after(minute, second, minute), true},
		"a machine that was paused": {after(second, second, minute), true},
		"a clock set forward":       {after(minute, second, second), true},
		"a clock set back":          {after(-minute, second, second), true},
	} {
		if got := c.now.wasSuspended(start); got != c.want {
			t.Errorf("%s: lapsed %v", name, got)
		}
	}
}
