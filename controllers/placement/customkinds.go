package placement

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// wantKinds has the custom kinds resolved that a policy names.
func (c *Controller) wantKinds(p *v1beta1.PlacementPolicy) {
	for _, r := range p.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		if _, asked := c.kinds.failure(kind); asked {
			continue
		}
		c.kinds.Lock()
		c.kinds.failed[kind] = nil
		c.kinds.Unlock()
		c.resolve.Add(kind)
	}
}

var errNotSpread = errors.New("it is not a kind that is spread over clusters")

// resolveKind finds out what a custom kind is served as, and watches its objects.
func (c *Controller) resolveKind(ctx context.Context, kind schema.GroupVersionKind) error {
	err := errNotSpread
	if c.Resolve != nil {
		var resource schema.GroupVersionResource
		var namespaced bool
		resource, namespaced, err = c.Resolve(kind.GroupVersion().String(), kind.Kind)
		if err == nil && !namespaced {
			err = errors.New("its objects have no namespace")
		}
		if err == nil {
			return c.serve(ctx, resource, kind)
		}
	}
	c.kinds.Lock()
	c.kinds.failed[kind] = err
	c.kinds.Unlock()
	c.reportPoliciesOf(kind)
	if c.Resolve == nil {
		return nil
	}
	return err
}

func (c *Controller) serve(ctx context.Context, resource schema.GroupVersionResource, kind schema.GroupVersionKind) error {
	if err := c.add(resource, kind); err != nil {
		return err
	}
	if c.Start != nil {
		c.Start()
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.Informers(resource).HasSynced) {
		return ctx.Err()
	}
	klog.FromContext(ctx).Info("Placing a custom kind", "kind", kind, "resource", resource)
	c.reportPoliciesOf(kind)
	return nil
}
