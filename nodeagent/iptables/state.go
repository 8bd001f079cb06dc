package iptables

import (
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"federation/nodeagent/ruleset"
)

// place is a chain in a table.
type place struct{ table, chain string }

// want has the desired rules of chains; nil: the chain must be deleted.
type want map[place][]string

func (w want) add(table string, chains map[string][]string) {
	for chain, rules := range chains {
		w[place{table, chain}] = rules
	}
}

// state is the desired content of one family's tables, by what changes it, and their present content, as hashes.
type state struct {
	d           dialect
	addrs       tree
	nodePorts   tree
	at          map[string][]rule // what is reached at an address, by its bytes; sorted
	healthPorts map[uint16]int    // health check node port → how many Ports have it
	have        map[place]uint64
}

type rule struct {
	key   ruleset.FrontendKey
	text  string
	alone bool
}

// ruleHash is stable over time: rules in the kernel have it.
func ruleHash(rule string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(rule)) // it has no error
	return h.Sum64()
}

func hashOf(rules []string) (sum uint64) {
	for _, r := range rules {
		sum = add(sum, ruleHash(r))
	}
	return sum
}

// add returns the hash of a chain with one more rule.
func add(sum, rule uint64) uint64 { return (sum^rule)*0x9E3779B97F4A7C15 + 1 }

func newState(d dialect) *state {
	s := &state{d: d, at: map[string][]rule{}, healthPorts: map[uint16]int{}, have: map[place]uint64{}}
	s.addrs = tree{names: d.names, root: chainServices, tail: d.servicesTail(), scope: addrScope, rules: map[string][]string{}}
	s.nodePorts = tree{names: d.names, root: chainNodePorts, scope: portScope, rules: map[string][]string{}}
	return s
}

// load takes in all Ports and returns all desired chains. The state must be new.
func (s *state) load(ports []*ruleset.Port) want {
	w := want{}
	keys := map[string]bool{}
	for _, p := range ports {
		s.add(p, w, keys)
	}
	for key := range keys {
		s.treeOf(key).insert(key, s.rulesAt(key))
	}
	for _, t := range []*tree{&s.addrs, &s.nodePorts} {
		t.sort()
		t.all(func(chain string, rules []string) { w[place{nat, chain}] = rules })
	}
	for table, chains := range s.d.fixed() {
		w.add(table, chains)
	}
	w[place{filter, chainNodePorts}] = s.healthRules()
	return w
}

// apply takes in changes and returns the chains that they touch.
func (s *state) apply(changes []ruleset.PortChange) want {
	w, keys, before := want{}, map[string]bool{}, maps.Clone(s.healthPorts)
	for _, c := range changes {
		if c.Before != nil {
			s.remove(c.Before, w, keys)
		}
	}
	for _, c := range changes {
		if c.After != nil {
			s.add(c.After, w, keys)
		}
	}
	for key := range keys {
		w.add(nat, s.treeOf(key).set(key, s.rulesAt(key)))
	}
	if !maps.Equal(before, s.healthPorts) {
		w[place{filter, chainNodePorts}] = s.healthRules()
	}
	return w
}

func (s *state) remove(p *ruleset.Port, w want, keys map[string]bool) {
	for chain := range s.d.chains(p) {
		w[place{nat, chain}] = nil
	}
	for i := range p.Frontends {
		k := p.Frontends[i].Key
		s.put(k, nil)
		keys[keyOf(k)] = true
	}
	if p.HealthCheckNodePort != 0 {
		if s.healthPorts[p.HealthCheckNodePort]--; s.healthPorts[p.HealthCheckNodePort] == 0 {
			delete(s.healthPorts, p.HealthCheckNodePort)
		}
	}
}

func (s *state) add(p *ruleset.Port, w want, keys map[string]bool) {
	w.add(nat, s.d.chains(p))
	for i := range p.Frontends {
		f := &p.Frontends[i]
		if f.Uses(ruleset.Yield) {
			continue
		}
		s.put(f.Key, &rule{f.Key, s.d.dispatch(p, f), f.Alone})
		keys[keyOf(f.Key)] = true
	}
	if p.HealthCheckNodePort != 0 {
		s.healthPorts[p.HealthCheckNodePort]++
	}
}

// put sets the rule of a frontend; nil: none.
func (s *state) put(k ruleset.FrontendKey, r *rule) {
	key := keyOf(k)
	at, there := slices.BinarySearchFunc(s.at[key], k, func(r rule, k ruleset.FrontendKey) int { return r.key.Compare(k) })
	switch {
	case r != nil && there:
		s.at[key][at] = *r
	case r != nil:
		s.at[key] = slices.Insert(s.at[key], at, *r)
	case there:
		s.at[key] = slices.Delete(s.at[key], at, at+1)
	}
}

// keyOf returns the key in the tree that a frontend is in.
func keyOf(k ruleset.FrontendKey) string {
	if k.Addr.IsValid() {
		return string(k.Addr.AsSlice())
	}
	return portKey(k)
}

func (s *state) treeOf(key string) *tree {
	if len(key) == 3 {
		return &s.nodePorts
	}
	return &s.addrs
}

// rulesAt returns the rules of one key, sorted; for an address of a single Service they end with the one that refuses
// all other ports.
func (s *state) rulesAt(key string) []string {
	if len(s.at[key]) == 0 {
		delete(s.at, key)
		return nil
	}
	var out []string
	refuse := false
	for _, r := range s.at[key] {
		out = append(out, r.text)
		refuse = refuse || r.alone
	}
	if addr, ok := netip.AddrFromSlice([]byte(key)); ok && refuse {
		out = append(out, s.d.aloneTail(hostText(addr)))
	}
	return out
}

func (s *state) healthRules() []string {
	out := []string{}
	for _, port := range slices.Sorted(maps.Keys(s.healthPorts)) {
		out = append(out, fmt.Sprintf("-p tcp -m tcp --dport %d -m comment --comment \"health check node port\" -j ACCEPT", port))
	}
	return out
}
