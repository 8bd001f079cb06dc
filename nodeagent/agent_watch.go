package nodeagent

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"federation/nodeagent/ruleset"
)

// watch begins to watch, and returns when all that there is has been seen.
func (a *Agent) watch(ctx context.Context) error {
	all := informers.NewSharedInformerFactoryWithOptions(a.Client, 0, informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "!" + corev1.IsHeadlessService }))
	mine := informers.NewSharedInformerFactoryWithOptions(a.Client, 0, informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", a.NodeName).String()
		}))
	synced := []cache.InformerSynced{}
	for _, h := range []struct {
		in  cache.SharedIndexInformer
		set func(obj any)
		end func(obj any)
	}{
		{all.Core().V1().Services().Informer(), a.setService, a.endService},
		{all.Discovery().V1().EndpointSlices().Informer(), a.setSlice, a.endSlice},
		{mine.Core().V1().Nodes().Informer(), func(obj any) { a.setNode(obj.(*corev1.Node)) }, func(any) {}},
	} {
		r, err := h.in.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: h.set, UpdateFunc: func(_, now any) { h.set(now) }, DeleteFunc: func(obj any) { h.end(last(obj)) },
		})
		if err != nil {
			return err
		}
		synced = append(synced, r.HasSynced)
	}
	all.Start(ctx.Done())
	mine.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the agent was ended before it had seen all Services")
	}
	return nil
}

// slim drops what no rule needs.
func slim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// last is the object that a deletion is about, also where the deletion itself was missed.
func last(obj any) any {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return obj
}

func (a *Agent) setService(obj any) {
	a.touch(time.Time{}, func(m *ruleset.Model) []ruleset.Key { return []ruleset.Key{m.SetService(obj.(*corev1.Service))} })
}

func (a *Agent) endService(obj any) {
	s := obj.(*corev1.Service)
	a.touch(time.Time{}, func(m *ruleset.Model) []ruleset.Key {
		return []ruleset.Key{m.DeleteService(ruleset.Key{Namespace: s.Namespace, Name: s.Name})}
	})
}

func (a *Agent) setSlice(obj any) {
	s := obj.(*discoveryv1.EndpointSlice)
	a.touch(triggered(s), func(m *ruleset.Model) []ruleset.Key { return m.SetSlice(s) })
}

func (a *Agent) endSlice(obj any) {
	s := obj.(*discoveryv1.EndpointSlice)
	a.touch(time.Time{}, func(m *ruleset.Model) []ruleset.Key {
		return m.DeleteSlice(ruleset.Key{Namespace: s.Namespace, Name: s.Name})
	})
}

// triggered is when what led to the slice's last change happened, as its controller wrote down; zero: it did not.
func triggered(s *discoveryv1.EndpointSlice) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if err != nil {
		return time.Time{}
	}
	return t
}
