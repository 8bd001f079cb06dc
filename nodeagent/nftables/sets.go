package nftables

import (
	"golang.org/x/sys/unix"
)

// Names of the sets.
const (
	services   = "services"
	endpoints  = "endpoints"
	refused    = "refused"
	clusterIPs = "cluster-ips"
	sources    = "sources"
	affinity   = "affinity"
	sticky     = "sticky"
	hairpin    = "hairpin"
	remote     = "remote"
	exposed    = "exposed"
	dark       = "dark"
	asked      = "asked"
	taken      = "taken"
	retried    = "retried"
)

// datatype is a type of nft: its number, by which nft shows elements, and its size in bytes.
type datatype struct{ magic, size uint32 }

var (
	ipv4Addr    = datatype{7, 4}
	ipv6Addr    = datatype{8, 16}
	inetProto   = datatype{12, 1}
	inetService = datatype{13, 2}
	slotNumber  = datatype{19, 4} // what nft calls a mark: four bytes in the order of the machine
)

// definition is a set or map as the kernel defines it.
type definition struct {
	name    string
	flags   uint32
	key     []datatype
	data    []datatype // of a map to values
	verdict bool       // a map to verdicts
	size    uint32     // at most so many elements; 0: as many as there are
	counted bool       // each element has a counter
}

// maxAffinity bounds what packets may add to affinity. A client that finds it full is sent to any backend.
const maxAffinity = 1 << 20

func (t *table) definitions() []definition {
	addr := ipv4Addr
	if t.family == unix.NFPROTO_IPV6 {
		addr = ipv6Addr
	}
	frontend := []datatype{addr, inetProto, inetService}
	with := func(more ...datatype) []datatype { return append(frontend[:3:3], more...) }
	all := []definition{
		{name: services, flags: unix.NFT_SET_MAP, key: frontend, verdict: true},
		{name: endpoints, flags: unix.NFT_SET_MAP, key: with(slotNumber), data: []datatype{addr, inetService}},
		{name: refused, key: frontend},
		{name: clusterIPs, key: []datatype{addr}},
		{name: sources, flags: unix.NFT_SET_INTERVAL | setConcat, key: with(addr)},
		{name: affinity, flags: unix.NFT_SET_MAP | unix.NFT_SET_EVAL | unix.NFT_SET_TIMEOUT, size: maxAffinity,
			key: append([]datatype{addr}, frontend...), data: []datatype{addr, inetService}},
		{name: sticky, flags: unix.NFT_SET_MAP, key: frontend, verdict: true},
		{name: hairpin, key: []datatype{addr, addr}},
		{name: remote, key: []datatype{addr}},
		{name: exposed, key: frontend},
		{name: dark, flags: unix.NFT_SET_TIMEOUT, key: []datatype{slotNumber}},
	}
	if t.balancer {
		all = append(all, balancerSets(frontend)...)
	}
	return all
}

// setConcat is NFT_SET_CONCAT: ranges in more than one dimension.
const setConcat = 0x80

// concatType returns the number of a concatenation: six bits a type.
func concatType(types []datatype) (n uint32) {
	for _, t := range types {
		n = n<<6 | t.magic
	}
	return n
}

// concatWidth returns the size of a concatenation, in which each part fills whole registers of four bytes.
func concatWidth(types []datatype) (n uint32) {
	for _, t := range types {
		n += (t.size + 3) &^ 3
	}
	return n
}
