package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"federation/dnsprovider"
	"federation/dnsprovider/zonefile"
)

// lookEvery is how often a zone file is looked at. It is read again when it has changed, and then stayed
// as it is for as long: so that nobody's half-written file is served.
const lookEvery = time.Second

// readZone reads the master file. Without one the zone is empty.
func (o *options) readZone() (zonefile.Zone, error) {
	if o.zoneFile == "" {
		return zonefile.Zone{Name: o.zone}, nil
	}
	file, err := os.Open(o.zoneFile)
	if err != nil {
		return zonefile.Zone{}, fmt.Errorf("--zone-file: %w", err)
	}
	defer file.Close()
	zone, err := zonefile.Parse(file, o.zone, zonefile.DefaultLimits)
	if err != nil {
		return zonefile.Zone{}, fmt.Errorf("--zone-file %s: %w", o.zoneFile, err)
	}
	return zone, nil
}

// split takes the addresses of the name server ns.<zone> out of a file's sets: the server has them by itself.
func split(zone zonefile.Zone) (nameServer, others []dnsprovider.RRSet) {
	for _, set := range zone.Sets {
		if set.Name == "ns."+zone.Name {
			nameServer = append(nameServer, set)
		} else {
			others = append(others, set)
		}
	}
	return nameServer, others
}

// seen is what tells one content of a file from another.
type seen struct {
	modified time.Time
	size     int64
}

func (o *options) look() seen {
	info, err := os.Stat(o.zoneFile)
	if err != nil {
		return seen{}
	}
	return seen{info.ModTime(), info.Size()}
}

// followFile reads the file again when it has changed, or when the process gets SIGHUP, until ctx ends.
func (o *options) followFile(ctx context.Context, z *zone, read seen) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for before := read; ; {
		now := before
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			now, read = o.look(), seen{}
			before = now
		case <-tick.C:
			now = o.look()
		}
		if now == before && now != read {
			read = now
			o.reload(ctx, z)
		}
		before = now
	}
}

func (o *options) reload(ctx context.Context, z *zone) {
	file, err := o.readZone()
	if err == nil {
		_, sets := split(file)
		err = z.setFile(ctx, sets)
	}
	if err != nil {
		klog.ErrorS(err, "The zone stays as it is")
		return
	}
	klog.V(2).InfoS("Zone file read", "file", o.zoneFile, "sets", len(file.Sets))
}
