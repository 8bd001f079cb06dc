package explain

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
	"federation/controllers/explain/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// readSlices reads the slices that a cluster has of the others for a Service.
func (s *sight) readSlices(ctx context.Context, e *plan.Evidence, cluster string) (all plan.SlicesAnswer) {
	selector := fmt.Sprintf("%s=%s,%s=%s,%s=%s", discoveryv1.LabelManagedBy, crossclusterplan.Manager, v1beta1.ManagedByLabel, e.UID, v1beta1.RemoteServiceLabel, e.Object.GetName())
	var bad error
	all.Err = s.members.List(ctx, cluster, plan.Slices, e.Object.GetNamespace(), selector, func(u *unstructured.Unstructured) {
		slice := &discoveryv1.EndpointSlice{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, slice); err != nil {
			bad = err
		}
		all.Slices = append(all.Slices, slice)
	})
	if all.Err == nil {
		all.Err = bad
	}
	return all
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
