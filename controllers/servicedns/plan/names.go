package plan

import (
	"fmt"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// namer builds the names of one Service.
type namer struct{ prefix, zone string }

func newNamer(in *Input, s *Object) namer {
	return namer{prefix: fmt.Sprintf("%s.%s.%s.svc", s.Name, s.Namespace, in.Federation), zone: in.Zone}
}

// nameAt returns the canonical name at the level of the labels: none for global, region, or zone and region. Each must be
// a single DNS label.
func (n namer) nameAt(labels ...string) (string, error) {
	for _, label := range labels {
		if strings.Contains(label, ".") {
			return "", fmt.Errorf("label %q: must be one label of a DNS name, without a dot", label)
		}
	}
	return dnsprovider.CanonicalName(strings.Join(append(append([]string{n.prefix}, labels...), n.zone), "."))
}

// Owns reports whether a canonical name in the zone has the form of the names that Records makes for the federation.
// Other names belong to others.
func Owns(federation, zone, name string) bool { return v1beta1.ServiceName(federation, zone, name) }
