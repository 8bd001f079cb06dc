package propagation

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// snapshots gathers what plan.Next decides from: the caches and the ledgers and, where these cannot know it, requests
// to the federation or the member.
type snapshots struct {
	*view
	*members
	*hub
}

// take returns what is known of an object in one member. With an error it has what was known until then.
func (s *snapshots) take(ctx context.Context, m *member, k key) (now plan.Snapshot, err error) {
	federated := s.object(k)
	now.Source = plan.Source{Kind: k.Kind, Object: federated}
	have, settled, err := s.observeCopy(ctx, m, k, federated)
	now.Target.Have, now.Settled = have, settled
	if err != nil {
		return now, err
	}
	target, known := s.clusterTarget(m)
	now.Target, now.ClusterUnknown = target, !known
	now.Target.Have = have
	if !known && federated != nil {
		return now, nil
	}
	now.Source = s.sourceOf(k, federated)
	now.Target.Scaled = s.isAutoscaled(m, now.Source, target)
	if now.Target.Needed, err = s.neededBy(ctx, m, now.Source, now.Target, k); err != nil {
		return now, err
	}
	if now.Target.Floor, err = s.autoscalerFloor(ctx, m, now.Source, now.Target, k); err != nil {
		return now, err
	}
	if have == nil && now.Source.Goes(now.Target) {
		s.beforeCreate(m, k, &now)
	}
	return now, nil
}

// beforeCreate adds what matters only to an object without a copy in the member.
func (s *snapshots) beforeCreate(m *member, k key, now *plan.Snapshot) {
	if k.Kind.Siblings {
		now.Target.Siblings = s.otherCopies(m, k)
	}
	switch {
	case s.namespaceTerminates(k):
		now.Namespace = plan.NamespaceTerminating
	case s.awaitsNamespace(m, k):
		now.Namespace = plan.NamespaceMissing
	}
	left, why := m.Pause(k, time.Now())
	if now.Paused = why; left > 0 {
		m.queue.AddAfter(k, left)
	}
}

// observeCopy returns our copy in a member. Its source may be an earlier object of the name. If that one's deletion is
// recorded, the copy is deleted first. If not, the federation has never seen it, as after a restore from a backup: then
// the copy is adopted.
func (s *snapshots) observeCopy(ctx context.Context, m *member, k key, federated *unstructured.Unstructured) (have *unstructured.Unstructured, settled string, err error) {
	have, settled = m.Observe(k)
	if federated == nil || have == nil || federated.GetDeletionTimestamp() != nil || !plan.OfAnother(federated, have) {
		return have, settled, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.WriteTimeout)
	defer cancel()
	if err := s.confirmCached(ctx, k, federated); err != nil {
		return have, settled, err
	}
	fate, err := s.fateOf(ctx, k, have)
	if err != nil || fate != "" {
		return have, settled, err
	}
	m.Adopt(k, plan.SourceUID(have))
	m.emitEvent(s.Recorder, v1beta1.EventCopyAdopted, "%s is adopted as it is: nothing is known of the object that it is a copy of (UID %s)", k, plan.SourceUID(have))
	have, settled = m.Observe(k)
	return have, settled, nil
}

// awaitsNamespace reports whether the namespace of an object is still to come to a member.
func (s *snapshots) awaitsNamespace(m *member, k key) bool {
	ns, federated := s.namespaceOf(k)
	if federated == nil {
		return false
	}
	if have, _ := m.Observe(ns); have != nil {
		return false
	}
	target, known := s.clusterTarget(m)
	return known && m.MayCome(ns) && s.sourceOf(ns, federated).Goes(target)
}

// otherCopies returns the copies of an object in other members.
func (s *snapshots) otherCopies(m *member, k key) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, other := range s.all() {
		if u, _ := other.Observe(k); u != nil && other != m {
			out[other.Name] = u
		}
	}
	return out
}

// withMembers adds the state of the object in each engaged member.
func (s *snapshots) withMembers(now plan.Snapshot, m *member, k key) plan.Snapshot {
	all := s.all()
	if now.Own = slices.Index(all, m); now.Own < 0 { // it has just been lost
		now.Own, all = len(all), append(all, m)
	}
	for _, one := range all {
		now.Members = append(now.Members, s.standingOf(one, now.Source, k))
	}
	now.AutoscalersSynced = s.autoscalersSynced(now.Source, all)
	if len(now.Source.Autoscalers) > 0 {
		for i, floor := range now.Floors() {
			now.Members[i].FloorBefore = all[i].KeepFloor(k, floor, time.Now())
		}
	}
	return now
}

func (s *snapshots) standingOf(m *member, of plan.Source, k key) plan.Standing {
	one := m.Standing(of, k)
	target, known := s.clusterTarget(m)
	target.Have, target.Scaled = one.Have, s.isAutoscaled(m, of, target)
	one.Target, one.ClusterUnknown, one.Unlisted = target, !known, !m.cacheSynced(k.Kind)
	one.AutoscalerComes = autoscalerComes(m, of, target)
	return one
}

// isAutoscaled reports whether an autoscaler of the federation scales an object in a member: a copy of one is there, possibly
// of a deleted one, or one is to come.
func (s *snapshots) isAutoscaled(m *member, of plan.Source, t plan.Target) bool {
	kind := s.kindOf(autoscalers)
	if !of.Kind.Paced || of.Object == nil || kind == nil {
		return false
	}
	there, _ := m.Informers(autoscalers).GetIndexer().ByIndex(byTarget, of.Kind.Kind+"/"+of.Object.GetNamespace()+"/"+of.Object.GetName())
	return slices.ContainsFunc(there, func(obj any) bool {
		return v1beta1.IsCopy(held.Object(obj), kind.GroupKind(), s.Federation)
	}) || autoscalerComes(m, of, t)
}

// autoscalerComes reports whether an autoscaler of the federation is to scale an object in a member.
func autoscalerComes(m *member, of plan.Source, t plan.Target) bool {
	return slices.ContainsFunc(of.Autoscalers, func(a plan.Source) bool {
		return m.MayCome(keyOf(a.Kind, a.Object)) && a.Comes(t)
	})
}

// autoscalersSynced reports whether the autoscalers of an object have been synced in all given members.
func (s *snapshots) autoscalersSynced(of plan.Source, in []*member) bool {
	for _, m := range in {
		for _, a := range of.Autoscalers {
			if !m.Synced(keyOf(a.Kind, a.Object)) {
				return false
			}
		}
	}
	return true
}
