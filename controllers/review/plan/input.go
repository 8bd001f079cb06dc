package plan

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/scheduler"
)

// AddObject adds an object with divided replicas. One that is being deleted, or whose annotations cannot be parsed, is
// not moved.
func (in *Input) AddObject(u *unstructured.Unstructured) {
	if o, err := scheduler.Read(u); err == nil && u.GetDeletionTimestamp() == nil {
		in.Objects = append(in.Objects, o)
	}
}

// AddNamed adds an object with names in DNS. One that cannot be parsed keeps its records.
func (in *Input) AddNamed(u *unstructured.Unstructured) {
	if o, err := servicednsplan.Read(u, in.policiesOf(u.GetNamespace())); err == nil {
		in.Named = append(in.Named, o)
	}
}

// AddRouted adds an Ingress that the federation's load balancers serve, or a Service that one of those added before names. It leaves others out.
func (in *Input) AddRouted(u *unstructured.Unstructured) {
	if in.Routes.Services == nil {
		in.Routes.Services, in.backends = map[string]*corev1.Service{}, map[string]bool{}
	}
	switch key := u.GetNamespace() + "/" + u.GetName(); {
	case servicednsplan.IsBalanced(u):
		i := &networkingv1.Ingress{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, i) != nil {
			return
		}
		in.Routes.Ingresses = append(in.Routes.Ingresses, i)
		for name := range loadbalancerplan.Backends(i) {
			in.backends[i.Namespace+"/"+name] = true
		}
	case in.backends[key] && u.GetKind() == servicednsplan.KindService:
		s := &corev1.Service{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s) == nil {
			in.Routes.Services[key] = s
		}
	}
}

func (in *Input) policiesOf(namespace string) (some []*v1beta1.PlacementPolicy) {
	for _, p := range in.Policies {
		if p.Namespace == namespace {
			some = append(some, p)
		}
	}
	return some
}
