package apiserver

import (
	"context"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"

	"federation/apiserver/admission"
	"federation/apiserver/pki"
)

// onAdmission are the enabled admission plugins of Kubernetes'; those about Pods and Nodes have nothing to do here.
var onAdmission = sets.New(lifecycle.PluginName, mutatingwebhook.PluginName, validatingwebhook.PluginName,
	mutatingpolicy.PluginName, validatingpolicy.PluginName, resourcequota.PluginName, admission.PluginName,
	approval.PluginName, signing.PluginName, subjectrestriction.PluginName)

// setFeatures disables, once per process, what several Kubernetes apiservers of different versions need to find each
// other: leases that are written every ten seconds, and a proxy between them.
var setFeatures = sync.OnceValue(func() error {
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(genericfeatures.APIServerIdentity):                   false,
		string(genericfeatures.UnknownVersionInteroperabilityProxy): false,
	})
})

const (
	// watchGrace is how long watches have to end at a shutdown, which they would otherwise delay by a minute.
	watchGrace = 2 * time.Second
	// requestGrace is the same for all other requests.
	requestGrace = 10 * time.Second
)

// controlPlaneOptions returns the options of Kubernetes' generic control plane for our server.
func (s *Server) controlPlaneOptions(ctx context.Context, endpoints []string) (_ options.CompletedOptions, err error) {
	c, files := s.config, s.files
	if err = setFeatures(); err != nil {
		return options.CompletedOptions{}, err
	}
	o := options.NewOptions()
	o.SecureServing.Listener = s.listener
	o.SecureServing.BindAddress = c.bind
	o.SecureServing.BindPort = s.listener.Addr().(*net.TCPAddr).Port
	o.SecureServing.ServerCert.CertKey.CertFile = files.ServingCert
	o.SecureServing.ServerCert.CertKey.KeyFile = files.ServingKey
	o.SecureServing.MinTLSVersion = "VersionTLS12"

	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchGrace
	o.GenericServerRunOptions.AdvertiseAddress = advertisedAddress(c.bind)

	o.Etcd.StorageConfig.Transport.ServerList = endpoints
	if len(c.Etcd.Servers) > 0 {
		o.Etcd.StorageConfig.Transport.TrustedCAFile = c.Etcd.CAFile
		o.Etcd.StorageConfig.Transport.CertFile = c.Etcd.CertFile
		o.Etcd.StorageConfig.Transport.KeyFile = c.Etcd.KeyFile
	}
	authenticate(o, files)
	if err = c.applyFront(o, files); err != nil {
		return options.CompletedOptions{}, err
	}
	plugin := admission.New(s.policies, c.Place, c.NamesInDNS)
	plugin.Clusters, plugin.CountClusters, plugin.TryOverrides, plugin.OrphanByDefault = c.Clusters, c.CountClusters, c.TryOverrides, c.OrphanByDefault
	admit(o, plugin)

	completed, err := o.Complete(ctx, nil, nil)
	if err != nil {
		return completed, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

// advertisedAddress is the one in the description of the API's token keys. Kubernetes would refuse to run on a machine
// without a default route, where bind itself, or loopback, is all there is.
func advertisedAddress(bind net.IP) net.IP {
	address, err := utilnet.ResolveBindAddress(bind)
	switch {
	case err == nil:
		return address
	case bind.IsUnspecified():
		return net.IPv4(127, 0, 0, 1)
	default:
		return bind
	}
}

// authenticate configures authentication: client certificates, service account tokens, and the tokens by which agents get a certificate.
func authenticate(o *options.Options, files *pki.Files) {
	a := o.Authentication
	a.ClientCert.ClientCA = files.CA
	a.RequestHeader.ClientCAFile = files.FrontProxyCA
	a.RequestHeader.AllowedNames = []string{pki.FrontProxyUser}
	a.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	a.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	a.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	a.BootstrapToken.Enable = true // of agents
	a.ServiceAccounts.KeyFiles = files.ServiceAccountKeys()
	a.ServiceAccounts.OptionalTokenGetter = tokenGetter
	a.ServiceAccounts.ExtendExpiration = false
	o.ServiceAccountSigningKeyFile = files.ServiceAccountKey
	o.ProxyClientCertFile = files.FrontProxyCert
	o.ProxyClientKeyFile = files.FrontProxyKey
}

func admit(o *options.Options, ours *admission.Plugin) {
	g := o.Admission.GenericAdmission
	ours.Register(g.Plugins)
	g.RecommendedPluginOrder = withOurs(kubeoptions.AllOrderedPlugins)
	g.DefaultOffPlugins = sets.New(g.RecommendedPluginOrder...).Difference(onAdmission)
}

// withOurs puts our plugin before the webhooks, which then see its changes.
func withOurs(order []string) []string {
	all := make([]string, 0, len(order)+1)
	for _, name := range order {
		if name == mutatingpolicy.PluginName {
			all = append(all, admission.PluginName)
		}
		all = append(all, name)
	}
	return all
}

// accounts looks up what a service account token is bound to; there are no Pods and Nodes.
type accounts struct {
	secrets  corelisters.SecretLister
	accounts corelisters.ServiceAccountLister
}

func tokenGetter(f informers.SharedInformerFactory) serviceaccount.ServiceAccountTokenGetter {
	return accounts{f.Core().V1().Secrets().Lister(), f.Core().V1().ServiceAccounts().Lister()}
}

func (a accounts) GetServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return a.accounts.ServiceAccounts(namespace).Get(name)
}

func (a accounts) GetSecret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return a.secrets.Secrets(namespace).Get(name)
}

func (accounts) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	return nil, errors.NewNotFound(corev1.Resource("pods"), name)
}

func (accounts) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	return nil, errors.NewNotFound(corev1.Resource("nodes"), name)
}
