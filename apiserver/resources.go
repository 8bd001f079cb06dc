package apiserver

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/install"
	"federation/apiserver/apis/federation/v1beta1"

	// The scheme must have what the server's storage converts between.
	_ "k8s.io/kubernetes/pkg/apis/admission/install"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
)

func init() {
	// The scheme is the process's, as Kubernetes' server is written.
	if err := errors.Join(install.Install(legacyscheme.Scheme), installMetrics(legacyscheme.Scheme)); err != nil {
		panic(err)
	}
}

// installMetrics adds the types of metrics.k8s.io, which are served as members send them: there is no internal version.
func installMetrics(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Group: metricsv1beta1.GroupName, Version: runtime.APIVersionInternal},
		&metricsv1beta1.PodMetrics{}, &metricsv1beta1.PodMetricsList{}, &metricsv1beta1.NodeMetrics{}, &metricsv1beta1.NodeMetricsList{})
	if err := metricsv1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	return scheme.SetVersionPriority(metricsv1beta1.SchemeGroupVersion)
}

// servedVersions are served whole.
var servedVersions = []schema.GroupVersion{
	corev1.SchemeGroupVersion,
	eventsv1.SchemeGroupVersion,
	authenticationv1.SchemeGroupVersion,
	authorizationv1.SchemeGroupVersion,
	rbacv1.SchemeGroupVersion,
	admissionregistrationv1.SchemeGroupVersion,
	coordinationv1.SchemeGroupVersion,
	flowcontrolv1.SchemeGroupVersion,
	v1beta1.SchemeGroupVersion,
	metricsv1beta1.SchemeGroupVersion,
}

// servedResources are served in addition to v1beta1.FederatedResources, from versions of which we serve nothing else.
var servedResources = []schema.GroupVersionResource{
	appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), // of StatefulSets and DaemonSets
	autoscalingv1.SchemeGroupVersion.WithResource("horizontalpodautoscalers"),
	certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), // of agents
	networkingv1.SchemeGroupVersion.WithResource("ingressclasses"),
	networkingv1.SchemeGroupVersion.WithResource("ipaddresses"), // whose a clusterset IP is
}

// resourceConfig enables what is served of all that the server could serve.
func resourceConfig() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(servedVersions...)
	config.EnableResources(v1beta1.FederatedResources...)
	config.EnableResources(servedResources...)
	return config
}

// apiServicePriorities orders the groups in discovery; a version without an entry is missing there.
func apiServicePriorities() map[schema.GroupVersion]controlplane.APIServicePriority {
	p := controlplane.DefaultGenericAPIServicePriorities()
	p[appsv1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17800, Version: 15}
	p[autoscalingv2.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17500, Version: 30}
	p[autoscalingv1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17500, Version: 15}
	p[batchv1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17400, Version: 15}
	p[policyv1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 16800, Version: 15}
	p[networkingv1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17200, Version: 15}
	p[metricsv1beta1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 16000, Version: 15}
	p[v1beta1.SchemeGroupVersion] = controlplane.APIServicePriority{Group: 17900, Version: 15}
	return p
}
