package drill

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// changes are the informers of what somebody decides from, and a channel that wakes him when some of it changes.
type changes struct {
	informers []cache.SharedIndexInformer
	wake      chan struct{}
	undo      []func()
}

// follow requests the informers of all these resources, and wakes at each change of those that are named last.
func follow(informers func(schema.GroupVersionResource) cache.SharedIndexInformer, all []schema.GroupVersionResource, wakes ...schema.GroupVersionResource) (*changes, error) {
	c := &changes{wake: make(chan struct{}, 1)}
	look := func(any) {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	for _, r := range all {
		informer := informers(r) // all must be requested before they are started
		c.informers = append(c.informers, informer)
		if !slices.Contains(wakes, r) {
			continue
		}
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, is any) { look(is) }, DeleteFunc: look})
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

// repeat calls do until ctx is done: at once, at each change, and when the time that it returned last has passed, unless that is 0.
func (c *changes) repeat(ctx context.Context, do func(context.Context) (next time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		timer.Stop()
		if next := do(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

func (c *changes) unlisten() {
	for _, undo := range c.undo {
		undo()
	}
}
