package propagation

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

var (
	placedDesc = prometheus.NewDesc("federation_object_spec_replicas",
		"Replicas of a Deployment, ReplicaSet or StatefulSet that are placed in a cluster. With --object-metrics only.", []string{"kind", "namespace", "name", "cluster"}, nil)
	readyDesc = prometheus.NewDesc("federation_object_status_replicas_ready",
		"Replicas of a Deployment, ReplicaSet or StatefulSet that are ready in a cluster; nothing while the cluster cannot be asked. With --object-metrics only.", []string{"kind", "namespace", "name", "cluster"}, nil)
	omittedDesc = prometheus.NewDesc("federation_object_metrics_omitted",
		"Objects of this process that have no such metrics, because there would be more than --object-metrics-limit. With --object-metrics only.", nil, nil)
)

// objectMetrics are the metrics of a controller's objects, made for each scrape: at most limit time series, which
// namespaces share.
type objectMetrics struct {
	*view
	*members
	limit int
	one   sync.Mutex // scrapes take turns: each costs as much as there are objects
}

// served registers the metrics until what it returns is called.
func (o *objectMetrics) served() (end func()) {
	if o.limit <= 0 || legacyregistry.Registerer().Register(o) != nil {
		return func() {}
	}
	return func() { legacyregistry.Registerer().Unregister(o) }
}

// Describe implements prometheus.Collector.
func (o *objectMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- placedDesc
	to <- readyDesc
	to <- omittedDesc
}

// Collect implements prometheus.Collector.
func (o *objectMetrics) Collect(to chan<- prometheus.Metric) {
	o.one.Lock()
	defer o.one.Unlock()
	engaged := o.all()
	slices.SortFunc(engaged, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	omitted := plan.ShareLimit(o.limit, o.byNamespace(), func(k key, room int) int {
		series := o.seriesOf(k, engaged)
		if len(series) <= room {
			for _, one := range series {
				to <- one
			}
		}
		return len(series)
	})
	to <- prometheus.MustNewConstMetric(omittedDesc, prometheus.GaugeValue, float64(omitted))
}

// byNamespace returns the objects that have replicas.
func (o *objectMetrics) byNamespace() map[string][]key {
	all := map[string][]key{}
	for i := range o.Kinds {
		if !o.Kinds[i].Paced {
			continue
		}
		for _, k := range o.objectsOf(&o.Kinds[i]) {
			all[k.Namespace] = append(all[k.Namespace], k)
		}
	}
	return all
}

// seriesOf returns the time series of one object.
func (o *objectMetrics) seriesOf(k key, engaged []*member) (series []prometheus.Metric) {
	obj := o.packedObject(k)
	if obj == nil {
		return nil
	}
	federated := held.Object(obj)
	source := plan.Source{Kind: k.Kind, Object: federated, Placement: plan.Read(federated)}
	add := func(desc *prometheus.Desc, cluster string, n int64) {
		series = append(series, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), k.Kind.Kind, k.Namespace, k.Name, cluster))
	}
	for _, one := range plan.ReplicasOf(source, o.copiesIn(engaged, k, source)) {
		add(placedDesc, one.Cluster, one.Placed)
		if one.Known {
			add(readyDesc, one.Cluster, one.Ready)
		}
	}
	return series
}

// copiesIn returns what is known of an object in each cluster that its placement names, or where a copy of it is.
func (o *objectMetrics) copiesIn(engaged []*member, k key, source plan.Source) (copies []plan.Copy) {
	reached := map[string]bool{}
	for _, m := range engaged {
		reached[m.Name] = true
		_, there, _ := held.By(m.Informers(k.Kind.Resource)).GetStore().GetByKey(k.StoreKey())
		if there || source.Share(m.Name) > 0 {
			one, _ := m.copyOf(k)
			copies = append(copies, one)
		}
	}
	for _, cluster := range o.clusters() {
		if name := cluster.GetName(); !reached[name] && source.Share(name) > 0 {
			copies = append(copies, plan.Copy{Cluster: name, State: plan.Unreachable})
		}
	}
	return copies
}
