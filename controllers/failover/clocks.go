package failover

import (
	"time"

	"federation/controllers/writegate"
)

const (
	// heartbeat is the period at which the clocks are read.
	heartbeat = time.Second
	// lapse is how late a heartbeat may be.
	lapse = 2 * time.Second
)

// clocks are readings of the three clocks.
type clocks struct {
	// wall may be set by somebody.
	wall time.Time
	// running stops while the machine is suspended.
	running time.Time
	// boot does not stop then, and cannot be set.
	boot time.Duration
}

func readClocks() clocks {
	now := time.Now()
	return clocks{wall: now.Round(0), running: now, boot: writegate.BootTime()}
}

// wasSuspended reports whether the process was suspended since the last heartbeat, or the clock was set. Time that seems to
// have passed does not count then.
func (c clocks) wasSuspended(last clocks) bool {
	running, wall := c.running.Sub(last.running), c.wall.Sub(last.wall)
	return running > heartbeat+lapse || c.boot-last.boot > heartbeat+lapse || wall-running > lapse || running-wall > lapse
}
