package proxy

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"

	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
)

// LocalAddresses returns the addresses of this machine, without those in the networks.
func LocalAddresses(but []netip.Prefix) (map[netip.Addr]bool, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for _, f := range found {
		network, err := netip.ParsePrefix(f.String())
		if a := v1beta1.EmbeddedIPv4(network.Addr()); err == nil && !slices.ContainsFunc(but, func(n netip.Prefix) bool { return n.Contains(a) }) {
			own[a] = true
		}
	}
	return own, nil
}

// lookAtOwn looks which addresses this machine has, and decides all pools again if they have changed: one may have moved here.
func (o *pools) lookAtOwn() {
	if o.readOwn == nil {
		return
	}
	own, err := o.readOwn()
	if err != nil {
		klog.ErrorS(err, "Cannot read the addresses of this machine, keeping those before")
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if maps.Equal(own, o.own) {
		return
	}
	o.own = own
	for id := range o.inputs {
		o.decide(id)
	}
}

// errOwn is why a connection to this machine is closed.
var errOwn = errors.New("it is an address of the load balancer's own machine")

// refuseOwn returns an error for a connection to this machine: its address came here a moment ago. Both ends of such a connection have the same address.
func (o *pools) refuseOwn(c net.Conn, at netip.Addr) error {
	if o.readOwn == nil || addrOf(c.LocalAddr()) != at.Unmap() {
		return nil
	}
	o.lookAtOwn()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own[v1beta1.EmbeddedIPv4(at)] {
		return errOwn
	}
	return nil
}

// refusedOwn returns the addresses of this machine that clusters say to be their load balancers.
func (o *pools) refusedOwn() (own []plan.Target) {
	o.current.Range(func(_, v any) bool {
		for _, r := range v.(*pool).refused {
			if r.Own {
				own = append(own, r.Target)
			}
		}
		return true
	})
	slices.SortFunc(own, plan.Target.Compare)
	return slices.Compact(own)
}

// observeRefused counts addresses that a pool refuses and did not refuse before, and no more those that it did. Nil is no pool.
func observeRefused(was, next *pool) {
	for _, one := range []struct {
		*pool
		add float64
	}{{was, -1}, {next, 1}} {
		if one.pool == nil {
			continue
		}
		for _, r := range one.refused {
			refusedTargets.WithLabelValues(r.Cluster).Add(one.add)
		}
	}
	if next == nil {
		return
	}
	for _, r := range next.refused {
		if was == nil || !slices.Contains(was.refused, r) {
			klog.InfoS("A cluster says that its load balancer is where connections to would come back, they are not sent there", "pool", next.id, "cluster", r.Cluster, "address", r.Address, "own", r.Own)
		}
	}
}
