package fleettest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/propagation/plan"
)

// Broken is an error: a law does not hold.
type Broken struct {
	// Law is its name, How what goes against it.
	Law, How string
}

// Error implements error.
func (b *Broken) Error() string { return b.Law + ": " + b.How }

func against(law, format string, args ...any) error {
	return &Broken{law, fmt.Sprintf(format, args...)}
}

// laws are those that are watched all the time: each remembers what it takes to see that it is broken.
type laws struct {
	// taken is when something other than the federation took ready replicas away.
	taken     map[workloadKey]time.Time
	replicas  replicaLaws
	moves     moveLaws
	writes    writeLaws
	dns       dnsLaws
	foreign   foreignLaws
	unknown   unknownLaws
	adoptions adoptionLaws
	podNeeds  podNeedLaws
}

func newLaws() laws {
	return laws{taken: map[workloadKey]time.Time{}, replicas: newReplicaLaws(), moves: newMoveLaws(), writes: newWriteLaws(), dns: newDNSLaws(), foreign: newForeignLaws(), unknown: newUnknownLaws(), adoptions: newAdoptionLaws(), podNeeds: newPodNeedLaws()}
}

// replicaLaws remember what it takes to see that ready replicas fall.
type replicaLaws struct {
	ready  map[workloadKey]readiness
	asked  map[workloadKey]asked
	sums   map[workloadKey][]sum          // of the time that a write may be under way
	copies map[workloadKey]map[string]int // replicas that copies had a moment ago, by cluster
}

func newReplicaLaws() replicaLaws {
	return replicaLaws{ready: map[workloadKey]readiness{}, asked: map[workloadKey]asked{}, sums: map[workloadKey][]sum{}, copies: map[workloadKey]map[string]int{}}
}

// sum is how many replicas were ready in all at a time.
type sum struct {
	at    time.Time
	ready int
}

// asked is how many replicas a workload is to have: the least of the last while, for members take time to hear.
type asked struct {
	now, least int
	until      time.Time // least counts until then
}

// hearing is how long it takes at most until all that the federation does is based on what has happened: the time
// until a loss is believed, and that of a write under way.
const hearing = 15 * time.Second

// underWay is how long a write takes at most, to the slowest member of the driver. What got ready since it was sent, who sent it
// could not know: of pods that have just started some go with those that had not.
const underWay = 2500 * time.Millisecond

// known is how many replicas were ready for as long as a write may be under way.
func (l *replicaLaws) known(k workloadKey, before int, now time.Time) int {
	sums := slices.DeleteFunc(l.sums[k], func(s sum) bool { return now.Sub(s.at) > underWay })
	l.sums[k] = append(sums, sum{now, before})
	return slices.MinFunc(l.sums[k], func(a, b sum) int { return a.ready - b.ready }).ready
}

// check checks the law of each moment: the sum of ready replicas in clusters that can be reached does not fall below
// what it was or what is asked for, whichever is less, through fewer being asked of a member.
func (l *replicaLaws) check(f *Fleet, now time.Time) (broken []error) {
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" || k.Kind == "Job" {
			continue // the pods of a Job are not there to be ready
		}
		for _, u := range f.Federation.List(k.Resource, nil) {
			key := workloadKey{k.Resource.Resource, u.GetNamespace(), u.GetName()}
			f.tally.check("law of ready replicas")
			want := l.want(key, l.askedFor(f, key, u, now), now)
			before, is := l.ready[key], readyOf(f, key, u, now)
			was := l.known(key, before.sum, now)
			l.ready[key] = is
			if is.lostSince(before) || autoscalerHasScaled(f, key) {
				f.laws.taken[key] = now
			}
			if u.GetDeletionTimestamp() != nil || is.dropped == 0 || is.sum >= min(was, want) || now.Sub(f.laws.taken[key]) < hearing {
				continue
			}
			broken = append(broken, against("law of ready replicas", "%s %s: %d were ready, %d are asked for, and now %d are ready:%s",
				key.resource, key.name, was, want, is.sum, is))
		}
	}
	return broken
}

// askedFor is how many replicas of an object are asked for: by the user, or by the autoscalers of where it is placed. What
// those want in a member in which the federation does not work nobody knows: there, what is placed counts. What leaves other clusters
// they want as well, whatever they see of it; what a cluster had that is failed over is lost, and does not leave (ADR 67).
func (l *replicaLaws) askedFor(f *Fleet, k workloadKey, u *unstructured.Unstructured, now time.Time) int {
	n, autoscaled, wanted := replicasOf(u), false, 0
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	before, copies := l.copies[k], map[string]int{}
	leaving := 0
	for name, n := range before {
		if p != nil && p.Clusters[name]+p.Overflow[name] == 0 && !isFailedOver(f, name) {
			leaving += n
		}
	}
	for name, m := range f.members {
		there := m.API.Get(u.GroupVersionKind().GroupVersion().WithResource(k.resource), k.namespace, k.name)
		reached := m.Wire.ForAll() == Well
		if reached && !m.alias && f.isCopy(there) {
			copies[name] = replicasOf(there)
		}
		if p == nil || p.Clusters[name] == 0 {
			continue
		}
		scales := isAutoscaled(m, k)
		autoscaled = autoscaled || scales
		if !reached || !scales || !f.isCopy(there) { // an autoscaler wants nothing of what is not there, or is somebody else's
			wanted += int(p.Clusters[name])
		} else {
			wanted += max(replicasOf(there), autoscalerFloor(f, m, k, p, leaving, now))
		}
	}
	l.copies[k] = copies
	if autoscaled {
		return min(n, wanted)
	}
	return n
}

// isFailedOver reports whether a cluster is failed over.
func isFailedOver(f *Fleet, name string) bool {
	c := f.clusters.named(name)
	return c != nil && c.Phase() == v1beta1.PhaseFailedOver
}

// autoscalerFloor is how many replicas the autoscaler of a member keeps while so many leave other clusters: its part of these.
func autoscalerFloor(f *Fleet, m *Member, k workloadKey, p *v1beta1.Placement, leaving int, now time.Time) int {
	placed, most := 0, 0
	for _, n := range p.Clusters {
		placed += int(n)
	}
	if placed == 0 || leaving == 0 {
		return 0
	}
	for _, scaler := range m.API.List(autoscalers, nil) {
		at := workloadKey{autoscalers.Resource, scaler.GetNamespace(), scaler.GetName()}
		u := f.Federation.Get(autoscalers, at.namespace, at.name)
		w, of := targetOf(m, scaler)
		if of == nil || k != (workloadKey{w.resource.Resource, of.GetNamespace(), of.GetName()}) || u == nil || u.GetDeletionTimestamp() != nil || !f.copyOf(u, scaler) {
			continue
		}
		if now.Sub(scaler.GetCreationTimestamp().Time) > hearing {
			most = min(number("maxReplicas")(scaler, m), number("maxReplicas")(u, m))
		}
	}
	return min(most, int(p.Clusters[m.Name]), leaving*int(p.Clusters[m.Name])/placed)
}

// autoscalerHasScaled reports whether a member's autoscaler has just changed the number of a workload.
func autoscalerHasScaled(f *Fleet, k workloadKey) bool {
	for _, m := range f.members {
		if m.autoscaling.scaled[k] {
			return true
		}
	}
	return false
}

// noteFirst notes the placements that new objects were admitted with: later ones are compared with them. It is called with the fleet locked.
func (l *moveLaws) noteFirst(f *Fleet) {
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		for _, u := range f.Federation.List(k.Resource, nil) {
			if p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation]); p != nil && l.placed[u.GetUID()] == nil {
				l.placed[u.GetUID()] = p
			}
		}
	}
}

// count notes that a placement has other numbers than before.
func (l *moveLaws) count(f *Fleet, u *unstructured.Unstructured, now time.Time) []error {
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if p == nil {
		return nil
	}
	before := l.placed[u.GetUID()]
	l.placed[u.GetUID()] = p // also where only what it remembers of before is another: a later one is compared with it
	if before == nil || maps.Equal(p.Clusters, before.Clusters) {
		return nil
	}
	l.counts[u.GetUID()]++
	return append(l.movedHome(f, u.GetName(), before, p, now), leftVolumes(f, u, before, p)...)
}

// unheard notes that some process hears nothing: what has been asked for lately it has yet to hear. It is called at each tick, also at those at
// which nothing changes.
func (l *replicaLaws) unheard(now time.Time) {
	for k, a := range l.asked {
		if !now.After(a.until) {
			a.until = now.Add(hearing)
			l.asked[k] = a
		}
	}
}

// want is how many replicas a workload must have by what all have heard: the least of the last while, which lasts as long as some process hears
// nothing.
func (l *replicaLaws) want(k workloadKey, n int, now time.Time) int {
	a := l.asked[k]
	switch {
	case n > a.now && !now.After(a.until):
		a.least = min(a.least, a.now)
	case n > a.now:
		a.least = a.now
	}
	if n > a.now {
		a.until = now.Add(hearing)
	}
	a.now = n
	l.asked[k] = a
	if now.After(a.until) {
		return n
	}
	return min(n, a.least)
}

// readiness is how many replicas of a workload are ready in the clusters that can be reached, and how many of those that
// were the last step took away because fewer are asked for.
type readiness struct {
	sum, dropped int
	ready, fewer map[string]int // by cluster
}

// lostSince reports whether replicas are gone in any cluster though they are asked for, whatever others have gained.
func (r readiness) lostSince(before readiness) bool {
	for name, n := range before.ready {
		if n-r.ready[name] > r.fewer[name] {
			return true
		}
	}
	return false
}

// String is what each cluster has.
func (r readiness) String() (out string) {
	for _, name := range slices.Sorted(maps.Keys(r.ready)) {
		out += fmt.Sprintf(" %s %d", name, r.ready[name])
		if n := r.fewer[name]; n > 0 {
			out += fmt.Sprintf(" (%d fewer)", n)
		}
	}
	return out
}

// readyOf counts the pods of a workload. Those of an earlier object of its name are not its pods.
func readyOf(f *Fleet, k workloadKey, u *unstructured.Unstructured, now time.Time) readiness {
	r := readiness{ready: map[string]int{}, fewer: map[string]int{}}
	for name, m := range f.members {
		if fault := m.Wire.ForAll(); m.alias || fault != Well && fault != Unhealthy {
			continue
		}
		there := m.API.Get(u.GroupVersionKind().GroupVersion().WithResource(k.resource), k.namespace, k.name)
		if there != nil && there.GetAnnotations()[v1beta1.SourceAnnotation] != plan.SourceOf(u) && !isAdoptable(f, there) {
			continue
		}
		r.ready[name], r.fewer[name] = m.Ready(k, now), m.pods.dropped[k]
		r.sum += r.ready[name]
		r.dropped += r.fewer[name]
	}
	return r
}

func replicasOf(u *unstructured.Unstructured) int {
	if u.GetKind() == "Job" {
		return number("parallelism")(u, nil)
	}
	return number("replicas")(u, nil)
}

// Check checks the laws of a fleet that has settled: nothing is lost, left behind or out of place, and the numbers
// are right.
func (f *Fleet) Check() (broken []error) {
	law := func(name, format string, args ...any) { broken = append(broken, against(name, format, args...)) }
	if err := f.Failures(); err != nil {
		broken = append(broken, err)
	}
	for _, r := range f.Federation.Resources() {
		for _, u := range f.Federation.List(r.GroupVersionResource, nil) {
			if !federated(r, u) {
				continue
			}
			f.tally.check("deletes end")
			if u.GetDeletionTimestamp() != nil {
				law("deletes end", "%s %s is still there, with finalizers %q", r.Resource, u.GetName(), u.GetFinalizers())
			} else {
				checkObject(f, r, u, law)
			}
		}
	}
	for _, m := range settledMembers(f) {
		checkCopies(f, m, law)
		checkAcross(f, m, law)
	}
	f.laws.foreign.checkSettled(f, law)
	checkNames(f, law)
	checkReadiness(f, law)
	return broken
}

// CheckIdle lets five minutes pass, in which nobody may write anything.
func (f *Fleet) CheckIdle() error {
	f.tally.check("law of rest")
	f.Writes()
	before, objects := f.versions(), contents(f)
	f.setResting(true)
	f.Pass(5 * time.Minute)
	made := f.setResting(false)
	writes := slices.DeleteFunc(f.Writes(), func(line string) bool { return strings.HasSuffix(line, hasTheName) })
	all := len(writes)
	writes = slices.DeleteFunc(writes, func(line string) bool { return staysForAnother(line, objects) })
	if f.versions() != before && len(writes) == all || len(writes) > 0 {
		return against("law of rest", "nothing changes, and yet in five minutes there were %d writes\n%s\n%s\n%s", len(writes),
			strings.Join(writes[:min(len(writes), 20)], "\n"), changes(objects, contents(f)), strings.Join(made[:min(len(made), 10)], "\n"))
	}
	return nil
}

// staysForAnother reports whether a line of Writes is the report of a copy that stays for what refers to it there: members are asked seldom
// who does, and another may by now.
func staysForAnother(line string, objects map[string]string) bool {
	_, of, _ := strings.Cut(line, "federation: patch ")
	return strings.Contains(objects[of], "there, which refers to it")
}

// contents returns what the federation's objects say, without their versions and managers, by resource and name.
func contents(f *Fleet) map[string]string {
	all := map[string]string{}
	for _, r := range f.Federation.Resources() {
		for _, u := range f.Federation.List(r.GroupVersionResource, nil) {
			all[r.Resource+" "+u.GetNamespace()+"/"+u.GetName()] = contentOf(u)
		}
	}
	return all
}

func contentOf(u *unstructured.Unstructured) string {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	text, _ := json.Marshal(u.Object)
	return string(text)
}

// changes shows the first five objects that differ.
func changes(before, after map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] && strings.Count(b.String(), "\n") < 10 {
			fmt.Fprintf(&b, "%s was %s\nand is %s\n", key, before[key], after[key])
		}
	}
	return b.String()
}

// settledMembers are the members that the federation can work in and has nothing against.
func settledMembers(f *Fleet) (out []*Member) {
	for _, m := range f.Members() {
		if c := f.clusters.named(m.Name); c != nil && c.IsReady() && m.Wire.Fault() == Well {
			out = append(out, m)
		}
	}
	return out
}

type lawFunc func(law, format string, args ...any)

func checkObject(f *Fleet, r memapi.Resource, u *unstructured.Unstructured, law lawFunc) {
	name := r.Resource + " " + u.GetName()
	f.tally.check("law of decisions")
	wanted, ok := wantedIn(f, r, u)
	if !ok {
		law("law of decisions", "%s has no placement", name)
		return
	}
	for _, m := range settledMembers(f) {
		there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
		n, selected := wanted[m.Name]
		f.tally.check("nothing is lost")
		f.tally.check("nothing is out of place")
		f.tally.check("the numbers are right")
		switch ours := f.isCopy(there); {
		case isExcused(f, m, r, u, there):
		case ours && selected && n != 0 && isAutoscaled(m, workloadKey{r.Resource, u.GetNamespace(), u.GetName()}): // the number is its own
		case ours && divided(r) && replicasOf(there) > n && unschedulable(u) > 0: // where nothing fits, nothing is removed
		case there == nil && v1beta1.JobEnd(u) != "": // it is not run again
		case selected && n != 0 && there == nil:
			law("nothing is lost", "%s is missing in %s", name, m.Name)
		case selected && n != 0 && !ours:
			law("nothing is lost", "what %s holds is not the copy of %s", m.Name, name)
		case ours && divided(r) && replicasOf(there) > n && (foreignSomewhere(f, r, u) || fullSomewhere(f, r, u) || leftAutoscalerSomewhere(f, r, u)): // its replicas there never get ready
		case ours && divided(r) && replicasOf(there) != max(n, 0):
			law("the numbers are right", "%s is to have %d in %s, and %d are asked for there", name, n, m.Name, replicasOf(there))
		case ours && !selected && (isNeeded(f, m, u) || refersThere(m, u)):
		case ours && !selected:
			law("nothing is out of place", "%s is in %s", name, m.Name)
		}
	}
	if divided(r) {
		checkSum(f, name, u, law)
	}
	if opensDoors[r.Kind] {
		checkConfined(f, r, u, law)
	}
	if r.GroupVersionResource == services {
		checkAddresses(f, name, u, law)
	}
	if v1beta1.IndexedJob(u) {
		checkIndexes(f, name, u, law)
	}
}

// checkIndexes checks that each index of an Indexed Job is run, and in one cluster.
func checkIndexes(f *Fleet, name string, u *unstructured.Unstructured, law lawFunc) {
	f.tally.check("each index is run once")
	all, _, _ := unstructured.NestedInt64(u.Object, "spec", "completions")
	runs := 0
	for _, m := range settledMembers(f) {
		there := m.API.Get(jobs, u.GetNamespace(), u.GetName())
		if there == nil || there.GetLabels()[v1beta1.ManagedByLabel] != f.uid || replicasOf(there) == 0 {
			continue
		}
		if n, _, _ := unstructured.NestedInt64(there.Object, "spec", "completions"); n != all {
			law("each index is run once", "%s has %d indexes, and %d in %s", name, all, n, m.Name)
		}
		if runs++; runs > 1 {
			law("each index is run once", "%s runs in %s, too", name, m.Name)
		}
	}
}

func divided(r memapi.Resource) bool {
	k := v1beta1.FederatedKindOf(r.GroupResource())
	return k != nil && k.Preferences != ""
}

func unschedulable(u *unstructured.Unstructured) int64 {
	return v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation]).Unschedulable
}

// checkSum checks that all replicas are accounted for, once, by the placement and by the status.
func checkSum(f *Fleet, name string, u *unstructured.Unstructured, law lawFunc) {
	f.tally.check("the sum is right")
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	sum := p.Unschedulable
	for _, n := range p.Clusters {
		sum += n
	}
	if asked := int64(replicasOf(u)); sum != asked && len(settledMembers(f)) > 0 && v1beta1.JobEnd(u) == "" {
		law("the sum is right", "%s asks for %d, and its placement has %d", name, asked, sum)
	}
	ready := 0
	key := workloadKey{pluralOf(u.GetKind()), u.GetNamespace(), u.GetName()}
	for _, m := range settledMembers(f) {
		if f.isCopy(m.API.Get(u.GroupVersionKind().GroupVersion().WithResource(key.resource), key.namespace, key.name)) {
			ready += m.Ready(key, time.Now())
		}
	}
	field := map[string]string{"Job": "ready"}[u.GetKind()]
	if field == "" {
		field = "readyReplicas"
	}
	if told, _, _ := unstructured.NestedInt64(u.Object, "status", field); int(told) != ready {
		law("the sum is right", "%s has %d ready replicas, and its status says %d", name, ready, told)
	}
}

func pluralOf(kind string) string {
	for _, k := range v1beta1.FederatedKinds {
		if k.Kind == kind {
			return k.Resource.Resource
		}
	}
	return ""
}

// wantedIn returns the clusters that an object goes to, with its number there: -1 where there are no numbers. It is
// false where nothing has been decided.
func wantedIn(f *Fleet, r memapi.Resource, u *unstructured.Unstructured) (map[string]int, bool) {
	out := map[string]int{}
	text := u.GetAnnotations()[v1beta1.PlacementAnnotation]
	p := v1beta1.ParsePlacement(text)
	_, selects := u.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if p == nil && (text != "" || divided(r) || opensDoors[r.Kind] && !selects) {
		return nil, false
	}
	for _, m := range f.Members() {
		c := f.Federation.Get(v1beta1.ClustersResource, "", m.Name)
		switch {
		case c == nil || !selected(u, c.GetLabels()):
		case !allowed(u, c) && (divided(r) || r.Kind == "Namespace"):
			out[m.Name] = 0
		case !allowed(u, c):
		case p == nil:
			out[m.Name] = -1
		case divided(r):
			out[m.Name] = int(p.Clusters[m.Name] + p.Overflow[m.Name])
		case p.Clusters[m.Name] > 0 || p.Everywhere:
			out[m.Name] = -1
		}
	}
	return out, true
}

// allowed reports whether a cluster is for the namespace of an object.
func allowed(u, cluster *unstructured.Unstructured) bool {
	only, _, _ := unstructured.NestedStringSlice(cluster.Object, "spec", "allowedNamespaces")
	namespace := u.GetNamespace()
	if u.GetKind() == "Namespace" {
		namespace = u.GetName()
	}
	return namespace == "" || len(only) == 0 || slices.Contains(only, namespace)
}

func selected(u *unstructured.Unstructured, clusterLabels map[string]string) bool {
	value, ok := u.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if !ok {
		return true
	}
	selector, errs := v1beta1.ParseClusterSelector(value, field.NewPath("annotation"))
	return len(errs) == 0 && selector.Matches(labels.Set(clusterLabels))
}

// isExcused: the member refuses the object, has one of its own, or an override does not fit there, and people have been told.
func isExcused(f *Fleet, m *Member, r memapi.Resource, u, there *unstructured.Unstructured) bool {
	foreign := there != nil && !f.isCopy(there)
	if ns := m.API.Get(namespaces, "", u.GetNamespace()); ns != nil && there == nil {
		foreign = !f.isCopy(ns) && ns.GetLabels()[v1beta1.AcceptLabel] != f.uid // nothing of ours goes into a namespace that the member had before
	}
	if !foreign && !m.Wire.Refuses(r.Resource, u.GetName()) && !isOverridden(f, u) {
		return false
	}
	object := strings.ToLower(r.Kind) + "/" + u.GetName()
	for _, e := range f.events.since(0) {
		if e.object == object && e.kind == "Warning" && strings.HasPrefix(e.message, "Cluster "+m.Name+":") {
			return true
		}
	}
	return false
}

// foreignSomewhere reports whether a member has an object of somebody else in the place of a copy.
func foreignSomewhere(f *Fleet, r memapi.Resource, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.Members(), func(m *Member) bool {
		there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
		return there != nil && !f.isCopy(there)
	})
}

// leftAutoscalerSomewhere reports whether a member still has an autoscaler of the object that the federation has not: a restore lost it, and
// deletions are held. It keeps its number, whatever is placed there.
func leftAutoscalerSomewhere(f *Fleet, r memapi.Resource, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.Members(), func(m *Member) bool {
		return slices.ContainsFunc(autoscalersOf(m, workloadKey{r.Resource, u.GetNamespace(), u.GetName()}), func(scaler *unstructured.Unstructured) bool {
			return f.Federation.Get(autoscalers, scaler.GetNamespace(), scaler.GetName()) == nil
		})
	})
}

// fullSomewhere reports whether a cluster has no room for pods that the object's copy there asks for: pods that other objects have too
// many there, as overflow, may have started first.
func fullSomewhere(f *Fleet, r memapi.Resource, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.Members(), func(m *Member) bool {
		there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
		if !f.isCopy(there) {
			return false
		}
		room := f.room(m)
		if room == nil {
			return false
		}
		free := int64(0)
		for _, class := range room.Free {
			free += int64(class.Nodes) * class.Free.Pods().Value()
		}
		ready, _, _ := unstructured.NestedInt64(there.Object, "status", "readyReplicas")
		return int64(replicasOf(there)) > ready+free
	})
}

// isCopy reports whether an object in a member is a copy of this federation's. It does not ask v1beta1.IsCopy, which may be wrong.
func (f *Fleet) isCopy(u *unstructured.Unstructured) bool {
	return u != nil && u.GetLabels()[v1beta1.ManagedByLabel] == f.uid &&
		u.GetAnnotations()[v1beta1.CopyOfAnnotation] == v1beta1.CopyOf(u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
}

// isOverridden reports whether the policy of an object makes its copies differ.
func isOverridden(f *Fleet, u *unstructured.Unstructured) bool {
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if p == nil || p.Policy == "" {
		return false
	}
	policy := f.Federation.Get(v1beta1.PoliciesResource, u.GetNamespace(), p.Policy)
	return policy != nil && valueAt(policy, "spec.overrides") != "none"
}

// checkCopies checks that each copy in a member is of a federated object that is to be there.
func checkCopies(f *Fleet, m *Member, law lawFunc) {
	mark := labels.SelectorFromSet(labels.Set{v1beta1.ManagedByLabel: f.uid})
	for _, r := range m.API.Resources() {
		for _, copied := range m.API.List(r.GroupVersionResource, mark) {
			if r.Resource == endpointSlices.Resource {
				continue // the member's own, with the label of its Service; or of other clusters: checkAcross
			}
			f.tally.check("nothing is left behind")
			u := f.Federation.Get(r.GroupVersionResource, copied.GetNamespace(), copied.GetName())
			switch {
			case !f.isCopy(copied): // somebody gave it our label
			case u == nil && len(f.clusters.named(m.Name).Status.DeletionsPendingApproval) > 0: // people have been told
			case u == nil:
				law("nothing is left behind", "%s %s in %s is a copy of nothing", r.Resource, copied.GetName(), m.Name)
			case v1beta1.FederatedKindOf(r.GroupResource()) == nil && !plan.Placed(u) && plan.OfAnother(u, copied): // from before a restore: it waits for a policy
			case copied.GetAnnotations()[v1beta1.SourceAnnotation] != plan.SourceOf(u):
				law("nothing is left behind", "%s %s in %s is a copy of an earlier object", r.Resource, copied.GetName(), m.Name)
			}
		}
	}
}

// isNeeded reports whether a copy may stay in a member that it is to leave: it alone serves, as its object says, or a workload that can go nowhere
// else still runs there.
func isNeeded(f *Fleet, m *Member, u *unstructured.Unstructured) bool {
	if says, _ := v1beta1.ConditionOf(u, plan.ConditionPropagated)["message"].(string); strings.Contains(says, m.Name+": stays until another cluster serves") {
		return true
	}
	p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	for _, k := range plan.Kinds {
		if !k.Paced || p == nil {
			continue
		}
		for _, w := range f.Federation.List(k.Resource, nil) {
			of := v1beta1.ParsePlacement(w.GetAnnotations()[v1beta1.PlacementAnnotation])
			there := m.API.Get(k.Resource, w.GetNamespace(), w.GetName())
			if of != nil && of.Policy == p.Policy && of.Clusters[m.Name]+of.Overflow[m.Name] == 0 && w.GetNamespace() == u.GetNamespace() && there != nil && replicasOf(there) > 0 {
				return true
			}
		}
	}
	return false
}
