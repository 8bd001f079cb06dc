package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"federation/dnsprovider"
	"federation/dnsprovider/filechange"
	"federation/dnsprovider/zonefile"
)

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

// splitNameServer separates the addresses of the name server ns.<zone> from a file's sets: the server has its own.
func splitNameServer(zone zonefile.Zone) (nameServer, others []dnsprovider.RRSet) {
	for _, set := range zone.Sets {
		if set.Name == "ns."+zone.Name {
			nameServer = append(nameServer, set)
		} else {
			others = append(others, set)
		}
	}
	return nameServer, others
}

// followFile reads the file again when it has changed, or when the process gets SIGHUP, until ctx ends.
func (o *options) followFile(ctx context.Context, z *zone, file *filechange.Watcher) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	file.Follow(ctx, hangup, func() { o.reload(ctx, z) })
}

func (o *options) reload(ctx context.Context, z *zone) {
	collectSeldom(o.zoneFile)
	defer giveBack()
	file, err := o.readZone()
	if err == nil {
		_, sets := splitNameServer(file)
		err = z.setFile(ctx, sets)
	}
	if err != nil {
		klog.ErrorS(err, "Cannot use the new zone file; the zone stays")
		return
	}
	klog.V(2).InfoS("Zone file read", "file", o.zoneFile, "sets", len(file.Sets))
}
