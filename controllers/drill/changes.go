package drill

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"federation/controllers/supervisor"
)

// changes are the informers of what somebody decides from, and what wakes him when some of it changes.
type changes struct {
	informers []cache.SharedIndexInformer
	wake      supervisor.Wake
	undo      []func()
}

// follow requests the informers of all these resources, and wakes at each change of those that are named last.
func follow(informers func(schema.GroupVersionResource) cache.SharedIndexInformer, all []schema.GroupVersionResource, wakes ...schema.GroupVersionResource) (*changes, error) {
	c := &changes{wake: supervisor.NewWake()}
	wake := func(any) { c.wake.Signal() }
	for _, r := range all {
		informer := informers(r) // all must be requested before they are started
		c.informers = append(c.informers, informer)
		if !slices.Contains(wakes, r) {
			continue
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, is any) { wake(is) }, DeleteFunc: wake})
		if err != nil {
			return nil, err
		}
		c.undo = append(c.undo, sync.OnceFunc(func() { _ = informer.RemoveEventHandler(handler) })) // fails only for a handler that is not registered
	}
	return c, nil
}

// synced waits until the informers are; false: ctx was done before.
func (c *changes) synced(ctx context.Context) bool {
	return !slices.ContainsFunc(c.informers, func(i cache.SharedIndexInformer) bool { return !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) })
}

func (c *changes) unlisten() {
	for _, undo := range c.undo {
		undo()
	}
}
