package autoscaling

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"

	"federation/apiserver/apis/federation/v1beta1"
)

// scaler reads and writes the scale of workloads of one kind and namespace.
type scaler interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// scaled are the kinds that can be scaled at the federation: the divided ones with a scale.
var scaled = map[string]func(kubernetes.Interface, string) scaler{
	"deployments":  func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().Deployments(namespace) },
	"replicasets":  func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().ReplicaSets(namespace) },
	"statefulsets": func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().StatefulSets(namespace) },
}

// scaledKinds returns the mapper of these kinds, which knows no others.
func scaledKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	for _, k := range v1beta1.FederatedKinds {
		if scaled[k.Resource.Resource] != nil {
			mapper.AddSpecific(k.Resource.GroupVersion().WithKind(k.Kind), k.Resource, k.Resource.GroupVersion().WithResource(k.Kind), meta.RESTScopeNamespace)
		}
	}
	return mapper
}

// scales reads and writes the scale of workloads. Whenever it has read one, it has its pods read.
type scales struct {
	kube kubernetes.Interface
	read func(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale)
}

// Scales implements scale.ScalesGetter.
func (s scales) Scales(namespace string) scale.ScaleInterface { return scalesIn{s, namespace} }

type scalesIn struct {
	scales
	namespace string
}

// Get implements scale.ScaleInterface.
func (s scalesIn) Get(ctx context.Context, resource schema.GroupResource, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error) {
	of, err := s.of(resource)
	if err != nil {
		return nil, err
	}
	scale, err := of.GetScale(ctx, name, o)
	if err == nil {
		s.read(ctx, resource, scale)
	}
	return scale, err
}

// Update implements scale.ScaleInterface.
func (s scalesIn) Update(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	of, err := s.of(resource)
	if err != nil {
		return nil, err
	}
	return of.UpdateScale(ctx, scale.Name, scale, o)
}

// Patch implements scale.ScaleInterface.
func (scalesIn) Patch(context.Context, schema.GroupVersionResource, string, types.PatchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, fmt.Errorf("scales are not patched here")
}

func (s scalesIn) of(resource schema.GroupResource) (scaler, error) {
	make := scaled[resource.Resource]
	if make == nil || resource.Group != "apps" {
		return nil, fmt.Errorf("%s: must be Deployments, ReplicaSets or StatefulSets: others are not scaled at the federation", resource)
	}
	return make(s.kube, s.namespace), nil
}
