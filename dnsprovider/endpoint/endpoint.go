package endpoint

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
	"federation/dnsprovider/externaldns"
)

// Resource is that of DNSEndpoint objects.
var Resource = schema.GroupVersionResource{Group: "externaldns.k8s.io", Version: "v1alpha1", Resource: "dnsendpoints"}

// Label has Options.Name as its value on all objects that are ours.
const Label = "federation.kubernetes.io/dns-provider"

const (
	// maxEndpoints bounds an object; the definition of external-dns takes 1,000.
	maxEndpoints = 500
	// maxSteps bounds how much is held at once, and nothing else: a batch is several writes anyhow.
	maxSteps = 10000
	// perPage is how many objects are listed at once.
	perPage = 50
	manager = "federation-dns"
)

// Options say where the objects go.
type Options struct {
	// Client is one of the cluster that external-dns watches.
	Client dynamic.Interface
	// Namespace is where the objects are. It must exist.
	Namespace string
	// Name begins the objects' names, and tells them from those of others, such as another federation.
	Name string
	// Zone is the name of the zone that external-dns publishes.
	Zone string
}

// api is the objects of one name in one namespace.
type api struct {
	objects    dynamic.ResourceInterface
	name, zone string

	mu sync.Mutex
	// seen are the objects that were listed last before a change, by name.
	seen map[string]*object
}

// New makes a provider. It fails when the namespace or name is no such name, or the zone is none.
func New(o Options) (dnsprovider.Provider, error) {
	for field, value := range map[string]string{"namespace": o.Namespace, "name": o.Name} {
		if errs := validation.IsDNS1123Label(value); len(errs) > 0 {
			return nil, fmt.Errorf("%s of DNSEndpoints %q: %s", field, value, strings.Join(errs, "; "))
		}
	}
	zone, err := dnsprovider.CanonicalName(o.Zone)
	if err != nil {
		return nil, fmt.Errorf("zone of DNSEndpoints: %w", err)
	}
	a := &api{objects: o.Client.Resource(Resource).Namespace(o.Namespace), name: o.Name, zone: zone}
	return &batch.Provider{
		Name: fmt.Sprintf("DNSEndpoints %s/%s", o.Namespace, o.Name), Service: a, Most: maxSteps, Size: func(dnsprovider.Step) int { return 1 },
		Blind: true, MinTTL: 1, Types: externaldns.Types, // a TTL of 0 would be external-dns's default
	}, nil
}

// List returns the sets of all objects. See batch.Service.
func (a *api) List(ctx context.Context, zone string, names ...string) ([]dnsprovider.RRSet, error) {
	if zone != a.zone {
		return nil, fmt.Errorf("they are for the zone %q", a.zone)
	}
	seen := map[string]*object{}
	var endpoints []externaldns.Endpoint
	options := metav1.ListOptions{LabelSelector: Label + "=" + a.name, Limit: perPage}
	for {
		page, err := a.objects.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the cluster serves no DNSEndpoints: external-dns's CustomResourceDefinition must be installed: %w", err)
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			o, err := parseObject(&page.Items[i])
			if err != nil {
				return nil, err
			}
			seen[page.Items[i].GetName()] = o
			endpoints = append(endpoints, o.endpoints...)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if len(names) > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen = seen
	}
	sets, _ := externaldns.InZone(endpoints, zone)
	return sets, nil
}

// Change writes the objects that the changes touch, one after the other, if they are still as they
// were listed last. See batch.Service.
func (a *api) Change(ctx context.Context, _ string, changes dnsprovider.ChangeSet) error {
	a.mu.Lock()
	touched := placeChanges(a.name, a.seen, changes)
	a.mu.Unlock()
	for i, o := range touched {
		if err := a.write(ctx, o); err != nil {
			if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
				err = &dnsprovider.RefusedError{Err: err}
			}
			return fmt.Errorf("%d of %d objects were written, then: %w", i, len(touched), err)
		}
	}
	return nil
}

func (a *api) write(ctx context.Context, o *object) (err error) {
	body, err := o.body(a.name)
	if err != nil {
		return err
	}
	switch {
	case !o.exists():
		_, err = a.objects.Create(ctx, body, metav1.CreateOptions{FieldManager: manager})
	case len(o.endpoints) == 0:
		uid, version := body.GetUID(), body.GetResourceVersion()
		err = a.objects.Delete(ctx, o.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	default:
		_, err = a.objects.Update(ctx, body, metav1.UpdateOptions{FieldManager: manager})
	}
	return err
}
