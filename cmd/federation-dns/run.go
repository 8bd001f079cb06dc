package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/cmd/internal/logformat"
	"federation/cmd/internal/process"
	"federation/controllers/supervisor"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
	"federation/dnsprovider/filechange"
	"federation/dnsprovider/zonefile"
)

// run serves the zone until ctx ends. It fails at the start only, and when a socket does.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	process.LimitMemory()
	collectSeldom(o.zoneFile)
	watched := filechange.Watch(o.zoneFile)
	file, err := o.readZone()
	if err != nil {
		return err
	}
	nameServer, sets := splitNameServer(file)
	server, err := o.newServer(nameServer, negativeTTL(file))
	if err != nil {
		return err
	}
	server.SpareProcessor()
	registry := legacyregistry.Registerer()
	if err := registry.Register(server); err != nil {
		return fmt.Errorf("metrics of the server: %w", err)
	}
	defer registry.Unregister(server)
	z := &zone{server: server, name: o.zone, federated: o.kubeconfig != ""}
	if err := z.setFile(ctx, sets); err != nil {
		return fmt.Errorf("--zone-file %s: %w", o.zoneFile, err)
	}
	giveBack()
	heard := &lastHeard{}
	if o.kubeconfig != "" {
		heard.now()
		if err := registry.Register(heard); err != nil {
			return fmt.Errorf("metrics of the federation's answers: %w", err)
		}
		defer registry.Unregister(heard)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(ctx, "dns", func(ctx context.Context) error { return process.RunWithMetrics(ctx, o.metrics, z.isReady, server.Run) }))
	logformat.Announce("federation-dns: %s on %s, over UDP and TCP", o.zone, server.Addr())
	group.Go(supervisor.Protected(ctx, "dns", func(ctx context.Context) error { o.server.Follow(ctx); return nil }))
	if o.zoneFile != "" {
		group.Go(supervisor.Protected(ctx, "zone-file", func(ctx context.Context) error { o.followFile(ctx, z, watched); return nil }))
	}
	if o.kubeconfig != "" {
		group.Go(supervisor.Protected(ctx, "servicedns", func(ctx context.Context) error { return o.followFederation(ctx, z, heard) }))
	}
	return group.Wait()
}

// newServer makes the server, with its keys.
func (o *options) newServer(nameServer []dnsprovider.RRSet, negativeTTL uint32) (*authoritative.Server, error) {
	options := authoritative.Options{Zone: o.zone, Listen: o.listen, NegativeTTL: negativeTTL}
	if err := o.server.Fill(&options); err != nil {
		return nil, err
	}
	if len(options.NameServers) == 0 {
		options.NameServers = addresses(nameServer)
	}
	signer, err := o.signer(o.zone)
	if err != nil {
		return nil, err
	}
	if o.federationKeys && (o.kubeconfig == "" || signer != nil) {
		return nil, errors.New("--dnssec needs --kubeconfig, and must not be beside --dnssec-key-file: the keys are those of the federation")
	}
	if (signer != nil || o.federationKeys) && len(options.Transfers.Keys) > 0 {
		return nil, errors.New("--transfer-key-file: must not be beside --dnssec or --dnssec-key-file: a signed zone cannot be transferred (ADR 32)")
	}
	server, err := authoritative.New(options)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if signer == nil {
		return server, nil
	}
	return server, server.Sign(signer)
}

// negativeTTL returns the last field of the file's SOA, 0 if there is none (RFC 2308, section 4).
func negativeTTL(z zonefile.Zone) uint32 {
	if z.SOA.Name == "" {
		return 0
	}
	fields := strings.Fields(z.SOA.Rdata[0])
	seconds, _ := strconv.ParseUint(fields[len(fields)-1], 10, 32) // the parser wrote it
	return min(uint32(seconds), z.SOA.TTL)
}
