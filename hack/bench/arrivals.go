package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// arrivals watches ReplicaSets of one namespace in several members, and notes when each is as wanted.
type arrivals struct {
	mu       sync.Mutex
	replicas map[string]map[string]int32 // object → member → replicas asked for
	at       map[string]time.Time
	want     int
	whole    func(map[string]int32) bool
	all      chan struct{}
	forms    map[string]string // member/object → what a member's own controllers do not change of it
	changes  int               // of that, since the last reset
	watches  []watch.Interface
	fail     context.CancelCauseFunc
	failed   context.Context
}

// inAll is wanted where every member is to have a copy.
func inAll(members int) func(map[string]int32) bool {
	return func(r map[string]int32) bool { return len(r) == members }
}

// summing is wanted where the replicas that members are asked for are to sum up.
func summing(total int32) func(map[string]int32) bool {
	return func(r map[string]int32) bool {
		sum := int32(0)
		for _, n := range r {
			sum += n
		}
		return sum == total
	}
}

// watchArrivals returns once it sees what is there already; close ends it.
func watchArrivals(ctx context.Context, members map[string]kubernetes.Interface, ns string, want int, whole func(map[string]int32) bool) (*arrivals, error) {
	a := &arrivals{replicas: map[string]map[string]int32{}, forms: map[string]string{}, at: map[string]time.Time{}, want: want, whole: whole, all: make(chan struct{})}
	a.failed, a.fail = context.WithCancelCause(ctx)
	for name, m := range members {
		list, err := m.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			a.close()
			return nil, err
		}
		for i := range list.Items {
			a.seen(name, watch.Added, &list.Items[i])
		}
		// A member ends the watch of who reads slower than others write; this one goes on where it was.
		w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
			WatchFuncWithContext: m.AppsV1().ReplicaSets(ns).Watch,
		})
		if err != nil {
			a.close()
			return nil, err
		}
		a.watches = append(a.watches, w)
		go a.follow(ctx, name, w)
	}
	a.reset()
	return a, nil
}

func (a *arrivals) follow(ctx context.Context, member string, w watch.Interface) {
	for event := range w.ResultChan() {
		if rs, ok := event.Object.(*appsv1.ReplicaSet); ok {
			a.seen(member, event.Type, rs)
		}
	}
	if ctx.Err() == nil {
		a.fail(fmt.Errorf("the watch of %s ended", member))
	}
}

func (a *arrivals) seen(member string, event watch.EventType, rs *appsv1.ReplicaSet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	form := fmt.Sprint(event == watch.Deleted, rs.UID, rs.Generation, rs.Labels, rs.Annotations)
	if a.forms[member+"/"+rs.Name] != form {
		a.forms[member+"/"+rs.Name] = form
		a.changes++
	}
	if !strings.HasPrefix(rs.Name, "web-") {
		return
	}
	if a.replicas[rs.Name] == nil {
		a.replicas[rs.Name] = map[string]int32{}
	}
	a.replicas[rs.Name][member] = *rs.Spec.Replicas
	if event == watch.Deleted {
		delete(a.replicas[rs.Name], member)
	}
	if !a.at[rs.Name].IsZero() || !a.whole(a.replicas[rs.Name]) {
		return
	}
	a.at[rs.Name] = time.Now()
	if len(a.at) == a.want {
		close(a.all)
	}
}

// reset forgets how many changes were seen.
func (a *arrivals) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes = 0
}

// wait returns when all objects are as wanted, or says how many are.
func (a *arrivals) wait() error {
	select {
	case <-a.all:
		return nil
	case <-a.failed.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		return fmt.Errorf("%d of %d objects arrived: %w", len(a.at), a.want, context.Cause(a.failed))
	}
}

// last is when the last object was as wanted.
func (a *arrivals) last() (last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.at {
		if at.After(last) {
			last = at
		}
	}
	return last
}

func (a *arrivals) close() {
	for _, w := range a.watches {
		w.Stop()
	}
}
