package apiserver

import (
	"fmt"
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

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/cluster"
	"federation/apiserver/registry/federated"
	"federation/apiserver/registry/service"
)

// provider is Kubernetes' interface for the storage of one group.
type provider = controlplane.RESTStorageProvider

// storageProviders are those of the generic control plane, changed where federated kinds need it, and
// those of the groups that it does not have.
func storageProviders(generic []provider, core corev1.CoreV1Interface) []provider {
	all := slices.Clone(generic)
	namespaces := core.Namespaces()
	for i, p := range all {
		if p.GroupName() == "" {
			all[i] = federatedProvider{coreProvider{p}, namespaces}
		}
	}
	return append(all,
		federatedProvider{appsrest.StorageProvider{}, namespaces},
		federatedProvider{batchrest.RESTStorageProvider{}, namespaces},
		federatedProvider{autoscalingrest.RESTStorageProvider{}, namespaces},
		federatedProvider{policyrest.RESTStorageProvider{}, namespaces},
		federatedProvider{networkingrest.RESTStorageProvider{}, namespaces},
		clusterProvider{core.Secrets(v1beta1.FederationNamespace)})
}

// coreProvider adds Services to the core group.
type coreProvider struct {
	provider
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
	info.VersionedResourcesStorageMap["v1"]["services"] = services
	info.VersionedResourcesStorageMap["v1"]["services/status"] = status
	return info, nil
}

// federatedProvider makes the storage of federated kinds remember how an object was deleted.
type federatedProvider struct {
	provider
	namespaces federated.NamespaceGetter
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
		if resources[r.Resource], err = p.rememberingDeletes(resources[r.Resource]); err != nil {
			return info, fmt.Errorf("%s: %w", r.GroupResource(), err)
		}
	}
	return info, nil
}

func (p federatedProvider) rememberingDeletes(storage rest.Storage) (rest.Storage, error) {
	var store *genericregistry.Store
	switch s := storage.(type) {
	case *namespacestore.REST:
		return &federated.Namespaces{REST: s}, nil
	case *accountstore.REST:
		store = s.Store
	case *configmapstore.REST:
		store = s.Store
	case *secretstore.REST:
		store = s.Store
	case *service.REST:
		store = s.Store
	case *replicasetstore.REST:
		store = s.Store
	case *deploymentstore.REST:
		store = s.Store
	case *statefulsetstore.REST:
		store = s.Store
	case *daemonsetstore.REST:
		store = s.Store
	case *jobstore.REST:
		store = s.Store
	case *cronjobstore.REST:
		store = s.Store
	case *autoscalerstore.REST:
		store = s.Store
	case *budgetstore.REST:
		store = s.Store
	case *networkpolicystore.REST:
		store = s.Store
	case *ingressstore.REST:
		store = s.Store
	default:
		return nil, fmt.Errorf("storage of an unknown type %T", storage)
	}
	store.DeleteStrategy = federated.DeleteStrategy(store.DeleteStrategy, p.namespaces)
	return storage, nil
}

// clusterProvider is the storage of our own group.
type clusterProvider struct {
	secrets cluster.SecretGetter
}

func (clusterProvider) GroupName() string { return v1beta1.GroupName }

func (p clusterProvider) NewRESTStorage(_ serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info := genericapiserver.NewDefaultAPIGroupInfo(v1beta1.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	info.NegotiatedSerializer = textOnly{info.NegotiatedSerializer}
	storage, err := cluster.NewStorage(options, p.secrets)
	if err != nil {
		return info, err
	}
	info.VersionedResourcesStorageMap[v1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"clusters":        storage.Cluster,
		"clusters/status": storage.Status,
		"clusters/proxy":  storage.Proxy,
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
