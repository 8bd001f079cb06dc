package credential

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// Address returns the server address for a client that has the given IPs: the entry with the longest
// client CIDR that holds one of them; of equally long ones the first.
func Address(entries []v1beta1.ServerAddressByClientCIDR, client []netip.Addr) (string, error) {
	best, length := "", -1
	for i, e := range entries {
		network, err := netip.ParsePrefix(e.ClientCIDR)
		if err != nil {
			return "", fmt.Errorf("spec.serverAddressByClientCIDRs[%d].clientCIDR: %q must be a network such as 0.0.0.0/0 or 10.0.0.0/8", i, e.ClientCIDR)
		}
		if network.Bits() > length && holdsAny(network, client) {
			best, length = e.ServerAddress, network.Bits()
		}
	}
	if length < 0 {
		return "", fmt.Errorf("spec.serverAddressByClientCIDRs: no clientCIDR holds an address of the federation (%s)", list(client))
	}
	return best, nil
}

func holdsAny(network netip.Prefix, addrs []netip.Addr) bool {
	for _, a := range addrs {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

func list(addrs []netip.Addr) string {
	words := make([]string, len(addrs))
	for i, a := range addrs {
		words[i] = a.String()
	}
	return strings.Join(words, ", ")
}

// LocalAddresses returns the IPs of this machine's interfaces, loopback included.
func LocalAddresses() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}

// serverURL returns the URL of a server address: a host name, host:port, IP or IP:port, https implied.
func serverURL(address string) (string, error) {
	bad := fmt.Errorf("server address %q must be a host or IP, with or without a port", address)
	host := strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/")
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		host = "[" + host + "]"
	}
	u, err := url.Parse("https://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host {
		return "", bad
	}
	return u.String(), nil
}
