package fleettest

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

var leasesResource = memapi.Resource{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true}

// newLeases makes the API by which processes meet. It is one of its own, for what they write there says nothing of the fleet.
func newLeases() *memapi.API {
	return memapi.New(memapi.Options{Resources: []memapi.Resource{leasesResource}})
}

// leases is a typed client of the Leases of the federation's namespace: shards.Leases.
type leases struct{ dynamic dynamic.ResourceInterface }

func leasesOf(client dynamic.Interface) leases {
	return leases{client.Resource(leasesResource.GroupVersionResource).Namespace(v1beta1.FederationNamespace)}
}

func typed(u *unstructured.Unstructured, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	out := &coordinationv1.Lease{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

func untyped(l *coordinationv1.Lease) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
	if err != nil {
		panic(err) // each Lease can be written
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return u
}

// Get implements shards.Leases, as do all that follow.
func (l leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return typed(l.dynamic.Get(ctx, name, o))
}

func (l leases) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	all, err := l.dynamic.List(ctx, o)
	if err != nil {
		return nil, err
	}
	out := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: all.GetResourceVersion()}}
	for i := range all.Items {
		one, err := typed(&all.Items[i], nil)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, *one)
	}
	return out, nil
}

func (l leases) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	all, err := l.dynamic.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer all.Stop()
		for {
			select {
			case e, ok := <-all.ResultChan():
				if !ok {
					return
				}
				e.Object, _ = typed(e.Object.(*unstructured.Unstructured), nil) // it is a Lease
				select {
				case events <- e:
				case <-out.StopChan():
					return
				}
			case <-out.StopChan():
				return
			}
		}
	}()
	return out, nil
}

func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return typed(l.dynamic.Create(ctx, untyped(lease), o))
}

func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return typed(l.dynamic.Update(ctx, untyped(lease), o))
}

func (l leases) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	return typed(l.dynamic.Patch(ctx, name, kind, body, o, sub...))
}

func (l leases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return l.dynamic.Delete(ctx, name, o)
}
