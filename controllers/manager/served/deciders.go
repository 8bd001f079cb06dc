// Package served makes those parts of a process that need an API server, and not only objects: they have informers of their own, ask for
// metrics, or give its address to others. The simulation, whose API is in memory, runs without them.
package served

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"federation/clusterregistry/wire"
	"federation/controllers/autoscaling"
	"federation/controllers/clusterprofile"
	clusterprofileplan "federation/controllers/clusterprofile/plan"
	"federation/controllers/clustersetip"
	clustersetipplan "federation/controllers/clustersetip/plan"
	"federation/controllers/customkinds"
	"federation/controllers/loadbalancer/registered"
	"federation/controllers/manager"
	"federation/controllers/placementdecision"
	"federation/controllers/revisions"
)

// Options are what the parts are made from; all are required.
type Options struct {
	// Config reaches the federation's API; Client and Kube are clients of it.
	Config   *rest.Config
	Client   dynamic.Interface
	Kube     kubernetes.Interface
	Recorder record.EventRecorder
	// Federation is the federation's name, and Ranges are the networks of its clusterset IPs.
	Federation string
	Ranges     clustersetipplan.Ranges
	// UID is the federation's. Member returns a client of a connected member.
	UID    string
	Member func(cluster string) (kubernetes.Interface, error)
}

// Deciders returns the parts that look at all objects, beside those of manager.Manager. One process has them at a time.
func (o Options) Deciders() map[string]manager.Part {
	return map[string]manager.Part{
		"clustersetip": o.clusterSetIPs, "revisions": o.revisions, "clusterprofiles": o.clusterProfiles, "placementdecisions": o.placementDecisions,
		"loadbalancers": o.loadBalancers, "autoscaling": o.autoscalers,
	}
}

func (o Options) clusterSetIPs(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	return clustersetip.New(clustersetip.Options{Ranges: o.Ranges, Client: o.Client, Informers: from.ForResource, Recorder: o.Recorder}).Run, nil
}

// autoscalers scale workloads for all clusters together. What members do not answer comes as warnings, which tell it nothing that the
// pods do not.
func (o Options) autoscalers(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	config := rest.CopyConfig(o.Config)
	config.WarningHandler = rest.NoWarnings{}
	pods, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return nil, err
	}
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	member := func(cluster string) (rest.Interface, error) {
		client, err := o.Member(cluster)
		if err != nil {
			return nil, err
		}
		return client.Discovery().RESTClient(), nil
	}
	return autoscaling.New(autoscaling.Options{
		Kube: o.Kube, Pods: pods, Metrics: metrics, Member: member, Federation: o.UID, Informers: from.ForResource, Recorder: o.Recorder,
		Resolve: customkinds.Finder(from.ForResource(customkinds.Definitions)),
	}).Run, nil
}

// clusterProfiles keeps a ClusterProfile for each Cluster. Clients reach the clusters through this server, by the address
// that is in its kubeconfig.
func (o Options) clusterProfiles(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	config := rest.CopyConfig(o.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	profiles, err := clusterprofile.New(clusterprofile.Options{
		Client: o.Client, Informers: from.ForResource, Federation: clusterprofileplan.Federation{Name: o.Federation, Server: config.Host, CA: config.CAData},
	})
	if err != nil {
		return nil, err
	}
	return profiles.Run, nil
}

// placementDecisions publishes where objects go that ask for it. It has informers of these alone: others cost nothing.
func (o Options) placementDecisions(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	asking, err := o.informers(manager.DropManagedFields, placementdecision.Select)
	if err != nil {
		return nil, err
	}
	decisions, err := placementdecision.New(placementdecision.Options{Client: o.Client, Informers: from.ForResource, Asking: asking.ForResource})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		asking.Start(ctx.Done())
		return decisions.Run(ctx)
	}, nil
}

// revisions keeps revisions of workloads. It has informers of its own for these, for nobody else reads any.
func (o Options) revisions(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	kept, err := o.informers(revisions.Slim, revisions.Select)
	if err != nil {
		return nil, err
	}
	keeper, err := revisions.New(revisions.Options{Client: o.Client, Informers: from.ForResource, Kept: kept.ForResource, Recorder: o.Recorder})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		kept.Start(ctx.Done())
		return keeper.Run(ctx)
	}, nil
}

// informers makes informers of what a selector selects, without what slim drops.
func (o Options) informers(slim func(metav1.Object), selects func(*metav1.ListOptions)) (*wire.Informers, error) {
	kube, err := kubernetes.NewForConfig(wire.Protobuf(o.Config))
	if err != nil {
		return nil, err
	}
	return wire.NewInformers(wire.Source{Kube: kube, Dynamic: o.Client, Slim: slim, Select: selects}), nil
}

// loadBalancers has the addresses of the federation's own load balancers in DNS, and in the status of Ingresses and Services of their classes.
func (o Options) loadBalancers(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	for _, r := range []schema.GroupVersionResource{networkingv1.SchemeGroupVersion.WithResource("ingresses"), corev1.SchemeGroupVersion.WithResource("services")} {
		from.ForResource(r) // requested before they are started
	}
	keeper := &registered.Keeper{Kube: o.Kube, Informers: from.ForResource}
	return keeper.Run, nil
}
