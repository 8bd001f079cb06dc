package fleettest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// A core of the fleet is a member that is well, with the federation's processes. Whatever is wrong with the rest, it gets all that
// it is to have within liveWithin, and deletes end.
const (
	liveWithin = 3 * time.Minute
	liveAgain  = 20 * time.Second // something may have been decided just now
)

// core CLUSTER: time passes; then it must have all that it is to have, however sick the others are.
func (p *player) core(args []string) error {
	if err := need(args, 1, "core CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	p.tally.check("a core lives while the rest is sick")
	p.Pass(liveWithin)
	first := p.missing(m)
	if len(first) == 0 {
		return nil
	}
	p.Pass(liveAgain)
	var broken []error
	for _, how := range p.missing(m) {
		if slices.Contains(first, how) {
			broken = append(broken, against("a core lives while the rest is sick", "%s", how))
		}
	}
	return errors.Join(broken...)
}

// missing is what a member should have by now, and what should be gone.
func (f *Fleet) missing(m *Member) (out []string) {
	c := f.cluster(m.Name)
	if c == nil || !c.IsReady() {
		return []string{m.Name + " is well, and not ready"}
	}
	for _, r := range f.Federation.Resources() {
		for _, u := range f.Federation.List(r.GroupVersionResource, nil) {
			there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
			switch wanted, ok := f.wanted(r, u); {
			case !federated(r, u) || time.Since(u.GetCreationTimestamp().Time) < liveWithin || f.excused(m, r, u, there):
			case u.GetDeletionTimestamp() != nil:
				if time.Since(u.GetDeletionTimestamp().Time) >= liveWithin && !f.refused(r.Resource, u.GetName()) {
					out = append(out, fmt.Sprintf("%s %s is still being deleted, with finalizers %q", r.Resource, u.GetName(), u.GetFinalizers()))
				}
			case !ok:
				out = append(out, fmt.Sprintf("%s %s has no placement", r.Resource, u.GetName()))
			case wanted[m.Name] != 0 && there == nil && v1beta1.JobEnd(u) == "":
				out = append(out, fmt.Sprintf("%s %s is missing in %s", r.Resource, u.GetName(), m.Name))
			}
		}
	}
	return out
}

// refused tells whether a member answers, and does not let go of an object, or may be reached by some processes only.
func (f *Fleet) refused(resource, name string) bool {
	return slices.ContainsFunc(f.Members(), func(m *Member) bool {
		return m.Wire.Refuses(resource, name) || m.Wire.Fault() != m.Wire.ForAll()
	})
}
