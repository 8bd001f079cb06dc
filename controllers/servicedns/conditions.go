package servicedns

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/resourceversion"
	"federation/controllers/servicedns/plan"
)

// FieldManager owns the conditions DNSPublished of Services and DNSIncomplete of Clusters.
const FieldManager = "federation-dns"

// conditions reports the DNS state on Services, Ingresses and Clusters. All processes track it; the leader writes it.
type conditions struct {
	client   dynamic.Interface
	recorder record.EventRecorder
	stores   *stores
	queue    workqueue.TypedRateLimitingInterface[string]
	limit    flowcontrol.RateLimiter

	mu sync.Mutex
	// leads: this process writes. planned: all objects have been planned once.
	leads, planned bool
	// plans and clusters are the latest plans, by key and by name.
	plans    map[string]plan.Plan
	clusters map[string]plan.Cluster
	// invalid has, by cluster, why an object has no names there, by the object's key.
	invalid map[string]map[string]string
	// providers has, by provider, the objects whose records it lacks, with the reason, by key.
	providers map[string]map[string]plan.Reason
	// unread are the providers whose zone has not been read yet.
	unread map[string]bool
	// written are the versions of the last writes, by key. An older cached object is stale.
	written map[string]resourceversion.Left
	// told are the last events of Ingresses, by key.
	told map[string]plan.Condition
}

func newConditions(o Options, s *stores) *conditions {
	unread := map[string]bool{}
	for _, p := range o.Providers {
		unread[p.Name] = true
	}
	return &conditions{
		unread: unread, written: map[string]resourceversion.Left{},
		client: o.Client, recorder: o.Recorder, stores: s, limit: flowcontrol.NewTokenBucketRateLimiter(conditionWrites, conditionBurst),
		plans: map[string]plan.Plan{}, clusters: map[string]plan.Cluster{}, invalid: map[string]map[string]string{},
		providers: map[string]map[string]plan.Reason{}, told: map[string]plan.Condition{},
	}
}

// setPlan takes in the plan of an object.
func (c *conditions) setPlan(key string, p plan.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		return // nobody ever reads it
	}
	before := c.plans[key]
	if c.plans[key] = p; len(p.Records)+len(p.Reasons) == 0 {
		delete(c.plans, key)
	}
	c.setMisnamed(key, before.Reasons, false)
	c.setMisnamed(key, p.Reasons, true)
	c.enqueue(key)
}

// setMisnamed records whether an object lacks names at clusters.
func (c *conditions) setMisnamed(key string, reasons []plan.Reason, is bool) {
	for _, r := range reasons {
		if r.Code != plan.NameInvalid || r.Cluster == "" {
			continue
		}
		if c.invalid[r.Cluster] == nil {
			c.invalid[r.Cluster] = map[string]string{}
		}
		if delete(c.invalid[r.Cluster], key); is {
			c.invalid[r.Cluster][key] = key + ": " + r.Message
		}
		c.enqueue(clusterKey(r.Cluster))
	}
}

// setClusters takes in all Clusters.
func (c *conditions) setClusters(all []plan.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters = make(map[string]plan.Cluster, len(all))
	for _, one := range all {
		c.clusters[one.Name] = one
		c.enqueue(clusterKey(one.Name))
	}
	maps.DeleteFunc(c.invalid, func(name string, _ map[string]string) bool { return c.clusters[name].Name == "" })
}

// setProvider takes in a provider's state.
func (c *conditions) setProvider(s ProviderState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.providers[s.Provider] {
		c.enqueue(key)
	}
	for key := range s.Objects {
		c.enqueue(key)
	}
	c.providers[s.Provider] = s.Objects
	if c.unread[s.Provider] && !s.Unread {
		delete(c.unread, s.Provider)
		c.addAll()
	}
}

// handlePlanned is called when all objects have been planned.
func (c *conditions) handlePlanned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.planned {
		c.planned = true
		c.addAll()
	}
}

// handleCluster handles a Cluster whose condition was changed by somebody else.
func (c *conditions) handleCluster(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(clusterKey(name))
}

func clusterKey(name string) string { return "Cluster " + name }

// objectHandler returns a handler of objects whose condition was changed by somebody else.
func (c *conditions) objectHandler(kind string) func(key string) {
	return func(key string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.enqueue(kind + " " + key)
	}
}

func (c *conditions) enqueue(key string) {
	if c.leads && c.planned {
		c.queue.Add(key)
	}
}

func (c *conditions) addAll() {
	for _, informer := range c.stores.objects {
		for _, obj := range informer.GetStore().List() {
			u, _ := obj.(*unstructured.Unstructured)
			c.enqueue(u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName())
		}
	}
	for name := range c.clusters {
		c.enqueue(clusterKey(name))
	}
}
