package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
	"federation/dnsprovider/authoritative/nearest"
	"federation/dnsprovider/zonefile"
)

// run serves the zone until ctx ends. It fails at the start only, and when a socket does.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	read := o.look()
	file, err := o.readZone()
	if err != nil {
		return err
	}
	nameServer, sets := split(file)
	server, err := o.newServer(nameServer, negativeTTL(file))
	if err != nil {
		return err
	}
	registry := legacyregistry.Registerer()
	if err := registry.Register(server); err != nil {
		return fmt.Errorf("metrics of the server: %w", err)
	}
	defer registry.Unregister(server)
	z := &zone{server: server, name: o.zone, federated: o.kubeconfig != ""}
	if err := z.setFile(ctx, sets); err != nil {
		return fmt.Errorf("--zone-file %s: %w", o.zoneFile, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return o.serveHealth(ctx, z) })
	fmt.Fprintf(os.Stderr, "federation-dns: %s on %s, over UDP and TCP\n", o.zone, server.Addr())
	if o.zoneFile != "" {
		group.Go(func() error { o.followFile(ctx, z, read); return nil })
	}
	if o.kubeconfig != "" {
		group.Go(func() error { return o.followFederation(ctx, z) })
	}
	return group.Wait()
}

// newServer makes the server, with its keys.
func (o *options) newServer(nameServer []dnsprovider.RRSet, negativeTTL uint32) (*authoritative.Server, error) {
	near, err := o.locator()
	if err != nil {
		return nil, fmt.Errorf("--networks: %w", err)
	}
	transfers, err := o.transfers()
	if err != nil {
		return nil, err
	}
	signer, err := o.signer(o.zone)
	if err != nil {
		return nil, err
	}
	if o.federationKeys && (o.kubeconfig == "" || signer != nil) {
		return nil, errors.New("--dnssec needs --kubeconfig, and must not be beside --dnssec-key-file: the keys are those of the federation")
	}
	if (signer != nil || o.federationKeys) && len(transfers.Keys) > 0 {
		return nil, errors.New("--transfer-key-file: must not be beside --dnssec or --dnssec-key-file: the proofs that a name does not exist are made for each question, and cannot be transferred")
	}
	server, err := authoritative.New(authoritative.Options{
		Zone: o.zone, Listen: o.listen, NameServers: o.addresses(nameServer), NegativeTTL: negativeTTL, Threads: o.threads,
		Transfers: transfers, RateLimit: o.rateLimit, Locator: near,
	})
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if signer == nil {
		return server, nil
	}
	return server, server.Sign(signer)
}

// locator reads the table of networks, if there is one.
func (o *options) locator() (authoritative.Locator, error) {
	if o.networks == "" {
		return nil, nil
	}
	return nearest.Load(o.networks)
}

// negativeTTL is the last field of the file's SOA, 0 where there is none (RFC 2308, section 4).
func negativeTTL(z zonefile.Zone) uint32 {
	if z.SOA.Name == "" {
		return 0
	}
	fields := strings.Fields(z.SOA.Rdata[0])
	seconds, _ := strconv.ParseUint(fields[len(fields)-1], 10, 32) // the parser wrote it
	return min(uint32(seconds), z.SOA.TTL)
}
