package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// desiredBalancer returns the Service of type LoadBalancer by which other networks reach what the member's valid export exports: where another cluster
// that takes part is in another network, and the exported Service selects pods and has no load balancer itself. Else nil.
func (in *Input) desiredBalancer() *corev1.Service {
	var own *Export
	elsewhere := false
	for i := range in.Sources {
		switch s := &in.Sources[i]; {
		case s.Cluster == in.Member:
			own = s.Export
		case s.Known && !s.Absent:
			elsewhere = elsewhere || in.Network == "" || s.Network != in.Network
		}
	}
	if own == nil || !elsewhere {
		return nil
	}
	s := own.Service
	if isHeadless(s) || len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return nil
	}
	want := &corev1.Service{}
	if in.Have.Balancer != nil {
		want = in.Have.Balancer.DeepCopy()
	}
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	want.Namespace, want.Name = in.Namespace, BalancerName(in.Name)
	want.Labels = map[string]string{
		v1beta1.ManagedByLabel: in.Federation, v1beta1.ShardLabel: strconv.Itoa(v1beta1.Shard(in.Namespace, in.Name)), v1beta1.ExportedServiceLabel: in.Name,
	}
	want.OwnerReferences = []metav1.OwnerReference{{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceExportKindName, Name: in.Name, UID: own.Export.UID}}
	had := want.Spec.Ports
	want.Spec.Type, want.Spec.Selector, want.Spec.Ports = corev1.ServiceTypeLoadBalancer, s.Spec.Selector, nil
	for _, p := range s.Spec.Ports {
		p.NodePort = 0
		if i := slices.IndexFunc(had, func(q corev1.ServicePort) bool { return q.Name == p.Name && q.Protocol == p.Protocol }); i >= 0 {
			p.NodePort = had[i].NodePort
		}
		want.Spec.Ports = append(want.Spec.Ports, p)
	}
	return want
}

// BalancerName returns the name of the Service by which other networks reach an exported one.
func BalancerName(service string) string { return nameOf(v1beta1.ExportedServicePrefix, service) }
