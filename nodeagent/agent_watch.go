package nodeagent

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"federation/nodeagent/ruleset"
)

// watch starts the watches, and returns when all existing objects have been seen.
func (a *Agent) watch(ctx context.Context) error {
	var synced []cache.DoneChecker
	for _, h := range []struct {
		from     cache.ListerWatcher
		of       runtime.Object
		set, end func(obj any)
	}{
		{a.Services, &corev1.Service{}, a.setService, a.endService},
		{a.EndpointSlices, &discoveryv1.EndpointSlice{}, a.setSlice, a.endSlice},
		{a.Nodes, &corev1.Node{}, func(obj any) { a.setNode(obj.(*corev1.Node)) }, func(any) {}},
	} {
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: h.from, ObjectType: h.of, Transform: a.slim,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: h.set, UpdateFunc: func(_, now any) { h.set(now) }, DeleteFunc: func(obj any) { h.end(lastState(obj)) },
			},
		})
		go informer.RunWithContext(ctx)
		synced = append(synced, informer.HasSyncedChecker())
	}
	if a.Leases != nil { // Services do not wait for it
		a.Health.awaitLease()
		go a.watchLease(ctx)
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return errors.New("the agent was ended before it had seen all Services")
	}
	return nil
}

// lastState returns the object of a deletion, also if the deletion itself was missed.
func lastState(obj any) any {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return obj
}

func (a *Agent) setService(obj any) {
	a.enqueueChanged(time.Time{}, func(m *ruleset.Model) []ruleset.Key { return []ruleset.Key{m.SetService(obj.(*corev1.Service))} })
}

func (a *Agent) endService(obj any) {
	s := obj.(*corev1.Service)
	a.enqueueChanged(time.Time{}, func(m *ruleset.Model) []ruleset.Key {
		return []ruleset.Key{m.DeleteService(ruleset.Key{Namespace: s.Namespace, Name: s.Name})}
	})
}

func (a *Agent) setSlice(obj any) {
	s := obj.(*discoveryv1.EndpointSlice)
	a.enqueueChanged(triggerTime(s), func(m *ruleset.Model) []ruleset.Key { return m.SetSlice(s) })
}

func (a *Agent) endSlice(obj any) {
	s := obj.(*discoveryv1.EndpointSlice)
	a.enqueueChanged(time.Time{}, func(m *ruleset.Model) []ruleset.Key {
		return m.DeleteSlice(ruleset.Key{Namespace: s.Namespace, Name: s.Name})
	})
}

// triggerTime returns when the cause of the slice's last change happened, from its controller's annotation; zero if there
// is none.
func triggerTime(s *discoveryv1.EndpointSlice) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if err != nil {
		return time.Time{}
	}
	return t
}
