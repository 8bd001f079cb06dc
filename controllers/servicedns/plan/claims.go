package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// notGranted is the end of the message that a host is granted to others.
const notGranted = " to other namespaces"

// Claims track which objects claim which hosts: names in the zone other than a Service's own. Make them with NewClaims.
type Claims struct {
	zone Zone
	// claims has, by host, the creation time of each claiming object, by its key.
	claims map[string]map[string]time.Time
	hosts  map[string][]string
	// kept has the owning namespaces, by host, as written to the ConfigMap.
	kept map[string]Keep
	// grants say which namespaces may have which hosts.
	grants []*v1beta1.DNSNameGrant
}

// NewClaims returns empty claims.
func NewClaims(zone Zone) *Claims {
	return &Claims{zone: zone, claims: map[string]map[string]time.Time{}, hosts: map[string][]string{}}
}

// Set records what an object claims now. It returns the keys of other objects that this may affect.
func (c *Claims) Set(o *Object) (others []string) {
	others = c.Drop(o.Key())
	for _, host := range o.claimedHosts() {
		name, fault := c.claimable(o.Namespace, host)
		if fault != "" {
			continue
		}
		if c.claims[name] == nil {
			c.claims[name] = map[string]time.Time{}
		}
		for other := range c.claims[name] {
			others = append(others, other)
		}
		c.claims[name][o.Key()] = o.Created
		c.hosts[o.Key()] = append(c.hosts[o.Key()], name)
	}
	return slices.DeleteFunc(others, func(key string) bool { return key == o.Key() })
}

// Drop forgets an object. It returns the keys of objects that this may affect.
func (c *Claims) Drop(key string) (others []string) {
	for _, name := range c.hosts[key] {
		delete(c.claims[name], key)
		for other := range c.claims[name] {
			others = append(others, other)
		}
		if len(c.claims[name]) == 0 {
			delete(c.claims, name)
		}
	}
	delete(c.hosts, key)
	return others
}

// Keep sets the owners of hosts. It returns the keys of objects that this may affect.
func (c *Claims) Keep(kept map[string]Keep) (some []string) {
	before := c.kept
	c.kept = kept
	for name, claims := range c.claims {
		if before[name] == kept[name] {
			continue
		}
		for key := range claims {
			some = append(some, key)
		}
	}
	return some
}

// Grant sets the grants. Objects with claims must be Set again.
func (c *Claims) Grant(grants []*v1beta1.DNSNameGrant) { c.grants = grants }

// isGranted reports whether objects of a namespace may have a host.
func (c *Claims) isGranted(namespace, name string) bool {
	_, granted := v1beta1.DNSNameGranted(c.grants, namespace, name)
	return granted
}

// keptOwner returns the namespace that owns a host, unless it may not have it any more.
func (c *Claims) keptOwner(name string) (k Keep, belongs bool) {
	k, belongs = c.kept[name]
	return k, belongs && c.isGranted(k.Namespace, name)
}

// ownerOf returns the key of the object that gets a host, or "". Among those in the owning namespace, or all if there is
// none, it is the oldest, then the first by key.
func (c *Claims) ownerOf(name string) (owner string) {
	keep, belongs := c.keptOwner(name)
	for key, made := range c.claims[name] {
		is := c.claims[name][owner]
		switch {
		case belongs && namespaceOf(key) != keep.Namespace:
		case owner == "" || made.Before(is) || made.Equal(is) && key < owner:
			owner = key
		}
	}
	return owner
}

// conflictReason returns why an object does not get a host it claims. It reveals nothing more about objects in other namespaces.
func (c *Claims) conflictReason(name, key string) string {
	owner := c.ownerOf(name)
	switch {
	case owner == "":
		return "it is kept for another namespace, whose object had it" + c.kept[name].until()
	case namespaceOf(owner) != namespaceOf(key):
		return "an object of another namespace has it"
	}
	return owner + " has it, which is older"
}

// namespaceOf returns the namespace of an Object's Key.
func namespaceOf(key string) string {
	_, name, _ := strings.Cut(key, " ")
	namespace, _, _ := strings.Cut(name, "/")
	return namespace
}

// claimedHosts returns the hosts that an object claims, as written: for as long as it exists, with or without addresses.
func (o *Object) claimedHosts() []string {
	switch {
	case o.Kind == KindIngress:
		return o.Hosts
	case o.Settings != nil:
		return o.Settings.Hosts
	}
	return nil
}

// claimable returns the canonical name of a host and, if nobody or nobody in the namespace can have it, why.
func (c *Claims) claimable(namespace, host string) (name, fault string) {
	name, err := dnsprovider.CanonicalName(host)
	switch {
	case strings.HasPrefix(host, "*."):
		return "", "wildcards have no records"
	case err != nil:
		return "", err.Error()
	case !dnsprovider.InZone(name, c.zone.Name):
		return "", fmt.Sprintf("it is not in the zone %s", c.zone.Name)
	case c.zone.Owns(name):
		return "", "it has the form of a Service's own name"
	case name == c.zone.nameServer():
		return "", "it is the name of the zone's name server"
	}
	if suffix, granted := v1beta1.DNSNameGranted(c.grants, namespace, name); !granted {
		return "", "a DNSNameGrant gives names at and below " + suffix + notGranted
	}
	if _, err := dnsprovider.Mark(name, c.zone.Federation); err != nil {
		return "", err.Error()
	}
	return name, ""
}
