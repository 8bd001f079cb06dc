package fleettest

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/dynamic"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

var leasesResource = memapi.Resource{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true}

// newLeases makes the API by which processes meet. It is one of its own, for what they write there says nothing of the fleet.
func newLeases() *memapi.API {
	return memapi.New(memapi.Options{Resources: []memapi.Resource{leasesResource}})
}

// configOf returns how typed clients reach the API of a client.
func configOf(client *memapi.Client) *rest.Config {
	return &rest.Config{Host: "http://memory", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, Transport: memapi.Transport{Client: client}}
}

// leasesOf returns a client of the Leases of the federation's namespace.
func leasesOf(client *memapi.Client) coordinationclient.LeaseInterface {
	return leaseClient{client}.Leases(v1beta1.FederationNamespace)
}

// leaseClient is a typed client of Leases without HTTP and JSON: several processes renew theirs all the time, and each hears of all.
type leaseClient struct{ client *memapi.Client }

// Leases implements coordinationclient.LeasesGetter.
func (c leaseClient) Leases(namespace string) coordinationclient.LeaseInterface {
	return leases{c.client.Resource(leasesResource.GroupVersionResource).Namespace(namespace)}
}

// leases implements coordinationclient.LeaseInterface.
type leases struct{ of dynamic.ResourceInterface }

func toLease(u *unstructured.Unstructured, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	if readLease(u, lease) {
		return lease, nil
	}
	lease = &coordinationv1.Lease{}
	return lease, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, lease)
}

func fromLease(lease *coordinationv1.Lease) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lease)
	return &unstructured.Unstructured{Object: object}, err
}

// readLease reads what Leases of processes have, without reflection: each process hears of each renewal of all. It returns false where there is
// anything else.
func readLease(u *unstructured.Unstructured, lease *coordinationv1.Lease) bool {
	metadata, ok := u.Object["metadata"].(map[string]any)
	spec, also := u.Object["spec"].(map[string]any)
	if !ok || !also || len(u.Object) != 4 {
		return false
	}
	lease.APIVersion, lease.Kind = u.GetAPIVersion(), u.GetKind()
	return readLeaseMetadata(metadata, &lease.ObjectMeta) && readLeaseSpec(spec, &lease.Spec)
}

func readLeaseMetadata(from map[string]any, into *metav1.ObjectMeta) bool {
	for key, value := range from {
		text, is := value.(string)
		switch key {
		case "name":
			into.Name = text
		case "namespace":
			into.Namespace = text
		case "uid":
			into.UID = types.UID(text)
		case "resourceVersion":
			into.ResourceVersion = text
		case "creationTimestamp":
			at, err := time.Parse(time.RFC3339, text)
			into.CreationTimestamp, is = metav1.NewTime(at.Local()), is && err == nil
		case "labels":
			into.Labels, is = texts(value)
		case "annotations":
			into.Annotations, is = texts(value)
		default:
			return false
		}
		if !is {
			return false
		}
	}
	return true
}

// texts returns a map whose values are all strings.
func texts(value any) (map[string]string, bool) {
	from, ok := value.(map[string]any)
	into := make(map[string]string, len(from))
	for key, value := range from {
		if into[key], ok = value.(string); !ok {
			return nil, false
		}
	}
	return into, ok
}

func readLeaseSpec(from map[string]any, into *coordinationv1.LeaseSpec) bool {
	for key, value := range from {
		text, is := value.(string)
		number, counts := value.(int64)
		count := int32(number)
		at, err := time.Parse(metav1.RFC3339Micro, text)
		switch key {
		case "holderIdentity":
			into.HolderIdentity = &text
		case "renewTime":
			into.RenewTime, is = &metav1.MicroTime{Time: at.Local()}, is && err == nil
		case "acquireTime":
			into.AcquireTime, is = &metav1.MicroTime{Time: at.Local()}, is && err == nil
		case "leaseDurationSeconds":
			into.LeaseDurationSeconds, is = &count, counts
		case "leaseTransitions":
			into.LeaseTransitions, is = &count, counts
		default:
			return false
		}
		if !is {
			return false
		}
	}
	return true
}

// Create implements coordinationclient.LeaseInterface.
func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	u, err := fromLease(lease)
	if err != nil {
		return nil, err
	}
	return toLease(l.of.Create(ctx, u, o))
}

// Update implements coordinationclient.LeaseInterface.
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	u, err := fromLease(lease)
	if err != nil {
		return nil, err
	}
	return toLease(l.of.Update(ctx, u, o))
}

// Patch implements coordinationclient.LeaseInterface.
func (l leases) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	return toLease(l.of.Patch(ctx, name, pt, data, o, sub...))
}

// Apply implements coordinationclient.LeaseInterface.
func (l leases) Apply(context.Context, *applycoordinationv1.LeaseApplyConfiguration, metav1.ApplyOptions) (*coordinationv1.Lease, error) {
	return nil, apierrors.NewMethodNotSupported(leasesResource.GroupResource(), "apply")
}

// Delete implements coordinationclient.LeaseInterface.
func (l leases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return l.of.Delete(ctx, name, o)
}

// DeleteCollection implements coordinationclient.LeaseInterface.
func (l leases) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, which metav1.ListOptions) error {
	return l.of.DeleteCollection(ctx, o, which)
}

// Get implements coordinationclient.LeaseInterface.
func (l leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return toLease(l.of.Get(ctx, name, o))
}

// List implements coordinationclient.LeaseInterface.
func (l leases) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	found, err := l.of.List(ctx, o)
	if err != nil {
		return nil, err
	}
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: found.GetResourceVersion()}}
	for i := range found.Items {
		lease, err := toLease(&found.Items[i], nil)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *lease)
	}
	return list, nil
}

// Watch implements coordinationclient.LeaseInterface.
func (l leases) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := l.of.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			select {
			case <-out.StopChan():
				return
			case e, ok := <-w.ResultChan():
				if !ok {
					return
				}
				select {
				case events <- withLease(e):
				case <-out.StopChan(): // nobody reads any more
					return
				}
			}
		}
	}()
	return out, nil
}

// withLease returns the event with its object as a Lease.
func withLease(e watch.Event) watch.Event {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return e
	}
	lease, err := toLease(u, nil)
	if err != nil {
		return watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}}
	}
	e.Object = lease
	return e
}
