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

// gatherAcross reads it, as far as the user may.
func gatherAcross(ctx context.Context, f *client.Federation, e *plan.Evidence, m *client.Members) (a *plan.AcrossEvidence, err error) {
	a = &plan.AcrossEvidence{}
	selector := fmt.Sprintf("%s=%s,%s=%s,%s=%s", discoveryv1.LabelManagedBy, crossclusterplan.Manager, v1beta1.ManagedByLabel, e.UID, v1beta1.RemoteServiceLabel, e.Object.GetName())
	a.Slices, err = client.AskEach(ctx, e.Clusters, func(c *v1beta1.Cluster) (all plan.SlicesAnswer) {
		if err := e.Copies[c.Name].Err; err != nil {
			return plan.SlicesAnswer{Err: err} // without the Service's copies, the desired slices are unknown, too
		}
		var bad error
		all.Err = m.List(ctx, c.Name, plan.Slices, e.Object.GetNamespace(), selector, func(u *unstructured.Unstructured) {
			s := &discoveryv1.EndpointSlice{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
				bad = err
			}
			all.Slices = append(all.Slices, s)
		})
		if all.Err == nil {
			all.Err = bad
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	a.Unknown = gatherOffers(ctx, f, e, a)
	a.Events = append(readEvents(ctx, f, e.Object.GetNamespace(), fields.Set{"involvedObject.name": e.Object.GetName(), "reason": v1beta1.EventSliceRejected}),
		readEvents(ctx, f, metav1.NamespaceDefault, fields.Set{"involvedObject.kind": "Cluster", "reason": v1beta1.EventMissingPermissions})...)
	slices.SortStableFunc(a.Events, func(x, y corev1.Event) int { return y.LastTimestamp.Compare(x.LastTimestamp.Time) })
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
func gatherOffers(ctx context.Context, f *client.Federation, e *plan.Evidence, a *plan.AcrossEvidence) error {
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if a.World, err = dnsWorld(ctx, f, info, e.Clusters); err != nil {
		return err
	}
	o, err := servicednsplan.Read(e.Object, e.Policies)
	if err != nil {
		return err
	}
	a.Off, a.World.Explain, a.World.Offers, a.World.Objects = !info.CrossClusterEndpoints, true, true, []servicednsplan.Object{o}
	a.World.Resolved = lookupHosts(ctx, servicednsplan.Records(a.World).Resolve)
	return nil
}
