package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	crossclusterplan "federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Resources that tell clusters of each other.
var (
	servicesResource = corev1.SchemeGroupVersion.WithResource("services")
	slicesResource   = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// acrossEvidence is what explain has read of the clusters' EndpointSlices of each other for a Service.
type acrossEvidence struct {
	// off: the federation does not write them.
	off bool
	// world is the input of the offers, with the Service as its only object.
	world servicednsplan.Input
	// unknown is why it could not be read.
	unknown error
	// slices are the clusters' slices, by cluster.
	slices map[string]slicesAnswer
	// events report what went wrong.
	events []corev1.Event
}

type slicesAnswer struct {
	slices []*discoveryv1.EndpointSlice
	err    error
}

// gatherAcross reads it, as far as the user may.
func gatherAcross(ctx context.Context, f *client.Federation, e *evidence, m *client.Members) (a *acrossEvidence, err error) {
	a = &acrossEvidence{}
	selector := fmt.Sprintf("%s=%s,%s=%s,%s=%s", discoveryv1.LabelManagedBy, crossclusterplan.Manager, v1beta1.ManagedByLabel, e.uid, v1beta1.RemoteServiceLabel, e.object.GetName())
	a.slices, err = client.AskEach(ctx, e.clusters, func(c *v1beta1.Cluster) (all slicesAnswer) {
		if err := e.copies[c.Name].err; err != nil {
			return slicesAnswer{err: err} // without the Service's copies, the desired slices are unknown, too
		}
		var bad error
		all.err = m.List(ctx, c.Name, slicesResource, e.object.GetNamespace(), selector, func(u *unstructured.Unstructured) {
			s := &discoveryv1.EndpointSlice{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
				bad = err
			}
			all.slices = append(all.slices, s)
		})
		if all.err == nil {
			all.err = bad
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	a.unknown = gatherOffers(ctx, f, e, a)
	a.events = append(readEvents(ctx, f, e.object.GetNamespace(), fields.Set{"involvedObject.name": e.object.GetName(), "reason": v1beta1.EventSliceRejected}),
		readEvents(ctx, f, metav1.NamespaceDefault, fields.Set{"involvedObject.kind": "Cluster", "reason": v1beta1.EventMissingPermissions})...)
	slices.SortStableFunc(a.events, func(x, y corev1.Event) int { return y.LastTimestamp.Compare(x.LastTimestamp.Time) })
	return a, nil
}

// readEvents returns the events of a namespace with these fields; none if the user may not read them.
func readEvents(ctx context.Context, f *client.Federation, namespace string, with fields.Set) []corev1.Event {
	found, err := f.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: with.String()})
	if err != nil {
		return nil
	}
	return found.Items
}

// gatherOffers reads the input of the offers of the Service.
func gatherOffers(ctx context.Context, f *client.Federation, e *evidence, a *acrossEvidence) error {
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if a.world, err = dnsWorld(ctx, f, info, e.clusters); err != nil {
		return err
	}
	o, err := servicednsplan.Read(e.object, e.policies)
	if err != nil {
		return err
	}
	a.off, a.world.Explain, a.world.Offers, a.world.Objects = !info.CrossClusterEndpoints, true, true, []servicednsplan.Object{o}
	a.world.Resolved = lookupHosts(ctx, servicednsplan.Records(a.world).Resolve)
	return nil
}
