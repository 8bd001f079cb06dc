package ruleset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// claims has the Ports that want each address: the first of them gets it. A cluster IP comes before a clusterset IP,
// and that before what users write (external IPs), so that nobody takes over another's address (CVE-2020-8554); then
// the older Service.
type claims map[FrontendKey][]claim

type claim struct {
	by   *Port
	kind Kind
	born time.Time
}

func (c claims) add(ports []*Port, s *corev1.Service) {
	for _, p := range ports {
		for _, f := range p.Frontends {
			all := append(c[f.Key], claim{p, f.Kind, s.CreationTimestamp.Time})
			slices.SortFunc(all, claim.compare)
			c[f.Key] = all
		}
	}
}

func (c claims) remove(ports []*Port) {
	for _, p := range ports {
		for _, f := range p.Frontends {
			rest := slices.DeleteFunc(c[f.Key], func(x claim) bool { return x.by == p })
			if c[f.Key] = rest; len(rest) == 0 {
				delete(c, f.Key)
			}
		}
	}
}

// addRivals adds the Services that claim an address which these Ports had or have.
func (c claims) addRivals(to map[Key]bool, was, is []*Port) {
	for _, ports := range [][]*Port{was, is} {
		for _, p := range ports {
			for _, f := range p.Frontends {
				for _, x := range c[f.Key] {
					to[x.by.ID.Key] = true
				}
			}
		}
	}
}

// owned returns the Port without the frontends that another has, and why they are missing.
func (c claims) owned(p *Port) (*Port, []string) {
	other := func(f Frontend) bool { return c[f.Key][0].by != p }
	if !slices.ContainsFunc(p.Frontends, other) {
		return p, nil
	}
	out, lost := *p, []string(nil)
	out.Frontends = nil
	for _, f := range p.Frontends {
		if other(f) {
			lost = append(lost, fmt.Sprintf("%s: %s is that of %s, which was first", p.ID, f.Key, c[f.Key][0].by.ID))
		} else {
			out.Frontends = append(out.Frontends, f)
		}
	}
	return &out, lost
}

func (x claim) compare(y claim) int {
	first := func(k Kind) int {
		switch k {
		case ClusterIP:
			return 0
		case ClusterSetIP:
			return 1
		}
		return 2
	}
	if n := first(x.kind) - first(y.kind); n != 0 {
		return n
	}
	if n := x.born.Compare(y.born); n != 0 {
		return n
	}
	return x.by.ID.compare(y.by.ID)
}

// String is like "10.0.147.93:9200/tcp", or "node port 32135/tcp".
func (k FrontendKey) String() string {
	proto := strings.ToLower(string(k.Protocol))
	switch {
	case !k.Addr.IsValid():
		return fmt.Sprintf("node port %d/%s", k.Port, proto)
	case k.IPv6:
		return fmt.Sprintf("[%s]:%d/%s", k.Addr, k.Port, proto)
	}
	return fmt.Sprintf("%s:%d/%s", k.Addr, k.Port, proto)
}
