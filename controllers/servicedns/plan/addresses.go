package plan

import (
	"fmt"
	"net/netip"

	"federation/apiserver/apis/federation/v1beta1"
)

// publishable returns the addresses that may be published, and records why the others may not. what describes them.
func (p *planner) publishable(cluster, what string, addresses ...netip.Addr) (good []netip.Addr) {
	for _, addr := range addresses {
		if err := p.in.refuseAddress(addr); err != nil {
			p.addCodedReason(AddressRejected, cluster, "%s is not used: %v", fmt.Sprintf(what, addr), err)
			continue
		}
		good = append(good, addr.Unmap().WithZone(""))
	}
	return good
}

func (in *Input) refuseAddress(addr netip.Addr) error {
	if in.Refuse != nil {
		return in.Refuse(addr)
	}
	return v1beta1.RefuseAddress(addr)
}
