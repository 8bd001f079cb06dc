// Package housekeeping runs those of Kubernetes' own controllers without which an API server is incomplete: namespaces end when
// they are deleted, orphaned dependents are collected, quotas are counted, cluster roles aggregate, each namespace has its
// default service account and the CA certificate, bootstrap tokens that expire and old requests for certificates go. Three controllers are our own: one signs the certificates of agents; one gives
// the federation's controllers permissions for custom kinds, as they come and go; one gives cluster IPs to Services stored before
// the federation gave any.
//
// They run in the apiserver's process, with its own permissions. With an external etcd each apiserver waits for a Lease, and
// one of them works.
package housekeeping

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/bootstrap"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	namespacecontroller "k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"

	"federation/apiserver/agentcert"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

const (
	resync        = 10 * time.Minute
	discoverEvery = 30 * time.Second
	leaseName     = "federation-housekeeping"
)

// set is what the controllers are made from.
type set struct {
	kube      kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	informers informers.SharedInformerFactory
	// objects are the same informers, and those of the metadata of kinds that have no Go type.
	objects informerfactory.InformerFactory
	// started is closed when the informers run.
	started chan struct{}
}

// Options are what the controllers need of the server.
type Options struct {
	// RootCA is the PEM that is published in each namespace.
	RootCA []byte
	// SignAgent signs the certificates of agents.
	SignAgent agentcert.Sign
}

// Run runs the controllers until ctx ends. config has the permissions of the server itself.
func Run(ctx context.Context, config *restclient.Config, o Options) error {
	config = restclient.CopyConfig(config)
	config.QPS = -1 // the server has its own priority levels
	config.UserAgent = "federation-housekeeping"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	anyKind, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, resync, informers.WithTransform(dropUnread))
	objects := informerfactory.NewInformerFactory(factory, metadatainformer.NewSharedInformerFactory(meta, resync))
	s := &set{kube: kube, dynamic: anyKind, metadata: meta, informers: factory, objects: objects, started: make(chan struct{})}
	workers, err := s.controllers(ctx, o)
	if err != nil {
		return err
	}
	for _, run := range workers {
		go supervisor.Keep(ctx, "housekeeping", run)
	}
	factory.Start(ctx.Done())
	close(s.started)
	<-ctx.Done()
	return nil
}

// dropUnread takes off what nobody reads here. Of revisions that is all but their metadata.
func dropUnread(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	o.SetManagedFields(nil)
	switch revision := object.(type) {
	case *appsv1.ControllerRevision:
		revision.Data = runtime.RawExtension{}
	case *appsv1.ReplicaSet:
		if revision.Labels[v1beta1.RevisionOfLabel] != "" {
			revision.Spec.Template = corev1.PodTemplateSpec{}
		}
	}
	return object, nil
}

// controllers makes all controllers and returns their run functions.
func (s *set) controllers(ctx context.Context, o Options) ([]func(context.Context), error) {
	core := s.informers.Core().V1()
	namespaces := namespacecontroller.NewNamespaceController(ctx, s.kube, s.metadata,
		s.kube.Discovery().ServerPreferredNamespacedResources, core.Namespaces(), resync, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(s.informers.Rbac().V1().ClusterRoles(), s.kube.RbacV1())
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		s.kube, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, fmt.Errorf("service accounts: %w", err)
	}
	publisher, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), s.kube, o.RootCA)
	if err != nil {
		return nil, fmt.Errorf("root CA publisher: %w", err)
	}
	collect, err := s.garbageCollector(ctx)
	if err != nil {
		return nil, fmt.Errorf("garbage collector: %w", err)
	}
	count, err := s.quotas(ctx)
	if err != nil {
		return nil, fmt.Errorf("quotas: %w", err)
	}
	allow, err := s.customKinds()
	if err != nil {
		return nil, fmt.Errorf("custom kinds: %w", err)
	}
	agents, err := agentcert.New(s.kube, s.informers.Certificates().V1().CertificateSigningRequests(), s.cluster, o.SignAgent)
	if err != nil {
		return nil, fmt.Errorf("certificates of agents: %w", err)
	}
	system := informers.NewSharedInformerFactoryWithOptions(s.kube, resync, informers.WithNamespace(metav1.NamespaceSystem))
	tokens, err := bootstrap.NewTokenCleaner(s.kube, system.Core().V1().Secrets(), bootstrap.DefaultTokenCleanerOptions())
	if err != nil {
		return nil, fmt.Errorf("bootstrap tokens: %w", err)
	}
	requests := cleaner.NewCSRCleanerController(s.kube.CertificatesV1().CertificateSigningRequests(), s.informers.Certificates().V1().CertificateSigningRequests())
	return []func(context.Context){
		func(ctx context.Context) { namespaces.Run(ctx, 5) },
		func(ctx context.Context) { roles.Run(ctx, 1) },
		func(ctx context.Context) { accounts.Run(ctx, 1) },
		func(ctx context.Context) { publisher.Run(ctx, 1) },
		func(ctx context.Context) {
			system.Start(ctx.Done())
			tokens.Run(ctx)
		},
		func(ctx context.Context) { requests.Run(ctx, 1) },
		collect, count, allow, s.giveClusterIPs, agents.Run,
	}, nil
}

// cluster reads a Cluster: nil if there is none.
func (s *set) cluster(ctx context.Context, name string) (*v1beta1.Cluster, error) {
	u, err := s.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &v1beta1.Cluster{}
	return c, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c)
}

// garbageCollector watches the metadata of everything that can be deleted, including custom resources as they come and
// go.
func (s *set) garbageCollector(ctx context.Context) (func(context.Context), error) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.kube.Discovery()))
	gc, err := garbagecollector.NewGarbageCollector(ctx, s.kube, s.metadata, mapper, garbagecollector.DefaultIgnoredResources(), s.objects, s.started)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		go supervisor.Keep(ctx, "housekeeping", func(ctx context.Context) { gc.Sync(ctx, s.kube.Discovery(), discoverEvery) })
		gc.Run(ctx, 5, resync)
	}, nil
}

// RunElected is Run for one of several apiservers that share an etcd. When the Lease is lost, because this server
// cannot write any more, it waits for it again.
func RunElected(ctx context.Context, config *restclient.Config, o Options) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: leaseName},
		Client:     kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, Name: leaseName,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { report(Run(ctx, config, o)) },
				OnStoppedLeading: func() { klog.InfoS("Housekeeping stops here", "lease", leaseName) },
			},
		})
	}
	return nil
}

func report(err error) {
	if err != nil {
		klog.ErrorS(err, "Housekeeping does not run")
	}
}
