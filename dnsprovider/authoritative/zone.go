package authoritative

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"federation/dnsprovider"
)

// zone is the zone as it is answered from now on, and the only one that replaces that.
type zone struct {
	name    string
	current atomic.Pointer[snapshot]
	// changed is called with each change, in turn.
	changed func(old, now *snapshot, changes dnsprovider.ChangeSet)
	// applying is held while the next snapshot is made.
	applying sync.Mutex
	// leaps counts how often the serial number was raised over a secondary's since the zone changed.
	leaps int
}

func (z *zone) check(name string) error {
	if name != z.name {
		return fmt.Errorf("zone %q: this server holds only %q", name, z.name)
	}
	return nil
}

// apply makes the changes. Until the first call the zone is not synced.
func (z *zone) apply(changes dnsprovider.ChangeSet) error {
	z.applying.Lock()
	defer z.applying.Unlock()
	old := z.current.Load()
	next := old.edit()
	for _, step := range changes {
		if err := next.change(step); err != nil {
			return err
		}
	}
	if old.synced && len(changes) == 0 {
		return nil
	}
	next.synced = true
	return z.publish(old, next, changes)
}

// publish makes an edit the current snapshot.
func (z *zone) publish(old *snapshot, next edit, changes dnsprovider.ChangeSet) error {
	z.leaps = 0
	return z.publishAs(nextSerial(old.soa.Serial, uint32(time.Now().Unix())), old, next, changes)
}

func (z *zone) publishAs(serial uint32, old *snapshot, next edit, changes dnsprovider.ChangeSet) error {
	now, err := next.finishSnapshot(serial)
	if err != nil {
		return err
	}
	z.current.Store(now)
	z.changed(old, now, changes)
	return nil
}
