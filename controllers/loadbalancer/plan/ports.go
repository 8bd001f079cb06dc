package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// PortRanges are the ports at which a load balancer serves Services. The zero value has none.
type PortRanges []PortRange

// PortRange has the ports from First to Last.
type PortRange struct{ First, Last uint16 }

// MaxPorts bounds the ports of PortRanges, and so how many sockets of a load balancer tenants can have it open.
const MaxPorts = 1000

// ParsePortRanges parses "5432,9000-9100".
func ParsePortRanges(text string) (all PortRanges, err error) {
	if text == "" {
		return nil, nil
	}
	ports := 0
	for item := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(item, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil || first == 0 || last < first {
			return nil, fmt.Errorf("%q: must be ports from 1 to 65535 and ranges of them, as 5432,9000-9100", item)
		}
		if ports += int(last - first + 1); ports > MaxPorts {
			return nil, fmt.Errorf("%q: %d ports or more: must be at most %d", text, ports, MaxPorts)
		}
		all = append(all, PortRange{uint16(first), uint16(last)})
	}
	return all, nil
}

// String formats them as ParsePortRanges parses them.
func (r PortRanges) String() string {
	var items []string
	for _, p := range r {
		if p.First == p.Last {
			items = append(items, strconv.Itoa(int(p.First)))
		} else {
			items = append(items, fmt.Sprintf("%d-%d", p.First, p.Last))
		}
	}
	return strings.Join(items, ",")
}

// Has reports whether a port is one of them.
func (r PortRanges) Has(port int32) bool {
	for _, p := range r {
		if port >= int32(p.First) && port <= int32(p.Last) {
			return true
		}
	}
	return false
}
