package main

import (
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/spf13/pflag"
)

// real says where and how real nodes run, if they do.
type real struct {
	internetPID  string // file with the process id of the program internet; "": nodes are simulated
	number       int    // tells this cluster's addresses from the others'
	bin, images  string
	cgroup       string
	serviceProxy string
	federation   string

	internet *internet
}

func (r *real) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.internetPID, "internet", "", "`FILE` with the process id of the program internet: nodes are real, and plugged in there; without it they are simulated")
	fs.IntVar(&r.number, "number", 0, "number of this cluster: nodes and the API have addresses in 10.64.NUMBER.0/24")
	fs.StringVar(&r.bin, "bin", "", "directory of the programs that real nodes run")
	fs.StringVar(&r.images, "images", "", "directory of the images that real nodes have, as tar files")
	fs.StringVar(&r.cgroup, "cgroup", "/member", "start of the names of real nodes' cgroups")
	fs.StringVar(&r.serviceProxy, "service-proxy", "iptables", "what makes Services work on real nodes: iptables, nftables, kube-proxy-iptables, kube-proxy-nftables, federated (kube-proxy, and our agent beside it in the scope federated) or none")
	fs.StringVar(&r.federation, "federation-uid", "", "federation that the node agent on real nodes believes")
}

func (r *real) on() bool { return r.internetPID != "" }

// complete checks the flags. It makes paths absolute: the member is going to change its directory.
func (r *real) complete() (err error) {
	if !r.on() {
		return nil
	}
	if r.number < 0 || r.number > 253 {
		return fmt.Errorf("--number=%d: must be from 0 to 253", r.number)
	}
	for _, path := range []*string{&r.internetPID, &r.bin, &r.images} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// open finds the internet.
func (r *real) open() (err error) {
	if !r.on() {
		return nil
	}
	if r.internet, err = openInternet(r.internetPID); err != nil {
		return fmt.Errorf("--internet=%s: %w", r.internetPID, err)
	}
	return nil
}

// address is the cluster's with this number in the internet.
func (r *real) address(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 64, byte(r.number), byte(host)})
}

// apiAddress is where nodes and their pods find the API.
func (c *cluster) apiAddress() netip.Addr { return c.Real.address(254) }

// apiAddresses are all addresses that the API is asked at.
func (c *cluster) apiAddresses() []net.IP {
	all := []net.IP{net.IPv4(127, 0, 0, 1)}
	if c.Real.on() {
		all = append(all, c.apiAddress().AsSlice(), c.serviceAddress(1).AsSlice())
	}
	return all
}

// serviceAddress is the n-th address of Services: the first is that of the API, the tenth that of the DNS server.
func (c *cluster) serviceAddress(n int) netip.Addr {
	return nth(netip.MustParsePrefix(c.ServiceCIDR), n)
}

// podsOf is the network of the i-th node's pods, from 1 on.
func (c *cluster) podsOf(i int) netip.Prefix {
	all := netip.MustParsePrefix(c.PodCIDR)
	return netip.PrefixFrom(nth(all, (i-1)<<(32-nodeCIDRBits)), nodeCIDRBits)
}

// nth is the n-th address of an IPv4 network, from 0 on.
func nth(p netip.Prefix, n int) netip.Addr {
	number := new(big.Int).SetBytes(p.Addr().AsSlice())
	var out [4]byte
	number.Add(number, big.NewInt(int64(n))).FillBytes(out[:])
	return netip.AddrFrom4(out)
}
