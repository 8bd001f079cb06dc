package delegation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"federation/dnsprovider/contain"
)

const (
	// timeout is for one server, maxServers how many are asked.
	timeout, maxServers = 5 * time.Second, 20
)

// Asker asks the servers of the parent zone.
type Asker struct {
	// Servers are the HOST:PORT of all servers of the parent zone. None: they are looked up.
	Servers []string
}

// DS returns the DS records that each server has of the zone; the same for all if all is well. It fails unless every
// server answers with authority.
func (a Asker) DS(ctx context.Context, zone string) ([][]*dns.DS, error) {
	servers, err := a.servers(ctx, zone)
	if err != nil {
		return nil, err
	}
	answers := make([][]*dns.DS, len(servers))
	group, ctx := errgroup.WithContext(ctx)
	for i, addresses := range servers {
		group.Go(func() error {
			return contain.Call("delegation", func() (err error) { answers[i], err = firstAnswer(ctx, addresses, zone); return err })
		})
	}
	return answers, group.Wait()
}

// servers returns those of the parent zone, each with its addresses.
func (a Asker) servers(ctx context.Context, zone string) (all [][]string, err error) {
	for _, address := range a.Servers {
		all = append(all, []string{address})
	}
	if len(all) > 0 {
		return all, nil
	}
	names, err := parentServers(ctx, zone)
	if err != nil {
		return nil, err
	}
	for _, name := range names[:min(len(names), maxServers)] {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name.Host)
		if err != nil {
			return nil, err
		}
		addresses := []string{}
		for _, ip := range found {
			addresses = append(addresses, netip.AddrPortFrom(ip.Unmap(), 53).String())
		}
		all = append(all, addresses)
	}
	return all, nil
}

// parentServers returns the name servers of the nearest parent zone.
func parentServers(ctx context.Context, zone string) ([]*net.NS, error) {
	for at, end := dns.NextLabel(zone, 0); !end; at, end = dns.NextLabel(zone, at) {
		if found, err := net.DefaultResolver.LookupNS(ctx, zone[at:]); err == nil && len(found) > 0 {
			return found, nil
		}
	}
	return nil, fmt.Errorf("zone %s: no name servers are found of a parent zone", zone)
}

// firstAnswer returns what a server says at the first of its addresses that answers.
func firstAnswer(ctx context.Context, addresses []string, zone string) (found []*dns.DS, err error) {
	err = errors.New("it has no address")
	for _, address := range addresses {
		if found, err = queryDS(ctx, address, zone); err == nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("DS records of %s at %s: %w", zone, strings.Join(addresses, ", "), err)
}

func queryDS(ctx context.Context, address, zone string) (found []*dns.DS, err error) {
	m := new(dns.Msg).SetQuestion(zone, dns.TypeDS)
	m.RecursionDesired = false
	in, _, err := (&dns.Client{Net: "tcp", Timeout: timeout}).ExchangeContext(ctx, m, address)
	if err != nil {
		return nil, err
	}
	if !in.Authoritative || !slices.Contains([]int{dns.RcodeSuccess, dns.RcodeNameError}, in.Rcode) {
		return nil, fmt.Errorf("it answers %s, with authority: %t", dns.RcodeToString[in.Rcode], in.Authoritative)
	}
	for _, rr := range in.Answer {
		if ds, ok := rr.(*dns.DS); ok && strings.EqualFold(ds.Hdr.Name, zone) {
			found = append(found, ds)
		}
	}
	return found, nil
}
