package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/dnsprovider"
)

// Claims know which objects want which hosts: names in the zone beyond those that a Service has by its own. Make
// them with NewClaims.
type Claims struct {
	zone Zone
	// claims are, by host, when each object that wants it was made, by the object's key.
	claims map[string]map[string]time.Time
	hosts  map[string][]string
}

// NewClaims returns claims of nobody.
func NewClaims(zone Zone) *Claims {
	return &Claims{zone: zone, claims: map[string]map[string]time.Time{}, hosts: map[string][]string{}}
}

// Set notes what an object wants now. It returns the keys of the other objects for which that may change something.
func (c *Claims) Set(o *Object) (others []string) {
	others = c.Drop(o.Key())
	for _, host := range o.wanted() {
		name, fault := c.claimable(host)
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

// Drop forgets an object. It returns the keys of those for which that may change something.
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

// owner returns the key of the object that has a host: the oldest of those that want it, then the first by its key.
func (c *Claims) owner(name string) (owner string) {
	for key, made := range c.claims[name] {
		is := c.claims[name][owner]
		if owner == "" || made.Before(is) || made.Equal(is) && key < owner {
			owner = key
		}
	}
	return owner
}

// wanted are the hosts that an object wants, as they are written.
func (o *Object) wanted() []string {
	switch {
	case o.Ingresses == nil:
		return nil
	case o.Kind == KindIngress:
		return o.Hosts
	case o.Settings != nil:
		return o.Settings.Hosts
	}
	return nil
}

// claimable returns the canonical name of a host, and why nobody can have it, if so.
func (c *Claims) claimable(host string) (name, fault string) {
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
	if _, err := dnsprovider.Mark(name, c.zone.Federation); err != nil {
		return "", err.Error()
	}
	return name, ""
}
