package fleettest

import (
	"fmt"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// writeLaws watch over what the federation writes: one writes at a time, and nobody writes one copy again and again.
type writeLaws struct {
	// last is the latest session that wrote, by shard; leading is that of the leader.
	last    map[int]uint64
	leading uint64
	// decided is the latest session that decided about an object or a cluster.
	decided map[string]uint64
	recent  map[string][]time.Time // of the writes of each copy
}

func newWriteLaws() writeLaws {
	return writeLaws{last: map[int]uint64{}, decided: map[string]uint64{}, recent: map[string][]time.Time{}}
}

// lateWrites is the law about writes that arrive when another process has written (ADR 86).
const lateWrites = "a write that comes late changes no number of pods that another has set"

// mostWrites is how often one copy may be written in a minute. A user changes it some times, its pods get ready one after the
// other while its number follows them, and answers get lost.
const mostWrites = 60

// wrote is what is against the laws in a write to a member that was carried out.
func (l *writeLaws) wrote(where string, r memapi.Request, now time.Time) (broken []error) {
	key := fmt.Sprintf("%s: %s %s/%s", where, r.Resource.Resource, r.Namespace, r.Name)
	times := l.recent[key]
	for len(times) > 0 && now.Sub(times[0]) > time.Minute {
		times = times[1:]
	}
	times = append(times, now)
	l.recent[key] = times
	if len(times) > mostWrites {
		l.recent[key] = nil
		broken = append(broken, against("no copy is written again and again", "%s was written %d times within a minute", key, len(times)))
	}
	return broken
}

const oneWriter = "one writer at a time"

// sends checks that nobody sends a write who has been succeeded by another that has written already.
func (l *writeLaws) sends(where string, from sender, r memapi.Request) []error {
	if from.session == 0 || !r.Writes() {
		return nil
	}
	if from.leads {
		if from.session < l.leading {
			return []error{against(oneWriter, "%s %s %s by a leader of before: session %d, after session %d", where, r.Verb, r.Name, from.session, l.leading)}
		}
		l.leading = from.session
		return nil
	}
	if where == "federation" {
		return nil
	}
	name := r.Name
	if r.Resource.Resource == endpointSlices.Resource {
		name, _, _ = strings.Cut(name, ".") // it belongs to the shard of its Service
	}
	shard := v1beta1.Shard(r.Namespace, name)
	if from.session < l.last[shard] {
		return []error{against(oneWriter, "%s: %s %s %s/%s by one that no longer has shard %d: session %d, after session %d",
			where, r.Verb, r.Resource.Resource, r.Namespace, r.Name, shard, from.session, l.last[shard])}
	}
	l.last[shard] = from.session
	return nil
}

const overtaken = "what a leader of before decided replaces nothing"

// decides checks a write to the federation that was carried out, however long it was on its way: no placement, and no phase of a cluster, of
// a leader replaces one of who led after it.
func (l *writeLaws) decides(from sender, r memapi.Request) []error {
	phase := r.Resource == v1beta1.ClustersResource && r.Subresource == "status"
	placement := v1beta1.FederatedKindOf(r.Resource.GroupResource()) != nil && r.Subresource == ""
	if !from.leads || !phase && !placement {
		return nil
	}
	key := fmt.Sprintf("%s %s/%s", r.Resource.Resource, r.Namespace, r.Name)
	if from.session < l.decided[key] {
		return []error{against(overtaken, "%s of %s by session %d, after session %d", r.Verb, key, from.session, l.decided[key])}
	}
	l.decided[key] = from.session
	return nil
}
