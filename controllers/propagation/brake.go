package propagation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
	"federation/controllers/supervisor"
)

// brake keeps a member from losing very many copies at once whose objects the federation does not know (ADR 85). All
// processes that share the objects judge by all copies in the member, so they agree.
type brake struct {
	turn chan struct{} // full while somebody holds the lock
	plan.Brake
	waiting map[types.UID]waiting
	// clearing: the member has just been engaged, and its caches are full: no waiting.
	clearing atomic.Bool
	wake     supervisor.Wake
}

func (b *brake) init() {
	b.turn, b.wake, b.waiting = make(chan struct{}, 1), supervisor.NewWake(), map[types.UID]waiting{}
	b.clearing.Store(true)
}

// lock waits for the lock until ctx ends: its holder may be asking a member that does not answer.
func (b *brake) lock(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *brake) unlock() { <-b.turn }

// holds reports whether any copy is held.
func (b *brake) holds(ctx context.Context) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.unlock()
	n, _, _, _ := b.Held(0)
	return n > 0, nil
}

// waiting is a copy that is not deleted yet.
type waiting struct {
	key
	since time.Time
}

// errHeld means that a copy is not deleted yet. The event that allows its deletion enqueues its key.
var errHeld = errors.New("its object is not known, and so are those of very many copies: it is deleted when somebody approves it")

const (
	// gathering is how long a copy whose object vanished waits for others: when the federation is restored under a
	// running process, objects vanish one after another.
	gathering = 10 * time.Second
	// brakeReview is the period at which held copies are judged again.
	brakeReview = 30 * time.Second
	// brakeExamples is how many copies a message names.
	brakeExamples = 10
)

// deletions handles copies whose objects the federation does not know, in all members.
type deletions struct {
	*view
	*hub
}

// mayDelete returns nil if a copy of an unknown object may be deleted.
func (d *deletions) mayDelete(ctx context.Context, m *member, k key, have *unstructured.Unstructured) error {
	b := &m.brake
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	uid, now := have.GetUID(), time.Now()
	if _, known := b.May(uid); !known {
		w, there := b.waiting[uid]
		if !there {
			w = waiting{k, now}
			b.waiting[uid] = w
		}
		if left := w.since.Add(gathering).Sub(now); left > 0 && !b.clearing.Load() {
			m.queue.AddAfter(k, left)
			return errHeld
		}
		if err := d.judgeStale(ctx, m); err != nil {
			return err
		}
	}
	may, known := b.May(uid)
	switch {
	case may:
		delete(b.waiting, uid)
		return nil
	case known:
		b.waiting[uid] = waiting{k, now}
		b.wake.Signal()
		return errHeld
	}
	return fmt.Errorf("%s: it is not the observed copy any more, or its object is known now", k)
}

// judgeStale collects the copies of unknown objects in a member, and has the brake judge them. The caller holds the brake's
// lock.
func (d *deletions) judgeStale(ctx context.Context, m *member) error {
	recorded, err := d.recordedUIDs(ctx)
	if err != nil {
		return err
	}
	unknown, copies := map[types.UID]string{}, 0
	for i := range d.Kinds {
		k := &d.Kinds[i]
		known := held.By(d.Informers(k.Resource)).GetStore()
		if err := d.eachCopy(ctx, m, k, func(there *unstructured.Unstructured) {
			copies++
			name := keyOf(k, there)
			_, exists, _ := known.GetByKey(name.StoreKey())
			if !exists && there.GetDeletionTimestamp() == nil && !recorded[plan.SourceUID(there)] {
				unknown[there.GetUID()] = name.String()
			}
		}); err != nil {
			return err
		}
	}
	m.brake.Judge(unknown, copies, time.Now())
	return nil
}

// eachCopy visits the copies of a kind in a member: those in the cache or, if other processes own some, all of them.
func (d *deletions) eachCopy(ctx context.Context, m *member, k *plan.Kind, do func(*unstructured.Unstructured)) error {
	each := func(u *unstructured.Unstructured) {
		if u != nil && v1beta1.IsCopy(u, k.GroupKind(), d.Federation) {
			do(u)
		}
	}
	if !d.Shared {
		for _, obj := range m.Informers(k.Resource).GetStore().List() {
			each(held.Object(obj))
		}
		return nil
	}
	for options := (metav1.ListOptions{LabelSelector: v1beta1.ManagedByLabel + "=" + d.Federation, Limit: 500}); ; {
		page, err := m.Client.Resource(k.Resource).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// watchBrake releases approved copies, judges held ones again, and updates the Cluster's status, until ctx is done.
func (d *deletions) watchBrake(ctx context.Context, m *member) {
	silent := ""
	for ctx.Err() == nil {
		if err := d.reviewHeld(ctx, m, &silent); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to update pending deletions", "cluster", m.Name)
		}
		select {
		case <-ctx.Done():
		case <-m.brake.wake:
		case <-time.After(brakeReview):
		}
	}
}

// reviewHeld judges what is held again, and writes it. silent is the version of the Cluster that says that nothing is held: it is not decoded again.
func (d *deletions) reviewHeld(ctx context.Context, m *member, silent *string) error {
	obj, exists, err := d.Informers(v1beta1.ClustersResource).GetStore().GetByKey(m.Name)
	if err != nil || !exists {
		return err
	}
	if version := held.About(obj).GetResourceVersion(); version == *silent {
		if holds, err := m.brake.holds(ctx); err != nil || !holds {
			return err
		}
	}
	cluster := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(held.Object(obj).Object, cluster); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.WriteTimeout)
	defer cancel()
	now, err := d.stillHeld(ctx, m, cluster)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(now, d.saidHeld(cluster)) {
		if now == nil {
			*silent = cluster.ResourceVersion
		}
		return nil
	}
	return d.sayHeld(ctx, m, now)
}

// stillHeld judges the held copies and the Cluster's status again, and enqueues what may go; nil if nothing is held.
func (d *deletions) stillHeld(ctx context.Context, m *member, cluster *v1beta1.Cluster) (*v1beta1.PendingDeletions, error) {
	b := &m.brake
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	holds, _, _, _ := b.Held(0)
	if holds == 0 && d.saidHeld(cluster) == nil {
		return nil, nil
	}
	if b.Approve(strings.Split(cluster.Annotations[v1beta1.ApproveDeletionsAnnotation], ",")) {
		klog.FromContext(ctx).Info("The deletion of copies is approved", "cluster", m.Name, "copies", holds)
	} else if err := d.judgeStale(ctx, m); err != nil {
		return nil, err
	}
	for uid, w := range b.waiting {
		if _, still := b.May(uid); !still {
			delete(b.waiting, uid) // its object is known now, or it has gone
		}
		if may, _ := b.May(uid); may {
			m.queue.Add(w.key)
		}
	}
	copies, of, set, some := b.Held(brakeExamples)
	if copies == 0 {
		return nil, nil
	}
	return &v1beta1.PendingDeletions{Resource: d.onlyKind(), Set: set, Copies: int32(copies), Of: int32(of), Examples: some}, nil
}

// onlyKind returns the one kind of this controller, or "" if it has all built-in kinds.
func (d *deletions) onlyKind() string {
	if len(d.Kinds) == 1 {
		return d.Kinds[0].Resource.GroupResource().String()
	}
	return ""
}

// saidHeld returns what a Cluster's status says that this controller holds.
func (d *deletions) saidHeld(cluster *v1beta1.Cluster) *v1beta1.PendingDeletions {
	i := slices.IndexFunc(cluster.Status.DeletionsPendingApproval, func(h v1beta1.PendingDeletions) bool { return h.Resource == d.onlyKind() })
	if i < 0 {
		return nil
	}
	return &cluster.Status.DeletionsPendingApproval[i]
}

// sayHeld writes what this controller holds to the Cluster's status.
func (d *deletions) sayHeld(ctx context.Context, m *member, now *v1beta1.PendingDeletions) error {
	clusters := d.Client.Resource(v1beta1.ClustersResource)
	var news string
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		u, err := clusters.Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		cluster := &v1beta1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster); err != nil {
			return err
		}
		news = plan.SayHeld(cluster, d.onlyKind(), now, time.Now())
		if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(cluster); err != nil {
			return err
		}
		_, err = clusters.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
		return err
	})
	if err == nil && news != "" {
		d.Recorder.Event(aboutCluster(m.Name), corev1.EventTypeWarning, v1beta1.EventDeletionsPendingApproval, news)
	}
	return err
}
