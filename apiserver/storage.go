package apiserver

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
	daemonsetstore "k8s.io/kubernetes/pkg/registry/apps/daemonset/storage"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicasetstore "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	statefulsetstore "k8s.io/kubernetes/pkg/registry/apps/statefulset/storage"
	autoscalerstore "k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler/storage"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	cronjobstore "k8s.io/kubernetes/pkg/registry/batch/cronjob/storage"
	jobstore "k8s.io/kubernetes/pkg/registry/batch/job/storage"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	accountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	ingressstore "k8s.io/kubernetes/pkg/registry/networking/ingress/storage"
	networkpolicystore "k8s.io/kubernetes/pkg/registry/networking/networkpolicy/storage"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	budgetstore "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/cluster"
	"federation/apiserver/registry/dnsgrant"
	"federation/apiserver/registry/drill"
	"federation/apiserver/registry/drillschedule"
	"federation/apiserver/registry/federated"
	"federation/apiserver/registry/policy"
	"federation/apiserver/registry/readiness"
	"federation/apiserver/registry/review"
	"federation/apiserver/registry/service"
	"federation/apiserver/registry/views"
)

// provider is Kubernetes' interface for the storage of one group.
type provider = controlplane.RESTStorageProvider

// storageProviders returns those of the generic control plane, changed for federated kinds, and those of the groups
// that it lacks. owners learns the storage of workloads.
func storageProviders(generic []provider, core corev1.CoreV1Interface, own federationProvider, shown *views.Views, owners *views.Owners) []provider {
	all := slices.Clone(generic)
	federate := func(p provider) provider {
		return federatedProvider{p, core.Namespaces(), own.orphanByDefault, owners}
	}
	for i, p := range all {
		if p.GroupName() == "" {
			all[i] = federate(coreProvider{p, shown})
		}
	}
	return append(all,
		federate(appsrest.StorageProvider{}),
		federate(batchrest.RESTStorageProvider{}),
		federate(autoscalingrest.RESTStorageProvider{}),
		federate(policyrest.RESTStorageProvider{}),
		federate(networkingrest.RESTStorageProvider{}),
		metricsProvider{shown},
		own)
}

// coreProvider adds Services to the core group, and the pods and nodes of members.
type coreProvider struct {
	provider
	views *views.Views
}

func (p coreProvider) NewRESTStorage(config serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info, err := p.provider.NewRESTStorage(config, options)
	if err != nil {
		return info, err
	}
	services, status, err := service.NewREST(options)
	if err != nil {
		return info, err
	}
	maps.Copy(info.VersionedResourcesStorageMap["v1"], map[string]rest.Storage{
		"services": services, "services/status": status,
		"pods": p.views.Pods, "pods/log": p.views.Log, "pods/exec": p.views.Exec, "pods/attach": p.views.Attach, "pods/portforward": p.views.PortForward,
		"nodes": p.views.Nodes,
	})
	return info, nil
}

// metricsProvider is the storage of the metrics of members' pods and nodes.
type metricsProvider struct{ views *views.Views }

func (metricsProvider) GroupName() string { return metricsv1beta1.GroupName }

func (p metricsProvider) NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info := genericapiserver.NewDefaultAPIGroupInfo(metricsv1beta1.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	info.VersionedResourcesStorageMap[metricsv1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{"pods": p.views.PodMetrics, "nodes": p.views.NodeMetrics}
	return info, nil
}

// federatedProvider makes the storage of federated kinds remember how an object was deleted.
type federatedProvider struct {
	provider
	namespaces      federated.NamespaceGetter
	orphanByDefault bool
	owners          *views.Owners
}

func (p federatedProvider) NewRESTStorage(config serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info, err := p.provider.NewRESTStorage(config, options)
	if err != nil {
		return info, err
	}
	for _, r := range v1beta1.FederatedResources {
		resources := info.VersionedResourcesStorageMap[r.Version]
		if r.Group != p.GroupName() || resources == nil {
			continue
		}
		if resources[r.Resource], err = p.federate(resources[r.Resource], v1beta1.FederatedKindOf(r.GroupResource())); err != nil {
			return info, fmt.Errorf("%s: %w", r.GroupResource(), err)
		}
	}
	return info, nil
}

// federate changes the store of a kind: it remembers how an object was deleted, and its tables show the placement of a
// divided kind.
func (p federatedProvider) federate(storage rest.Storage, kind *v1beta1.FederatedKind) (rest.Storage, error) {
	if namespaces, ok := storage.(*namespacestore.REST); ok {
		return &federated.Namespaces{REST: namespaces, OrphanByDefault: p.orphanByDefault}, nil
	}
	store := storeOf(storage)
	if store == nil {
		return nil, fmt.Errorf("storage of an unknown type %T", storage)
	}
	store.DeleteStrategy = federated.DeleteStrategy(store.DeleteStrategy, p.namespaces, p.orphanByDefault)
	p.owners.Add(kind.Resource.GroupVersion().WithKind(kind.Kind).GroupKind(), store)
	if kind.Preferences != "" {
		store.TableConvertor = federated.WithClusters(store.TableConvertor)
	}
	return storage, nil
}

// storeOf returns the store inside a kind's storage, or nil for an unknown storage type.
func storeOf(storage rest.Storage) *genericregistry.Store {
	switch s := storage.(type) {
	case *accountstore.REST:
		return s.Store
	case *configmapstore.REST:
		return s.Store
	case *secretstore.REST:
		return s.Store
	case *service.REST:
		return s.Store
	case *replicasetstore.REST:
		return s.Store
	case *deploymentstore.REST:
		return s.Store
	case *statefulsetstore.REST:
		return s.Store
	case *daemonsetstore.REST:
		return s.Store
	case *jobstore.REST:
		return s.Store
	case *cronjobstore.REST:
		return s.Store
	case *autoscalerstore.REST:
		return s.Store
	case *budgetstore.REST:
		return s.Store
	case *networkpolicystore.REST:
		return s.Store
	case *ingressstore.REST:
		return s.Store
	}
	return nil
}

// federationProvider is the storage of our own group.
type federationProvider struct {
	secrets  cluster.SecretGetter
	policies *policy.Index
	review   review.FailoverReviewer
	explain  review.PlacementReviewer
	tunnel   cluster.Tunnel
	// orphanByDefault: see federated.DeleteStrategy.
	orphanByDefault bool
}

func (federationProvider) GroupName() string { return v1beta1.GroupName }

func (p federationProvider) NewRESTStorage(_ serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info := genericapiserver.NewDefaultAPIGroupInfo(v1beta1.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	info.NegotiatedSerializer = textOnly{info.NegotiatedSerializer}
	clusters, err := cluster.NewStorage(options, p.secrets, p.tunnel)
	if err != nil {
		return info, err
	}
	policies, status, err := policy.NewREST(options, p.policies)
	if err != nil {
		return info, err
	}
	grants, err := dnsgrant.NewREST(options)
	if err != nil {
		return info, err
	}
	ready, readyStatus, err := readiness.NewREST(options)
	if err != nil {
		return info, err
	}
	drills, drillStatus, abort, approval, err := drill.NewREST(options)
	if err != nil {
		return info, err
	}
	schedules, scheduleStatus, err := drillschedule.NewREST(options)
	if err != nil {
		return info, err
	}
	info.VersionedResourcesStorageMap[v1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"dnsnamegrants":                 grants,
		"clusters":                      clusters.Cluster,
		"clusters/status":               clusters.Status,
		"clusters/drain":                clusters.Drain,
		"clusters/proxy":                clusters.Proxy,
		"clusters/inspect":              clusters.Inspect,
		"clusters/connect":              clusters.Connect,
		"placementpolicies":             policies,
		"placementpolicies/status":      status,
		"failoverreviews":               review.NewFailover(p.review),
		"placementreviews":              review.NewPlacement(p.explain),
		"failoverreadinesses":           ready,
		"failoverreadinesses/status":    readyStatus,
		"failoverdrills":                drills,
		"failoverdrills/status":         drillStatus,
		"failoverdrills/abort":          abort,
		"failoverdrills/approval":       approval,
		"failoverdrillschedules":        schedules,
		"failoverdrillschedules/status": scheduleStatus,
	}
	return info, nil
}

// textOnly leaves JSON and YAML: our types have no protobuf.
type textOnly struct {
	runtime.NegotiatedSerializer
}

func (t textOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(t.NegotiatedSerializer.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType != runtime.ContentTypeJSON && i.MediaType != runtime.ContentTypeYAML
	})
}
