package failover

import (
	"time"

	"federation/controllers/writegate"
)

const (
	// heartbeat is how often the clocks are read.
	heartbeat = time.Second
	// lapse is by how much a heartbeat may be late.
	lapse = 2 * time.Second
)

// clocks are readings of the three clocks that there are.
type clocks struct {
	// wall can be set.
	wall time.Time
	// running stands still while the machine is suspended.
	running time.Time
	// boot does not, and cannot be set.
	boot time.Duration
}

func readClocks() clocks {
	now := time.Now()
	return clocks{wall: now.Round(0), running: now, boot: writegate.BootTime()}
}

// lapsed reports whether nobody was there for a while since the last heartbeat, or the clock was set: time that seems to have passed
// counts for nothing then.
func (c clocks) lapsed(last clocks) bool {
	running, wall := c.running.Sub(last.running), c.wall.Sub(last.wall)
	return running > heartbeat+lapse || c.boot-last.boot > heartbeat+lapse || wall-running > lapse || running-wall > lapse
}
