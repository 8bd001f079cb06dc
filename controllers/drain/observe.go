package drain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drain/plan"
	"federation/controllers/held"
	servicednsplan "federation/controllers/servicedns/plan"
)

var (
	services   = corev1.SchemeGroupVersion.WithResource("services")
	ingresses  = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// workload is a kind whose replicas are divided, with the fields of spec and status that have the replicas that a copy asks
// for, and those that are ready.
type workload struct {
	resource              schema.GroupVersionResource
	kind                  string
	specField, readyField string
}

// divided are the built-in workloads.
var divided = dividedKinds()

func dividedKinds() (all []workload) {
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences != "" {
			all = append(all, workload{k.Resource, k.Kind, k.Replicas, k.Ready})
		}
	}
	return all
}

// watchedResources returns the resources that drains are decided from.
func watchedResources() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{v1beta1.ClustersResource, v1beta1.PoliciesResource, services, ingresses}
	for _, w := range divided {
		all = append(all, w.resource)
	}
	return all
}

// clusterOf reads a Cluster that an informer holds; nil where it is none.
func clusterOf(obj any) *v1beta1.Cluster {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		klog.Background().Error(err, "Cannot read the Cluster: its drain does not go on", "cluster", u.GetName())
		return nil
	}
	return c
}

// mayConcern reports whether a Cluster has anything of a drain: most have nothing, and to read one takes long.
func mayConcern(u *unstructured.Unstructured) bool {
	_, wanted, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "drain")
	_, told, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "drain")
	return wanted || told || u.GetAnnotations()[v1beta1.DrainAnnotation] != ""
}

// observe sees what the next step of a drain depends on.
func (c *Controller) observe(ctx context.Context, cluster *v1beta1.Cluster) (w plan.World, err error) {
	w = plan.World{Steady: c.remembered(cluster.Name)}
	switch {
	case plan.WantsDNS(cluster):
		w.Providers, err = c.providers(ctx)
		w.TTL = c.longestTTL(cluster.Name)
	case plan.WantsContents(cluster):
		w.Contents, err = c.contents(ctx, cluster)
	}
	w.Now = time.Now()
	return w, err
}

// providers returns the states of the DNS providers, by name.
func (c *Controller) providers(ctx context.Context) (all []v1beta1.DNSProvider, err error) {
	u, err := c.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data") // it is a ConfigMap
	return v1beta1.ReadDNSProviders(data)
}

// longestTTL returns for how long resolvers may keep an address in a cluster: the federation's TTL, or that of an object.
func (c *Controller) longestTTL(cluster string) time.Duration {
	ttl, policies := c.TTL, c.policies()
	for _, r := range []schema.GroupVersionResource{services, ingresses} {
		for _, obj := range held.By(c.Informers(r)).GetStore().List() {
			u := held.Object(obj)
			if u == nil || u.GetAnnotations()[v1beta1.ServiceIngressesAnnotation] == "" {
				continue
			}
			own := slices.DeleteFunc(slices.Clone(policies), func(p *v1beta1.PlacementPolicy) bool { return p.Namespace != u.GetNamespace() })
			o, err := servicednsplan.Read(u, own)
			if err != nil || o.Ingresses == nil || o.Settings == nil || o.Settings.TTLSeconds == nil {
				continue // an annotation that cannot be read is not published either
			}
			if slices.ContainsFunc(o.Ingresses.Items, func(i v1beta1.ClusterServiceIngress) bool { return i.Cluster == cluster && i.IsKnown() }) {
				ttl = max(ttl, time.Duration(*o.Settings.TTLSeconds)*time.Second)
			}
		}
	}
	return ttl
}

func (c *Controller) policies() (all []*v1beta1.PlacementPolicy) {
	for _, obj := range c.Informers(v1beta1.PoliciesResource).GetStore().List() {
		p := &v1beta1.PlacementPolicy{}
		if u := held.Object(obj); u != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) == nil {
			all = append(all, p)
		}
	}
	return all
}

// contents returns the state of each object that is placed in a cluster or has a copy there. In a lost cluster only placed
// ones count.
func (c *Controller) contents(ctx context.Context, cluster *v1beta1.Cluster) (s plan.Contents, err error) {
	policies := c.policies()
	stay := map[string]bool{} // NAMESPACE/NAME of policies whose objects a drain leaves in place
	for _, p := range policies {
		stay[p.Namespace+"/"+p.Name] = tolerates(p.Spec.Tolerations)
	}
	var member dynamic.Interface
	if !plan.IsLost(cluster) {
		if member, err = c.Member(cluster.Name); err != nil {
			s.Unknown = err.Error()
		}
	}
	patient, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	for _, w := range append(slices.Clone(divided), c.customWorkloads(policies)...) {
		found := map[string]*plan.Object{}
		if err := c.addPlaced(ctx, &w, cluster.Name, stay, found); err != nil {
			return s, err
		}
		if member != nil {
			if err := c.addCopies(patient, member, &w, found); err != nil && !apierrors.IsNotFound(err) { // a custom kind need not be served there
				s.Unknown = fmt.Sprintf("%ss cannot be read: %v", w.kind, err)
				member = nil // what else is there makes no difference
			}
		}
		for _, o := range found {
			s.Objects = append(s.Objects, *o)
		}
	}
	return s, ctx.Err()
}

// addPlaced adds what is placed in a cluster.
func (c *Controller) addPlaced(ctx context.Context, w *workload, cluster string, stay map[string]bool, found map[string]*plan.Object) error {
	add := func(p *placed) {
		if p.placement == nil || p.placement.Clusters[cluster]+p.placement.Overflow[cluster] == 0 {
			return
		}
		found[p.namespace+"/"+p.name] = &plan.Object{
			Kind: w.kind, Namespace: p.namespace, Name: p.name, Placed: p.placement.Clusters[cluster],
			Stays: stay[p.namespace+"/"+p.placement.Policy], Finished: p.finished, Message: p.message,
		}
	}
	if v1beta1.FederatedKindOf(w.resource.GroupResource()) != nil {
		c.placed.each(held.By(c.Informers(w.resource)).GetStore().List(), w.kind, add)
		return nil
	}
	err := listPages(ctx, c.Client.Resource(w.resource), v1beta1.NotRevisions, func(u *unstructured.Unstructured) { add(readPlaced(u)) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// addCopies adds what is in a cluster.
func (c *Controller) addCopies(ctx context.Context, member dynamic.Interface, w *workload, found map[string]*plan.Object) error {
	return listPages(ctx, member.Resource(w.resource), v1beta1.ManagedByLabel+"="+c.Federation, func(u *unstructured.Unstructured) {
		if !v1beta1.IsCopy(u, schema.GroupKind{Group: w.resource.Group, Kind: w.kind}, c.Federation) {
			return // somebody's own object with our labels
		}
		key := u.GetNamespace() + "/" + u.GetName()
		if found[key] == nil {
			found[key] = &plan.Object{Kind: w.kind, Namespace: u.GetNamespace(), Name: u.GetName()}
		}
		o := found[key]
		o.Current, _, _ = unstructured.NestedInt64(u.Object, "spec", w.specField)
		o.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", w.readyField)
		o.Finished = o.Finished || v1beta1.JobEnd(u) != ""
	})
}

// customWorkloads returns the custom kinds that policies divide. A kind that is not served has no objects.
func (c *Controller) customWorkloads(policies []*v1beta1.PlacementPolicy) (all []workload) {
	for _, p := range policies {
		if p.Spec.ReplicaPreferences == nil {
			continue
		}
		for _, sel := range p.Spec.ResourceSelectors {
			r, _, err := c.Resolve(sel.APIVersion, sel.Kind)
			if err == nil && v1beta1.FederatedKindOf(r.GroupResource()) == nil && !slices.ContainsFunc(all, func(w workload) bool { return w.resource == r }) {
				all = append(all, workload{r, sel.Kind, "replicas", "readyReplicas"})
			}
		}
	}
	return all
}

// tolerates reports whether the taint of drain is tolerated for ever.
func tolerates(by []corev1.Toleration) bool {
	return slices.ContainsFunc(by, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && t.ToleratesTaint(klog.Background(), &plan.Taint, false)
	})
}

// pageSize is the number of objects per page.
const pageSize = 500

// listPages calls each with every object of a resource that has labels as the selector says, page by page.
func listPages(ctx context.Context, r dynamic.ResourceInterface, selector string, each func(*unstructured.Unstructured)) error {
	o := metav1.ListOptions{Limit: pageSize, LabelSelector: selector}
	for {
		page, err := r.List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// placed is what drains need of a federated object.
type placed struct {
	version         string
	namespace, name string
	placement       *v1beta1.Placement
	finished        bool
	message         string
}

func readPlaced(u *unstructured.Unstructured) *placed {
	p := &placed{version: u.GetResourceVersion(), namespace: u.GetNamespace(), name: u.GetName(), finished: v1beta1.JobEnd(u) != ""}
	p.placement = v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if is := v1beta1.ConditionOf(u, v1beta1.ConditionPropagated); is["status"] == string(metav1.ConditionFalse) {
		p.message, _ = is["message"].(string)
	}
	return p
}

// placements keeps what drains need of objects, by kind and UID: while a drain goes on all objects are looked at each
// time, and few have changed.
type placements struct {
	mu   sync.Mutex
	kept map[string]map[types.UID]*placed
}

// each calls do with each of the objects that an informer holds.
func (p *placements) each(objects []any, kind string, do func(*placed)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string]map[types.UID]*placed{}
	}
	now := make(map[types.UID]*placed, len(objects))
	for _, obj := range objects {
		about := held.About(obj)
		is := p.kept[kind][about.GetUID()]
		if is == nil || is.version != about.GetResourceVersion() {
			u := held.Object(obj)
			if u == nil {
				continue
			}
			is = readPlaced(u)
		}
		now[about.GetUID()] = is
		do(is)
	}
	p.kept[kind] = now
}

// forget drops all.
func (p *placements) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = nil
}
