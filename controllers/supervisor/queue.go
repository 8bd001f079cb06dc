package supervisor

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// ProcessQueue calls do for the items of a queue until the queue is shut down; it does that itself when ctx is done. An item that fails, or
// panics, is tried again, later and later.
func ProcessQueue[K comparable](ctx context.Context, component string, q workqueue.TypedRateLimitingInterface[K], do func(context.Context, K) error) {
	defer context.AfterFunc(ctx, q.ShutDown)()
	for {
		item, down := q.Get()
		if down || ctx.Err() != nil {
			return // an error after the end of ctx means nothing: it only looks like a lost member
		}
		if err := Protect(ctx, component, func() error { return do(ctx, item) }); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed, will retry", "component", component, "item", item, "err", err)
			q.AddRateLimited(item)
		} else {
			q.Forget(item)
		}
		q.Done(item)
	}
}
