package apiserver

import (
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/openapi"
	"federation/apiserver/registry/views"
)

// chain are the configurations of the three servers that answer one after the other: the aggregator,
// the kinds built in, and CRDs.
type chain struct {
	aggregator aggregatorapiserver.CompletedConfig
	builtIn    controlplane.CompletedConfig
	crds       apiextensionsapiserver.CompletedConfig
	namespaces corelisters.NamespaceLister // at the federation
}

// newChain configures the servers. front is put in front of all that they do.
func newChain(o options.CompletedOptions, front func(http.Handler) http.Handler) (*chain, error) {
	generic, informers, storage, err := controlplane.BuildGenericConfig(o,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}, resourceConfig(), openapi.All)
	if err != nil {
		return nil, err
	}
	generic.Authorization.Authorizer = agents{withGuard(withCertificates(generic.Authorization.Authorizer, informers), informers)}
	generic.LongRunningFunc = exceptReviews(generic.LongRunningFunc)
	generic.OpenAPIConfig.Info.Title = "Federation"
	generic.OpenAPIV3Config.Info.Title = "Federation"
	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return front(genericapiserver.DefaultBuildHandlerChain(explainReadOnly(views.WithFormats(handler)), config))
	}
	for _, r := range []schema.GroupVersionResource{v1beta1.ClustersResource, v1beta1.PoliciesResource, v1beta1.DNSNameGrantsResource, v1beta1.ReadinessResource, v1beta1.FailoverDrillsResource,
		v1beta1.DrillSchedulesResource} {
		storage.SetSerializer(r.GroupResource(), runtime.ContentTypeJSON, nil)
	}

	services := webhook.NewDefaultServiceResolver()
	builtIn, initializers, err := controlplane.CreateConfig(o, generic, informers, storage, services, nil)
	if err != nil {
		return nil, err
	}
	auth := webhook.NewDefaultAuthenticationInfoResolverWrapper(builtIn.ProxyTransport, generic.EgressSelector, generic.LoopbackClientConfig, generic.TracerProvider)
	crds, err := controlplane.CreateAPIExtensionsConfig(*generic, informers, initializers, o, 1, services, auth)
	if err != nil {
		return nil, err
	}
	aggregator, err := controlplane.CreateAggregatorConfig(*generic, o, informers, services, builtIn.ProxyTransport, nil, initializers)
	if err != nil {
		return nil, err
	}
	aggregator.ExtraConfig.DisableRemoteAvailableConditionController = true // all APIs are served here
	return &chain{aggregator.Complete(), builtIn.Complete(), crds.Complete(), informers.Core().V1().Namespaces().Lister()}, nil
}

// exceptReviews lets a placement review hold no seat of priority and fairness while it waits for members. What it reads at the federation is
// requested as the caller, and takes the caller's: were the review to hold seats, too, many at once would wait for each other. It has limits of its own.
func exceptReviews(before request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		return before(r, info) || info.APIGroup == v1beta1.GroupName && info.Resource == v1beta1.PlacementReviewsResource.Resource && info.Verb == "create"
	}
}

// build makes the servers. own is the storage of our group, without the Secrets; clusters are those whose pods and
// nodes are shown.
func (c *chain) build(own federationProvider, clusters func() []*v1beta1.Cluster) (*aggregatorapiserver.APIAggregator, error) {
	notFound := notfoundhandler.New(c.builtIn.Generic.Serializer, filters.NoMuxAndDiscoveryIncompleteKey)
	crds, err := c.crds.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, fmt.Errorf("server of CRDs: %w", err)
	}
	builtIn, err := c.builtIn.New("federation-apiserver", crds.GenericAPIServer)
	if err != nil {
		return nil, fmt.Errorf("server of built-in kinds: %w", err)
	}
	kube, err := kubernetes.NewForConfig(c.builtIn.Generic.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	generic, err := c.builtIn.GenericStorageProviders(kube.Discovery())
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	own.secrets = kube.CoreV1().Secrets(v1beta1.FederationNamespace)
	owners := &views.Owners{}
	shown := views.New(views.NewMembers(clusters, own.secrets, own.tunnel), c.namespaces, owners, c.builtIn.Generic.Authorization.Authorizer)
	if err := builtIn.InstallAPIs(storageProviders(generic, kube.CoreV1(), own, shown, owners)...); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	enabled := c.crds.GenericConfig.MergedResourceConfig.ResourceEnabled(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	aggregator, err := controlplane.CreateAggregatorServer(c.aggregator, builtIn.GenericAPIServer,
		crds.Informers.Apiextensions().V1().CustomResourceDefinitions(), enabled, apiServicePriorities())
	if err != nil {
		return nil, fmt.Errorf("aggregator: %w", err)
	}
	return aggregator, nil
}
