package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	crossclusterplan "federation/controllers/crosscluster/plan"
	"federation/controllers/explain/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// readSlices reads the slices that a cluster has of the others for a Service, and, where the Service is offered by pods, what others get of the cluster.
func (s *sight) readSlices(ctx context.Context, e *plan.Evidence, cluster string) (all plan.SlicesAnswer) {
	name := e.Object.GetName()
	selector := fmt.Sprintf("%s=%s,%s=%s,%s=%s", discoveryv1.LabelManagedBy, crossclusterplan.Manager, v1beta1.ManagedByLabel, e.UID, v1beta1.RemoteServiceLabel, name)
	if all.Slices, all.Err = list[discoveryv1.EndpointSlice](ctx, s, e, cluster, plan.Slices, selector); all.Err != nil || !plan.IsOfferedByPods(e.Object) {
		return all
	}
	if all.Own, all.Err = list[discoveryv1.EndpointSlice](ctx, s, e, cluster, plan.Slices, discoveryv1.LabelServiceName+"="+name); all.Err != nil {
		return all
	}
	selector = fmt.Sprintf("%s=%s,%s=%s", v1beta1.ManagedByLabel, e.UID, v1beta1.ExportedServiceLabel, name)
	all.Balancers, all.Err = list[corev1.Service](ctx, s, e, cluster, plan.Services, selector)
	return all
}

// list lists objects of a cluster in the namespace of the object.
func list[T any](ctx context.Context, s *sight, e *plan.Evidence, cluster string, r schema.GroupVersionResource, selector string) (all []*T, err error) {
	var bad error
	err = s.members.List(ctx, cluster, r, e.Object.GetNamespace(), selector, func(u *unstructured.Unstructured) {
		into := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
			bad = err
		}
		all = append(all, into)
	})
	return all, cmp.Or(err, bad)
}

// gatherOffers reads the input of the offers of the Service, and what went wrong with the slices.
func (s *sight) gatherOffers(ctx context.Context, e *plan.Evidence) {
	a := e.Across
	a.Unknown = s.readOffers(ctx, e, a)
	a.Events = append(readEvents(ctx, s.user, e.Object.GetNamespace(), fields.Set{"involvedObject.name": e.Object.GetName(), "reason": v1beta1.EventSliceRejected}),
		readEvents(ctx, s.user, metav1.NamespaceDefault, fields.Set{"involvedObject.kind": "Cluster", "reason": v1beta1.EventMissingPermissions})...)
	slices.SortStableFunc(a.Events, func(x, y corev1.Event) int { return y.LastTimestamp.Compare(x.LastTimestamp.Time) })
}

// readEvents returns the events of a namespace with these fields; none if the user may not read them.
func readEvents(ctx context.Context, f *client.Federation, namespace string, with fields.Set) []corev1.Event {
	found, err := f.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: with.String()})
	if err != nil {
		return nil
	}
	return found.Items
}

func (s *sight) readOffers(ctx context.Context, e *plan.Evidence, a *plan.AcrossEvidence) error {
	info, err := s.own.Info(ctx)
	if err != nil {
		return err
	}
	if a.World, err = dnsWorld(ctx, s.own, info, e.Clusters); err != nil {
		return err
	}
	o, err := servicednsplan.Read(e.Object, e.Policies)
	if err != nil {
		return err
	}
	a.Off, a.World.Explain, a.World.Offers, a.World.Objects = !info.CrossClusterEndpoints, true, true, []servicednsplan.Object{o}
	a.World.Resolved = lookupHosts(ctx, servicednsplan.Records(a.World).Resolve, shortLookup)
	return nil
}
