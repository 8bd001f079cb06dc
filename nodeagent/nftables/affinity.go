package nftables

import (
	"fmt"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// stays has the backends with which clients may stay, by frontend, in one family.
type stays map[string]map[string]bool

// stays of the frontends of changed ports that lost a backend, or of all ports.
func (w *Writer) stays(changes []ruleset.PortChange) (out [2]stays) {
	if changes == nil {
		out = [2]stays{{}, {}}
		for _, s := range w.states {
			w.mayStay(s.port, &out)
		}
		return out
	}
	for _, c := range changes {
		if c.Before == nil || c.Before.Affinity == 0 || !mayLoseClient(c) {
			continue
		}
		for _, f := range c.Before.Frontends {
			i, t := w.tableOf(c.Before)
			if out[i] == nil {
				out[i] = stays{}
			}
			out[i][t.frontendKey(f.Key)] = nil
		}
	}
	for _, c := range changes {
		if c.After != nil {
			w.mayStay(c.After, &out)
		}
	}
	return out
}

func (w *Writer) tableOf(p *ruleset.Port) (int, *table) {
	if p.IPv6 {
		return 1, w.tables[1]
	}
	return 0, w.tables[0]
}

func (w *Writer) mayStay(p *ruleset.Port, in *[2]stays) {
	i, t := w.tableOf(p)
	if p.Affinity == 0 || in[i] == nil {
		return
	}
	backends := map[string]bool{}
	for _, b := range backendsOf(p) {
		backends[backendValue(b.Addr)] = true
	}
	for _, f := range p.Frontends {
		in[i][t.frontendKey(f.Key)] = backends
	}
}

func backendsOf(p *ruleset.Port) (all []ruleset.Backend) {
	for _, to := range ruleset.Pools {
		all = append(all, p.Pool(to).Backends...)
	}
	return all
}

// mayLoseClient reports whether a client may have stayed with a backend that a port no longer has.
func mayLoseClient(c ruleset.PortChange) bool {
	if c.After == nil || c.After.Affinity == 0 || len(c.After.Frontends) < len(c.Before.Frontends) {
		return true
	}
	has := map[string]bool{}
	for _, b := range backendsOf(c.After) {
		has[backendValue(b.Addr)] = true
	}
	for _, b := range backendsOf(c.Before) {
		if !has[backendValue(b.Addr)] {
			return true
		}
	}
	return false
}

// forget deletes the entries of affinity to a backend where the client may not stay; for frontends that are not in may,
// all of them or, if only, none. It comes after the change: from then on packets add no such entry.
func (w *Writer) forget(may [2]stays, only bool) error {
	for i, family := range families {
		if may[i] == nil {
			continue
		}
		for attempt := range attempts {
			err := w.forgetOnce(w.tables[i], family, may[i], only)
			if err == nil {
				break
			}
			if !lostRace(err) || attempt == attempts-1 {
				return fmt.Errorf("forgetting clients of backends that went: %w", err)
			}
		}
	}
	return nil
}

func (w *Writer) forgetOnce(t *table, family uint8, may stays, only bool) error {
	var b nfnetlink.Batch
	x := transaction{t: t, batch: &b}
	var stale []entry
	if err := readSet(w.socket, w.name, family, affinity, func(e []byte) {
		key, value := parseElement(e)
		backends, known := may[key[min(t.words*4, len(key)):]]
		if (known || !only) && !backends[value] {
			stale = append(stale, entry{affinity, key})
		}
	}); err != nil {
		return err
	}
	for _, e := range stale {
		x.delete(e)
	}
	x.closeList()
	return w.socket.Commit(&b)
}
