package autoscaling

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"

	"federation/apiserver/apis/federation/v1beta1"
)

// scaler reads and writes the scale of workloads of one kind and namespace.
type scaler interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// scaled are the built-in kinds that can be scaled at the federation: the divided ones with a scale.
var scaled = map[string]func(kubernetes.Interface, string) scaler{
	"deployments":  func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().Deployments(namespace) },
	"replicasets":  func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().ReplicaSets(namespace) },
	"statefulsets": func(kube kubernetes.Interface, namespace string) scaler { return kube.AppsV1().StatefulSets(namespace) },
}

// scaledKinds are the built-in kinds, and the custom kinds for which Kubernetes' controller of a lane has asked: it asks for the kind, and
// then for the scale of an object by the resource.
type scaledKinds struct {
	meta.RESTMapper
	resolve func(schema.GroupKind) (schema.GroupVersionResource, error)
	custom  map[schema.GroupResource]*meta.RESTMapping
}

func newScaledKinds(resolve func(schema.GroupKind) (schema.GroupVersionResource, error)) *scaledKinds {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	for _, k := range v1beta1.FederatedKinds {
		if scaled[k.Resource.Resource] != nil {
			mapper.AddSpecific(k.Resource.GroupVersion().WithKind(k.Kind), k.Resource, k.Resource.GroupVersion().WithResource(k.Kind), meta.RESTScopeNamespace)
		}
	}
	return &scaledKinds{mapper, resolve, map[schema.GroupResource]*meta.RESTMapping{}}
}

// RESTMappings implements meta.RESTMapper.
func (k *scaledKinds) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if known, err := k.RESTMapper.RESTMappings(kind, versions...); err == nil {
		return known, nil
	}
	resource, err := k.resolve(kind)
	if err != nil {
		return nil, fmt.Errorf("%s: must be a Deployment, ReplicaSet or StatefulSet, or a custom kind: others are not scaled at the federation: %w", kind, err)
	}
	one := &meta.RESTMapping{Resource: resource, GroupVersionKind: resource.GroupVersion().WithKind(kind.Kind), Scope: meta.RESTScopeNamespace}
	k.custom[resource.GroupResource()] = one
	return []*meta.RESTMapping{one}, nil
}

// kindOf returns the kind of a resource for which the controller has asked.
func (k *scaledKinds) kindOf(resource schema.GroupResource) string {
	if custom := k.custom[resource]; custom != nil {
		return custom.GroupVersionKind.Kind
	}
	return v1beta1.FederatedKindOf(resource).Kind
}

// customScaler reads and writes the scale of objects of a custom kind in a namespace.
type customScaler struct {
	client rest.Interface
	path   []string // of the objects
}

// GetScale implements scaler.
func (c customScaler) GetScale(ctx context.Context, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return c.scale(c.client.Get(), name).do(ctx)
}

// UpdateScale implements scaler.
func (c customScaler) UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	body, err := json.Marshal(scale)
	if err != nil {
		return nil, err
	}
	return c.scale(c.client.Put().SetHeader("Content-Type", "application/json").Body(body), name).do(ctx)
}

type scaleRequest struct{ *rest.Request }

func (c customScaler) scale(request *rest.Request, name string) scaleRequest {
	return scaleRequest{request.AbsPath(append(c.path, name, "scale")...).SetHeader("Accept", "application/json")}
}

func (r scaleRequest) do(ctx context.Context) (*autoscalingv1.Scale, error) {
	body, err := r.DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	out := &autoscalingv1.Scale{}
	return out, json.Unmarshal(body, out)
}

// scales reads and writes the scale of workloads. Whenever it has read one, it has its pods read.
type scales struct {
	kube  kubernetes.Interface
	kinds *scaledKinds
	read  func(ctx context.Context, resource schema.GroupResource, scale *autoscalingv1.Scale)
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
	if make := scaled[resource.Resource]; make != nil && resource.Group == appsv1.GroupName {
		return make(s.kube, s.namespace), nil
	}
	if custom := s.kinds.custom[resource]; custom != nil {
		r := custom.Resource
		return customScaler{s.kube.Discovery().RESTClient(), []string{"/apis", r.Group, r.Version, "namespaces", s.namespace, r.Resource}}, nil
	}
	return nil, fmt.Errorf("%s: is not scaled at the federation", resource)
}
