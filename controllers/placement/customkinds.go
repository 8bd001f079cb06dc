package placement

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// wantKinds starts to resolve the custom kinds that a policy names.
func (c *Controller) wantKinds(p *v1beta1.PlacementPolicy) {
	for _, r := range p.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		if _, asked := c.kinds.failureOf(kind); asked {
			continue
		}
		c.kinds.Lock()
		c.kinds.failed[kind] = nil
		c.kinds.Unlock()
		c.kinds.setCounted(kind, false)
		c.resolve.Add(kind)
	}
}

// watchDefinitions reports the policies that name a kind when its definition changes.
func (c *Controller) watchDefinitions() error {
	if c.Definitions == nil {
		return nil
	}
	changed := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		c.policies.enqueueNaming(schema.GroupKind{Group: group, Kind: kind})
	}
	_, err := c.Definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, is any) { changed(is) }, DeleteFunc: changed})
	return err
}

var errNotSpread = errors.New("it is not a kind that is spread over clusters")

// resolveKind resolves a custom kind, and watches its objects.
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
			return c.addKind(ctx, resource, kind)
		}
	}
	c.kinds.Lock()
	c.kinds.failed[kind] = err
	c.kinds.Unlock()
	c.kinds.setCounted(kind, true)
	c.policies.enqueueNaming(kind.GroupKind())
	if c.Resolve == nil {
		return nil
	}
	return err
}

func (c *Controller) addKind(ctx context.Context, resource schema.GroupVersionResource, kind schema.GroupVersionKind) error {
	if err := c.subscribe(resource, kind); err != nil {
		return err
	}
	if c.Start != nil {
		c.Start()
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.Informers(resource).HasSynced) {
		return ctx.Err()
	}
	klog.FromContext(ctx).Info("Placing a custom kind", "kind", kind, "resource", resource)
	c.decide.Add(key{resource: resource})
	return nil
}
