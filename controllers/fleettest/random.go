package fleettest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Random drives a fleet by chance: each step is a command of the script language, so that what it did can be played
// again, with less in it, and kept as a scenario.
type Random struct {
	player   *player
	chance   *rand.Rand
	members  []string
	objects  map[string]bool // KIND/NAME of all that was ever made → it is to be there now
	sick     map[string]bool // members with a fault
	tainted  map[string]bool
	drained  string          // the member that is drained
	running  int             // how many processes run; 0: one, as at the start
	swarm    swarm           // what is switched on
	left     map[string]bool // what was deleted with its copies left
	aliased  string          // the member that has joined twice
	saved    bool            // there is a backup of the federation
	made     int
	latest   map[string]int // KIND/NAME → the number of the file that it was applied from last
	steps    int
	ordering bool // everything is being made well
	log      []string
}

// NewRandom makes a driver of a fleet without members: equal seeds take equal steps.
func NewRandom(f *Fleet, seed uint64) *Random {
	return &Random{
		player: &player{Fleet: f, files: map[string]string{}}, chance: rand.New(rand.NewPCG(seed, seed)),
		objects: map[string]bool{}, sick: map[string]bool{}, tainted: map[string]bool{}, left: map[string]bool{}, latest: map[string]int{}, swarm: newSwarm(seed),
	}
}

// Log returns the commands since the fleet was last as new, after those that add its members; and the files that they
// apply.
func (r *Random) Log() (lines []string, files map[string]string) {
	return slices.Clone(r.log), maps.Clone(r.player.files)
}

// Begin adds members.
func (r *Random) Begin() error {
	for _, name := range []string{"east-a", "east-b", "west-a", "west-b"} {
		region, zone, _ := strings.Cut(name, "-")
		r.members = append(r.members, name)
		if err := r.do("cluster add %s region=%s zone=%s nodes=3 pods=40 tier=%s", name, region, zone, region); err != nil {
			return err
		}
	}
	if r.swarm["readiness"] {
		if err := r.do("readiness"); err != nil {
			return err
		}
	}
	return r.do("settle")
}

func (r *Random) do(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	r.log = append(r.log, line)
	words := strings.Fields(line)
	if what := injection(words); what != "" && r.steps > 0 && !r.ordering {
		r.player.tally.inject(what)
	}
	if _, err := r.player.do(words); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}

// After so many steps everything is made well, so that the laws of a settled fleet can be checked; and after so many
// all objects are deleted, so that nothing of them may be left.
const (
	orderEvery = 25
	clearEvery = 8 * orderEvery
	// In between, one member and the federation are made well, and the rest stays as it is.
	coreEvery = 2*orderEvery + 1
)

// Step takes one step, lets a little time pass, and returns what went against the laws.
func (r *Random) Step() error {
	steps := r.steppers()
	err := steps[r.chance.IntN(len(steps))](r)
	if err == nil {
		err = r.do("wait %dms", 100*(1+r.chance.IntN(80)))
	}
	if err = errors.Join(err, r.player.Failures()); err != nil {
		return err
	}
	r.steps++
	if r.steps%orderEvery == 0 {
		err = r.order()
	}
	if err == nil && r.steps%coreEvery == coreEvery/2 {
		err = r.core()
	}
	if err == nil && r.steps%clearEvery == 0 {
		err = r.clear()
	}
	if err != nil {
		err = errors.Join(err, r.player.Failures())
	}
	return err
}

// order makes everything well and checks the laws of a fleet that has settled.
func (r *Random) order() error {
	r.ordering = true
	defer func() { r.ordering = false }()
	if err := r.do("fed well"); err != nil {
		return err
	}
	for _, name := range r.members {
		if err := r.makeWell(name); err != nil {
			return err
		}
	}
	clear(r.sick)
	if r.swarm["drills"] {
		if err := r.do("drill end"); err != nil {
			return err
		}
	}
	if err := errors.Join(r.do("settle"), r.approve(), r.do("rest")); err != nil {
		return err
	}
	for name, there := range r.objects {
		r.player.tally.check("no object is lost, and none stays")
		if t, err := r.player.target(name); err == nil && there != (r.player.Federation.Get(t.GroupVersionResource, t.namespace, t.name) != nil) {
			return against("no object is lost, and none stays", "%s is to be at the federation: %t", name, there)
		}
	}
	return nil
}

// approve has deleted what is held since the federation was restored.
func (r *Random) approve() error {
	for _, name := range r.members {
		c := r.player.clusters.named(name)
		if len(c.Status.DeletionsPendingApproval) == 0 {
			continue
		}
		if err := errors.Join(r.do("approve %s", name), r.do("settle")); err != nil {
			return err
		}
	}
	return nil
}

func (r *Random) makeWell(name string) error {
	for _, line := range []string{"heal " + r.addresses(name), "slow " + name + " 0s", "accept " + name, "pods " + name + " 2s", "quota " + name + " 0", "nodes " + name + " 20s"} {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// core makes the federation and one member well, and checks that it gets what it is to have while the rest stays sick.
func (r *Random) core() error { return r.coreOf(r.member()) }

func (r *Random) coreOf(name string) error {
	r.ordering = true
	defer func() { r.ordering = false }()
	if err := r.do("fed well"); err != nil {
		return err
	}
	if err := r.makeWell(name); err != nil {
		return err
	}
	delete(r.sick, name)
	if r.swarm["drills"] {
		if err := r.do("drill end"); err != nil {
			return err
		}
	}
	return errors.Join(r.do("core %s", name), r.player.Failures())
}

// clear deletes all objects and takes all taints away: what follows does not depend on what was.
func (r *Random) clear() error {
	last := func(name string) int { // what others need goes after them
		kind, _, _ := strings.Cut(name, "/")
		return slices.Index([]string{"policy", "ns", "crd"}, kind)
	}
	for _, name := range slices.SortedFunc(maps.Keys(r.objects), func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	}) {
		if r.objects[name] {
			if err := r.delete(name, ""); err != nil {
				return err
			}
		}
	}
	if err := deleteWhatWasLeft(r); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.tainted)) {
		if err := r.do("untaint %s example.com/t", name); err != nil {
			return err
		}
	}
	clear(r.tainted)
	if r.drained != "" {
		if err := drainOrUndrain(r); err != nil {
			return err
		}
	}
	if err := awaitEndOfDrains(r.player); err != nil {
		return err
	}
	if r.aliased != "" {
		if err := r.unalias(); err != nil {
			return err
		}
	}
	if r.running > 1 {
		if err := r.processes(1); err != nil {
			return err
		}
	}
	if err := errors.Join(r.do("settle"), r.approve(), r.do("rest")); err != nil {
		return err
	}
	r.log = r.log[:len(r.members)+1] // what Begin did
	clear(r.player.files)
	clear(r.latest)
	r.saved = false
	r.player.events.forget()
	return nil
}

func (r *Random) member() string { return r.members[r.chance.IntN(len(r.members))] }

// object picks one of those there are; false where there is none.
func (r *Random) object(kinds ...string) (string, bool) {
	var names []string
	for name, there := range r.objects {
		if kind, _, _ := strings.Cut(name, "/"); there && (len(kinds) == 0 || slices.Contains(kinds, kind)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	slices.Sort(names)
	return names[r.chance.IntN(len(names))], true
}
