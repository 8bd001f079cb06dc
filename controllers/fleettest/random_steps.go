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

// stepKinds are the steps that may be taken, by what has to be switched on for them, and how often each is in the draw.
var stepKinds = []struct {
	name  string
	often int
	take  func(*Random) error
}{
	{"", 3, createOrChangeObject}, {"", 3, scaleAnyWorkload}, {"", 1, changeAnyObject}, {"", 2, removeAnyObject},
	{"faults", 2, makeMemberSick}, {"", 2, healMember}, {"crashes", 1, crashPods}, {"edits", 1, editCopy}, {"answers", 1, loseSomeAnswers},
	{"restarts", 1, restartProcesses}, {"taints", 1, taintOrUntaint}, {"drains", 1, drainOrUndrain}, {"delays", 1, delayMember},
	{"refusals", 1, refuseOrAccept}, {"policy", 1, changePolicy}, {"hpa", 2, loadAutoscalers}, {"fed", 1, disturbFederationAPI}, {"fed", 1, blinkWhileStalled},
	{"cuts", 1, cutAnyProcessOff}, {"orphans", 1, orphanObject}, {"drains", 1, switchDrainedOff}, {"job", 1, endJob},
	{"foreign", 1, makeForeignObject}, {"nodes", 1, powerCycle}, {"restore", 1, backUpOrRestore}, {"pauses", 1, pauseAnyProcess},
	{"overtake", 1, overtakeLeader}, {"alias", 1, joinTwiceOrLeave}, {"rebuild", 1, rebuildMember}, {"drills", 2, drillOrEndDrills},
	{"drains", 1, loseOtherInMaintenance},
	{"panics", 1, panicInRequest},
	{"late", 1, deliverWriteLate},
	{"emptied", 1, emptyLoadedCluster},
	{"clocks", 1, setClockWrong},
}

// kinds are the kinds of objects, and how often each is in the draw.
var kinds = []struct {
	short string
	often int
}{{"rs", 3}, {"deploy", 3}, {"sts", 2}, {"job", 1}, {"ds", 1}, {"cm", 1}, {"svc", 1}, {"hpa", 1}, {"widgets", 1}, {"ns", 1}, {"secret", 2}, {"sa", 1}}

// swarm is what is switched on in a run: of faults and kinds a random half, for what is rare with all of them is not with some.
type swarm map[string]bool

// drawnLast are faults that came after others: they are drawn last, so that a seed has the others that it had before. The second is a way to restore.
var drawnLast = []string{"overtake", "restore-running", "panics", "late", "emptied", "clocks"}

// identities are the steps that have clusters be others than they were, of which a seed has one at most.
var identities = map[string]bool{"alias": true, "rebuild": true}

// newSwarm draws what is switched on: for each fourth seed a quarter of all, so that what is rare beside others is taken again and again.
func newSwarm(seed uint64) swarm {
	chance := rand.New(rand.NewPCG(seed, 17))
	parts := 2
	if seed%4 == 3 {
		parts = 4
	}
	on := swarm{"": true}
	for _, s := range stepKinds {
		if _, drawn := on[s.name]; !drawn && !identities[s.name] && !slices.Contains(drawnLast, s.name) {
			on[s.name] = chance.IntN(parts) == 0
		}
	}
	for _, k := range kinds {
		if _, drawn := on[k.short]; !drawn {
			on[k.short] = chance.IntN(parts) == 0
		}
	}
	on[[]string{"rs", "deploy"}[chance.IntN(2)]] = true
	on["readiness"], on["alias"], on["rebuild"] = seed%4 == 0, seed%4 == 1, seed%4 == 2
	for _, name := range drawnLast {
		on[name] = chance.IntN(parts) == 0
	}
	return on
}

// String names what is switched on.
func (s swarm) String() string {
	var on []string
	for name, is := range s {
		if is && name != "" {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return strings.Join(on, " ")
}

// steppers are the steps that may be taken; what is to happen more often is in there more often.
func (r *Random) steppers() (out []func(*Random) error) {
	for _, s := range stepKinds {
		for range s.often {
			if r.swarm[s.name] {
				out = append(out, s.take)
			}
		}
	}
	return out
}

func scaleAnyWorkload(r *Random) error {
	if name, ok := r.object("rs", "deploy", "sts", "job"); ok {
		if strings.HasPrefix(name, "job/") {
			return r.do(`patch %s {"spec":{"parallelism":%d}}`, name, r.chance.IntN(40))
		}
		return r.do("scale %s %d", name, r.chance.IntN(40))
	}
	return nil
}

// loadAutoscalers changes how many pods of a workload the autoscaler of a member would like to have, if there is one; or has one member have all the load.
func loadAutoscalers(r *Random) error {
	name, ok := r.object("hpa")
	if !ok {
		return nil
	}
	of, all := strings.TrimPrefix(name, "hpa/"), r.member()
	if r.chance.IntN(2) == 0 {
		return r.do("load %s deploy/%s %d", all, of, 1+r.chance.IntN(15))
	}
	for _, member := range r.members {
		n := 1
		if member == all {
			n = 15
		}
		if err := r.do("load %s deploy/%s %d", member, of, n); err != nil {
			return err
		}
	}
	return nil
}

// changeAnyObject changes labels, or to which clusters an object goes.
func changeAnyObject(r *Random) error {
	name, ok := r.object()
	if !ok || strings.HasPrefix(name, "crd/") || strings.HasPrefix(name, "ns/") {
		return nil // what is of them could not follow
	}
	switch r.chance.IntN(3) {
	case 0:
		return r.do(`annotate %s federation.alpha.kubernetes.io/cluster-selector=[{"key":"tier","operator":"In","values":["%s"]}]`, name, []string{"east", "west"}[r.chance.IntN(2)])
	case 1:
		return r.do("annotate %s federation.alpha.kubernetes.io/cluster-selector-", name)
	}
	return r.do("label %s n=%d", name, r.chance.IntN(100))
}

func removeAnyObject(r *Random) error {
	name, ok := r.object()
	if !ok || strings.HasPrefix(name, "crd/") || strings.HasPrefix(name, "ns/") {
		return nil // what is of them would go, too
	}
	return r.delete(name, []string{"", "", "", "foreground"}[r.chance.IntN(4)])
}

func (r *Random) delete(name, how string) error {
	r.age(name)
	r.objects[name] = false
	return r.do("delete %s %s", name, how)
}

// makeMemberSick makes a member sick, except the last two that are well.
func makeMemberSick(r *Random) error {
	name := r.member()
	if len(r.sick) >= 2 || r.sick[name] {
		return healMember(r)
	}
	r.sick[name] = true
	return r.do("%s %s", []string{"partition", "hang", "kill", "sicken", "expire"}[r.chance.IntN(5)], r.addresses(name))
}

func healMember(r *Random) error {
	for _, name := range r.members {
		if r.sick[name] {
			delete(r.sick, name)
			return r.do("heal %s", r.addresses(name))
		}
	}
	return nil
}

func crashPods(r *Random) error {
	if name, ok := r.object("rs", "deploy", "sts", "job"); ok {
		return r.do("pods %s fail %s %d", r.member(), name, 1+r.chance.IntN(5))
	}
	return nil
}

// editCopy has somebody change or delete a copy in a member.
func editCopy(r *Random) error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	t, err := r.player.target(name)
	m := r.player.Member(r.member())
	if err != nil || m.API.Get(t.GroupVersionResource, t.namespace, t.name) == nil {
		return err
	}
	if r.chance.IntN(2) == 0 {
		return r.do("member %s delete %s", m.Name, name)
	}
	return r.do(`member %s patch %s {"metadata":{"labels":{"theirs":"%d","n":"theirs"}}}`, m.Name, name, r.chance.IntN(100))
}

func loseSomeAnswers(r *Random) error { return r.do("lose %s %d", r.member(), 1+r.chance.IntN(3)) }

func restartProcesses(r *Random) error {
	switch r.chance.IntN(5) {
	case 0:
		return r.processes(1 + r.chance.IntN(3))
	case 1, 2:
		return r.do("restart")
	}
	return r.do("crash %d", 1+r.chance.IntN(5))
}

// processes has so many processes share the work.
func (r *Random) processes(n int) error {
	r.running = n
	return r.do("processes %d", n)
}

func taintOrUntaint(r *Random) error {
	name := r.member()
	if r.tainted[name] {
		delete(r.tainted, name)
		return r.do("untaint %s example.com/t", name)
	}
	if len(r.tainted) > 0 {
		return nil
	}
	r.tainted[name] = true
	return r.do("taint %s example.com/t:%s", name, []string{"NoSchedule", "NoExecute"}[r.chance.IntN(2)])
}

// drainOrUndrain drains a cluster, or lets the one that is drained come back.
func drainOrUndrain(r *Random) error {
	if name := r.drained; name != "" {
		r.drained = ""
		return r.do("undrain %s", name)
	}
	r.drained = r.member()
	return r.do("drain %s", r.drained)
}

// setClockWrong has the clock of a member be wrong, and its quota be full, of which it then says when that was.
func setClockWrong(r *Random) error {
	name := r.member()
	return errors.Join(r.do("clock %s %dm", name, r.chance.IntN(121)-60), r.do("quota %s %d", name, 10*r.chance.IntN(5)))
}

func delayMember(r *Random) error {
	switch r.chance.IntN(5) {
	case 0:
		return r.do("quota %s %d", r.member(), 10*r.chance.IntN(5))
	case 1, 2:
		return r.do("slow %s %dms", r.member(), 100*r.chance.IntN(20))
	}
	return r.do("pods %s %s", r.member(), []string{"1s", "3s", "20s"}[r.chance.IntN(3)])
}

func refuseOrAccept(r *Random) error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	if r.chance.IntN(2) == 0 {
		return r.do("accept %s", r.member())
	}
	return r.do("refuse %s %s %d not now", r.member(), name, []int{403, 422, 429, 500, 503}[r.chance.IntN(5)])
}

// disturbFederationAPI makes something wrong with the federation's API, as one process sees it or as all do, or makes all of it well.
func disturbFederationAPI(r *Random) error {
	process := ""
	if r.running > 1 && r.chance.IntN(2) == 0 {
		process = fmt.Sprintf(" %d", 1+r.chance.IntN(3))
	}
	switch r.chance.IntN(7) {
	case 0:
		return r.do("stall fed %ds%s", 1+r.chance.IntN(60), process)
	case 1:
		return r.do("fed fail %d%%%s", 1+r.chance.IntN(30), process)
	case 2:
		return r.do("fed late %d%%%s", 1+r.chance.IntN(30), process)
	case 3:
		return r.do("fed watch silent%s", process)
	case 4:
		return r.do("fed stale%s", process)
	}
	return r.do("fed well")
}

// blinkWhileStalled has a member away for some seconds, and the federation's API stall before it can be written that it is back.
func blinkWhileStalled(r *Random) error {
	name := r.member()
	if len(r.sick) > 0 {
		return healMember(r)
	}
	for _, line := range []string{"partition " + r.addresses(name), fmt.Sprintf("wait %dms", 4000+100*r.chance.IntN(30)), fmt.Sprintf("stall fed %dms", 28000+100*r.chance.IntN(300)), "heal " + r.addresses(name)} {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// powerCycle has a member lose its power for some seconds, perhaps too few to be lost. Its API is back before its nodes are.
func powerCycle(r *Random) error {
	name := r.member()
	if len(r.sick) >= 2 || r.sick[name] {
		return healMember(r)
	}
	boot := []string{"1s", "20s", "50s", "75s"}[r.chance.IntN(4)]
	for _, line := range []string{"nodes " + name + " " + boot, "kill " + r.addresses(name), fmt.Sprintf("wait %dms", 100*(1+r.chance.IntN(300))), "heal " + r.addresses(name)} {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// backUpOrRestore has the federation restored from a backup, as docs/operations.md says: while no process of it runs. Or it makes a backup.
func backUpOrRestore(r *Random) error {
	if !r.saved || r.chance.IntN(2) == 0 {
		r.saved = true
		return r.do("snapshot fed")
	}
	if r.swarm["restore-running"] && r.chance.IntN(3) == 0 {
		if err := r.do("restore fed"); err != nil {
			return err
		}
		return rememberWhatIsThere(r)
	}
	running := max(1, r.running)
	if err := errors.Join(r.do("processes 0"), r.do("fed well"), r.do("restore fed"), applyMissing(r), r.processes(running)); err != nil {
		return err
	}
	return rememberWhatIsThere(r)
}

// applyMissing applies what the backup does not have, or leaves it so.
func applyMissing(r *Random) error {
	if r.chance.IntN(2) == 0 {
		return nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(r.latest), func(a, b string) int { return cmp.Compare(r.latest[a], r.latest[b]) }) {
		if !r.objects[name] {
			continue
		}
		t, err := r.player.target(name)
		if err == nil && r.player.Federation.Get(t.GroupVersionResource, t.namespace, t.name) == nil {
			err = r.do("apply %d.yaml", r.latest[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// age makes a backup too old to be restored when a custom kind comes or goes. A federation that is restored from one without the
// definition, or without the policy, does not know the kind, and what members have of it stays there: known, and not mended.
func (r *Random) age(name string) {
	if strings.HasPrefix(name, "crd/") || name == "policy/widgets" {
		r.saved = false
	}
}

// rememberWhatIsThere takes from the federation what is there now: it was restored.
func rememberWhatIsThere(r *Random) error {
	for name := range r.objects {
		t, err := r.player.target(name)
		if err != nil {
			return err
		}
		u := r.player.Federation.Get(t.GroupVersionResource, t.namespace, t.name)
		r.objects[name] = u != nil && u.GetDeletionTimestamp() == nil
	}
	clear(r.tainted)
	r.drained, r.aliased = "", ""
	for _, name := range r.members {
		if r.player.clusters.named("also-"+name) != nil {
			r.aliased = name
		}
		for _, taint := range r.player.clusters.named(name).Spec.Taints {
			switch taint.Key {
			case "example.com/t":
				r.tainted[name] = true
			case drainTaint:
				r.drained = name
			}
		}
	}
	return nil
}

// cutAnyProcessOff cuts one process off from a member: that which leads, or any. Where there is one only, others come first.
func cutAnyProcessOff(r *Random) error {
	name := r.member()
	if len(r.sick) >= 2 || r.sick[name] {
		return healMember(r)
	}
	if err := r.severalProcesses(); err != nil {
		return err
	}
	r.sick[name] = true
	if r.chance.IntN(2) == 0 {
		return r.do("cut %s leader", name)
	}
	return r.do("cut %s %d", name, 1+r.chance.IntN(r.running))
}

// severalProcesses has two or three processes run, if there is one only.
func (r *Random) severalProcesses() error {
	if r.running > 1 {
		return nil
	}
	return r.processes(2 + r.chance.IntN(2))
}

// pauseAnyProcess has a process stand still: that which leads, or any.
func pauseAnyProcess(r *Random) error {
	if err := r.severalProcesses(); err != nil {
		return err
	}
	if r.chance.IntN(2) == 0 {
		return r.do("pause leader %ds", 1+r.chance.IntN(40))
	}
	return r.do("pause %d %ds", 1+r.chance.IntN(r.running), 1+r.chance.IntN(40))
}

// deliverWriteLate pauses who holds a workload's shard, with a small number on its way to members, while another takes the shard over and has
// made many more.
func deliverWriteLate(r *Random) error {
	name, ok := r.object("rs", "deploy", "sts")
	if !ok || len(r.sick) > 0 {
		return healMember(r)
	}
	if err := r.severalProcesses(); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("scale %s %d", name, 1+r.chance.IntN(4)), "wait 300ms", "pause holder " + name + " 45s"}
	for _, member := range r.members {
		lines = slices.Insert(append(lines, "slow "+member+" 0s"), 0, "slow "+member+" 500ms")
	}
	lines = append(lines, "wait 20s", fmt.Sprintf("scale %s %d", name, 25+r.chance.IntN(15)), "wait 40s")
	for _, line := range lines {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// emptyLoadedCluster makes an autoscaled Deployment, and has all replicas leave the cluster that has nearly all the load of it: the autoscalers of the
// others see it only when it comes.
func emptyLoadedCluster(r *Random) error {
	if len(r.sick) > 0 || r.drained != "" {
		return healMember(r)
	}
	name, loaded := fmt.Sprintf("o%d", r.chance.IntN(12)), r.member()
	err := errors.Join(r.apply("hpa/"+name, fmt.Sprintf(autoscalerText, name, 1, 20)), r.apply("deploy/"+name, fmt.Sprintf(workloadText, "Deployment", name, "", 20, 1, "", "")), r.do("wait 1m"))
	for _, member := range r.members {
		n := 1
		if member == loaded {
			n = 15
		}
		err = errors.Join(err, r.do("load %s deploy/%s %d", member, name, n))
	}
	return errors.Join(err, r.do("wait 1m"), r.do("taint %s example.com/emptied:NoExecute", loaded), r.do("wait 30s"), r.do("untaint %s example.com/emptied", loaded))
}

// panicInRequest has one of the next requests of a process panic.
func panicInRequest(r *Random) error {
	return r.do("panic %d %d", 1+r.chance.IntN(max(1, r.running)), 1+r.chance.IntN(60))
}

// overtakeLeader has another process lead while the last writes of the one before, which knows no more than that a member is lost, are on their way
// to the federation. They arrive when the member is back for long.
func overtakeLeader(r *Random) error {
	name := r.member()
	if len(r.sick) > 0 {
		return healMember(r)
	}
	if err := r.severalProcesses(); err != nil {
		return err
	}
	for _, line := range []string{
		"partition " + r.addresses(name), fmt.Sprintf("wait %dms", 28000+100*r.chance.IntN(60)), fmt.Sprintf("stall fed %ds leader", 50+r.chance.IntN(20)), "wait 7s", "heal " + r.addresses(name), "wait 1m",
	} {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// joinTwiceOrLeave has a second Cluster of the same cluster join, by another address, or leave.
func joinTwiceOrLeave(r *Random) error {
	if r.aliased != "" {
		return r.unalias()
	}
	if name := r.member(); !r.sick[name] {
		r.aliased = name
		return r.do("alias also-%s %s", name, name)
	}
	return nil
}

func (r *Random) unalias() error {
	name := r.aliased
	r.aliased = ""
	return r.do("cluster remove also-%s", name)
}

// addresses are the names of the Clusters of a cluster: what is wrong with it is wrong by each.
func (r *Random) addresses(name string) string {
	if name == r.aliased {
		return name + " also-" + name
	}
	return name
}

// rebuildMember has a cluster installed again under its name: with nothing in it.
func rebuildMember(r *Random) error { return r.do("rebuild %s", r.member()) }

// orphanObject deletes an object whose copies are to stay.
func orphanObject(r *Random) error {
	name, ok := r.object("rs", "deploy", "sts", "ds", "cm", "svc")
	if !ok {
		return nil
	}
	r.left[name] = true
	return r.delete(name, "orphan")
}

// deleteWhatWasLeft has somebody delete in members what was left there.
func deleteWhatWasLeft(r *Random) error {
	for _, name := range slices.Sorted(maps.Keys(r.left)) {
		t, err := r.player.target(name)
		if err != nil {
			return err
		}
		for _, m := range r.player.Members() {
			there := m.API.Get(t.GroupVersionResource, t.namespace, t.name)
			if there == nil || m.alias || r.player.isCopy(there) {
				continue
			}
			if err := r.do("member %s delete %s", m.Name, name); err != nil {
				return err
			}
		}
	}
	clear(r.left)
	return nil
}

// switchDrainedOff takes the power from the cluster that is drained.
func switchDrainedOff(r *Random) error {
	if name := r.drained; name != "" && !r.sick[name] {
		r.sick[name] = true
		return r.do("kill %s", r.addresses(name))
	}
	return nil
}

// loseOtherInMaintenance drains a cluster, switches it off, and then loses another one, which must be failed over all the same.
func loseOtherInMaintenance(r *Random) error {
	off, gone, core := r.member(), r.member(), r.member()
	if len(r.sick) > 0 || r.drained != "" || off == gone || core == off || core == gone {
		return healMember(r)
	}
	for _, line := range []string{"drain " + off, fmt.Sprintf("wait %ds", 30+r.chance.IntN(60)), "kill " + r.addresses(off), fmt.Sprintf("wait %ds", 1+r.chance.IntN(90)), "kill " + r.addresses(gone)} {
		if err := r.do("%s", line); err != nil {
			return err
		}
	}
	r.drained, r.sick[off], r.sick[gone] = off, true, true
	return r.coreOf(core)
}

// endJob has a Job end in a member.
func endJob(r *Random) error {
	name, ok := r.object("job")
	if !ok {
		return nil
	}
	t, err := r.player.target(name)
	m := r.player.Member(r.member())
	if err != nil || m.API.Get(t.GroupVersionResource, t.namespace, t.name) == nil {
		return err
	}
	end := []string{"Complete", "Complete", "Failed"}[r.chance.IntN(3)]
	return r.do(`member %s patch %s {"metadata":{"annotations":{"end":"%s"}}}`, m.Name, name, end)
}

// makeForeignObject has somebody make an object in a member that the federation may have, or get, one of that name of; or that bears our marks.
func makeForeignObject(r *Random) error {
	if r.chance.IntN(2) == 0 {
		return makeMarkedObject(r)
	}
	name := fmt.Sprintf("cm/o%d", r.chance.IntN(12))
	text := fmt.Sprintf(configMapText, strings.TrimPrefix(name, "cm/"), "theirs")
	if r.chance.IntN(3) == 0 {
		name, text = "ns/shop", namespaceText
	}
	t, err := r.player.target(name)
	m := r.player.Member(r.member())
	if err != nil || m.API.Get(t.GroupVersionResource, t.namespace, t.name) != nil {
		return err
	}
	r.made++
	file := fmt.Sprintf("%d.yaml", r.made)
	r.player.files[file] = text
	r.left[name] = true
	return r.do("member %s apply %s", m.Name, file)
}

// makeMarkedObject has somebody make an object in a member from a copy, with its labels, or with its annotations, too.
func makeMarkedObject(r *Random) error {
	from, ok := r.object("rs", "deploy", "sts", "cm", "svc")
	if !ok || strings.Count(from, "/") > 1 {
		return nil
	}
	name, line := fmt.Sprintf("f%d", r.chance.IntN(12)), ""
	switch kind, _, _ := strings.Cut(from, "/"); kind {
	case "cm":
		name = fmt.Sprintf("cm/%s%d", []string{"f", "o"}[r.chance.IntN(2)], r.chance.IntN(12))
		line = "clone " + from + " " + name
	case "svc":
		name = "svc/" + name
		line = "clone " + from + " " + name
	default:
		line, name = "expose "+from+" "+name, "svc/"+name
	}
	r.left[name] = true
	return r.do("member %s %s", r.member(), line)
}
