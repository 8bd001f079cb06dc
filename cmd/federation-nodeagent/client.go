package main

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// client reads the three API groups that the rules need. A clientset has all groups, which would be most of the agent's
// memory.
type client struct{ core, discovery, coordination *rest.RESTClient }

func (o *options) client() (client, error) {
	config, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return client{}, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(kinds); err != nil {
			return client{}, err
		}
	}
	config.UserAgent = "federation-nodeagent/" + version
	config.ContentType, config.QPS, config.Burst = runtime.ContentTypeProtobuf, o.qps, o.burst
	config.NegotiatedSerializer = serializer.NewCodecFactory(kinds).WithoutConversion()
	core, err := reader(config, "/api", corev1.SchemeGroupVersion)
	if err != nil {
		return client{}, err
	}
	discovery, err := reader(config, "/apis", discoveryv1.SchemeGroupVersion)
	if err != nil {
		return client{}, err
	}
	coordination, err := reader(config, "/apis", coordinationv1.SchemeGroupVersion)
	return client{core, discovery, coordination}, err
}

func reader(config *rest.Config, path string, version schema.GroupVersion) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = path, &version
	return rest.RESTClientFor(config)
}

// services, endpointSlices and nodes list and watch what the agent needs.
func (c client) services() cache.ListerWatcher { return notHeadless(c.core, "services") }
func (c client) endpointSlices() cache.ListerWatcher {
	return notHeadless(c.discovery, "endpointslices")
}

func (c client) nodes(name string) cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.core, "nodes", "", fields.OneTermEqualSelector("metadata.name", name))
}

// lease lists and watches one Lease, NAMESPACE/NAME; "": nil.
func (c client) lease(key string) cache.ListerWatcher {
	namespace, name, named := strings.Cut(key, "/")
	if !named {
		return nil
	}
	return cache.NewListWatchFromClient(c.coordination, "leases", namespace, fields.OneTermEqualSelector("metadata.name", name))
}

func notHeadless(c *rest.RESTClient, resource string) cache.ListerWatcher {
	return cache.NewFilteredListWatchFromClient(c, resource, "", func(o *metav1.ListOptions) { o.LabelSelector = "!" + corev1.IsHeadlessService })
}
