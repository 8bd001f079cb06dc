package drill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
	"federation/controllers/held"
	reviewplan "federation/controllers/review/plan"
	"federation/controllers/supervisor"
)

var (
	services   = corev1.SchemeGroupVersion.WithResource("services")
	ingresses  = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	budgets    = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// world is what drills are decided from, and what reviews for them are made of.
type world struct {
	plan.World
	in reviewplan.Input
}

// observe sees all that the drills need. first is the one whose turn it is.
func (c *Controller) observe(ctx context.Context, drills []*v1beta1.FailoverDrill, first *v1beta1.FailoverDrill) (w *world, err error) {
	w = &world{World: plan.World{Now: time.Now(), Clusters: c.clusters(), TTL: c.Info.DNSTTL, Leader: c.Process}}
	w.SlowWrites = c.Writes.P99(w.Now)
	if w.Stopped, err = c.stopped(ctx); err != nil {
		return nil, err
	}
	if w.Providers, err = c.providers(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(drills, func(d *v1beta1.FailoverDrill) bool { return d.Spec.Method.Isolates() && d.UnderWay() }) {
		if w.Lease, _, err = c.lease(ctx); err != nil {
			return nil, err
		}
		w.Isolated, _ = c.Isolated()
		w.DeadBehind, w.Blackholed = c.DeadBehind(), c.Blackholed()
	}
	c.budgets(w)
	w.in = reviewplan.Input{Clusters: w.Clusters, Info: &c.Info, Now: w.Now}
	wants, now := plan.WantsReview(first, c.reviews[first.UID].holds, w.Now), map[types.UID]kept{}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		for _, obj := range held.By(c.Informers(k.Resource)).GetStore().List() {
			o := c.object(obj, now)
			if o == nil {
				continue
			}
			if w.Add(o); wants {
				w.in.AddObject(held.Object(obj))
			}
		}
	}
	c.objects = now
	if wants {
		return w, c.addNames(w)
	}
	return w, c.addRecords(ctx, w, drills)
}

// addNames adds what reviews need of names.
func (c *Controller) addNames(w *world) error {
	for _, obj := range c.Informers(v1beta1.PoliciesResource).GetStore().List() {
		p := &v1beta1.PlacementPolicy{}
		if err := from(obj, p); err != nil {
			return err
		}
		w.in.Policies = append(w.in.Policies, p)
	}
	for _, r := range []schema.GroupVersionResource{services, ingresses} {
		for _, obj := range held.By(c.Informers(r)).GetStore().List() {
			if u := held.Object(obj); u != nil {
				w.in.AddNamed(u)
			}
		}
	}
	return nil
}

// addRecords adds the record sets that drills follow.
func (c *Controller) addRecords(ctx context.Context, w *world, drills []*v1beta1.FailoverDrill) error {
	var followed []plan.Record
	for _, d := range drills {
		if d.IsFinished() || d.Status.Report == nil {
			continue
		}
		for _, f := range d.Status.Report.Prediction.Followed {
			followed = append(followed, plan.Record{Name: f.Name, Type: f.Type})
		}
	}
	if len(followed) == 0 {
		return nil
	}
	var err error
	w.Records, err = c.Records(ctx, followed)
	return err
}

// reviewed is what was found of a drill, and until when that counts.
type reviewed struct {
	holds   time.Time
	agents  map[string]plan.NodeAgents
	status  *v1beta1.FailoverReviewStatus
	problem string
}

// review asks, where a drill needs it, what would happen if its scope were drained or lost.
func (c *Controller) review(ctx context.Context, d *v1beta1.FailoverDrill, w *world) {
	if !plan.WantsReview(d, time.Time{}, w.Now) {
		delete(c.reviews, d.UID)
		return
	}
	if w.Other != "" || w.Stopped != "" {
		return
	}
	if plan.WantsReview(d, c.reviews[d.UID].holds, w.Now) {
		is, begun := reviewed{}, time.Now()
		if status, errs := reviewplan.Review(w.in, plan.Spec(d)); len(errs) > 0 {
			is.problem = errs.ToAggregate().Error()
		} else {
			is.status, is.agents = &status, c.nodeAgents(ctx, d, status.Clusters)
		}
		is.holds = w.Now.Add(plan.ReviewHolds(time.Since(begun)))
		c.reviews[d.UID] = is
	}
	w.Review, w.Problem, w.NodeAgents = c.reviews[d.UID].status, c.reviews[d.UID].problem, c.reviews[d.UID].agents
}

// nodeAgents asks clusters at once, where a drill is to blackhole them, on which of their nodes an agent could.
func (c *Controller) nodeAgents(ctx context.Context, d *v1beta1.FailoverDrill, clusters []string) map[string]plan.NodeAgents {
	if d.Spec.Method != v1beta1.DrillBlackhole {
		return nil
	}
	found := make([]plan.NodeAgents, len(clusters))
	var asked sync.WaitGroup
	for i, name := range clusters {
		found[i].Problem = "its nodes and their agents were not read"
		asked.Go(supervisor.Kept(ctx, "drills", func(ctx context.Context) { found[i] = c.NodeAgents(ctx, name) }))
	}
	asked.Wait()
	agents := map[string]plan.NodeAgents{}
	for i, name := range clusters {
		agents[name] = found[i]
	}
	return agents
}

func (c *Controller) clusters() (clusters []*v1beta1.Cluster) {
	clusters, c.readClusters = listDecodedOnce(c.Informers(v1beta1.ClustersResource), c.readClusters)
	return clusters
}

// stopped is why no drill may run.
func (c *Controller) stopped(ctx context.Context) (string, error) {
	ns, err := c.Client.Resource(namespaces).Get(ctx, v1beta1.FederationNamespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return plan.StoppedBy(ns.GetAnnotations()), nil
}

// providers are how the DNS providers stand, by name.
func (c *Controller) providers(ctx context.Context) (all []v1beta1.DNSProvider, err error) {
	u, err := c.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return nil, err
	}
	return v1beta1.ReadDNSProviders(data)
}

// kept is what drills need of an object, as it was last read: while a drill goes on all objects are looked at each second, and few have changed.
type kept struct {
	version string
	object  plan.Object
}

// object reads what drills need of an object that an informer holds, again only if it has changed; nil where it is being deleted. It is noted in now.
func (c *Controller) object(obj any, now map[types.UID]kept) *plan.Object {
	about := held.About(obj)
	if about.GetDeletionTimestamp() != nil {
		return nil
	}
	is, known := c.objects[about.GetUID()]
	if !known || is.version != about.GetResourceVersion() {
		u := held.Object(obj)
		if u == nil {
			return nil
		}
		is = kept{about.GetResourceVersion(), plan.ReadObject(u)}
	}
	now[about.GetUID()] = is
	return &is.object
}

// budgets adds the PodDisruptionBudgets to the world.
func (c *Controller) budgets(w *world) {
	for _, obj := range held.By(c.Informers(budgets)).GetStore().List() {
		b := &policyv1.PodDisruptionBudget{}
		if from(obj, b) == nil {
			w.AddBudget(b)
		}
	}
}

// before is where the replicas of all objects were before a drill moved any, and how many had moved when this process saw that.
type before struct {
	drill  types.UID
	frozen bool
	moved0 int64
	placed map[string]map[string]int64
}

// moved are the replicas that have left a cluster since the fault of a drill: seen by this process, after those that the one before it has noted. What an
// object asks for no more has not moved.
func (b *before) moved(d *v1beta1.FailoverDrill, objects []plan.Object) (n int64) {
	faulty := d.Status.Report != nil
	if !d.UnderWay() {
		*b = before{}
		return 0
	}
	if b.drill != d.UID || !b.frozen {
		*b = before{drill: d.UID, frozen: faulty, placed: make(map[string]map[string]int64, len(objects))}
		if faulty {
			b.moved0 = d.Status.Report.Prediction.Moved
		}
		for i := range objects {
			b.placed[objects[i].Name] = objects[i].Placed
		}
		return b.moved0
	}
	for i := range objects {
		var left, was, is int64
		for cluster, replicas := range b.placed[objects[i].Name] {
			was += replicas
			left += max(0, replicas-objects[i].Placed[cluster])
		}
		for _, replicas := range objects[i].Placed {
			is += replicas
		}
		n += max(0, left-max(0, was-is))
	}
	return b.moved0 + n
}

// from reads an object of an informer's store.
func from(obj any, into any) error {
	u := held.Object(obj)
	if u == nil {
		return fmt.Errorf("a %T is no object", obj)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}
