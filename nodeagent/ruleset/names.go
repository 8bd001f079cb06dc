package ruleset

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PortID names a port of a Service.
type PortID struct {
	Key
	Port     string // its name; "" if it has none
	Protocol corev1.Protocol
}

// String returns namespace/name:port, the colon also where the port has no name.
//
// kube-proxy leaves the colon out there; its chain names are made of what is left. The mission's sources keep it.
func (id PortID) String() string { return id.Key.String() + ":" + id.Port }

// Hash returns what the names of the port's chains end in.
func (id PortID) Hash() string { return hash(id.String() + strings.ToLower(string(id.Protocol))) }

// BackendHash returns what the name of a backend's chain ends in.
func (id PortID) BackendHash(to netip.AddrPort) string {
	return hash(id.String() + strings.ToLower(string(id.Protocol)) + to.String())
}

// hash returns the first 16 characters of the SHA-256 in base 32: chain names have at most 28 characters.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}
