package housekeeping

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/pkg/quota/v1/install"

	"federation/controllers/supervisor"
)

// countedByName are the resources that a quota may also name without "count/", as Kubernetes always had it.
var countedByName = map[string]corev1.ResourceName{
	"configmaps":     corev1.ResourceConfigMaps,
	"secrets":        corev1.ResourceSecrets,
	"resourcequotas": corev1.ResourceQuotas,
}

// recount is the period of counting all quotas, in addition to each deletion. That count uses the known state of the
// quota: if it is older than admission's last write, the count seems right, and what was deleted would still count
// until the next one. It reads only caches, and writes only wrong numbers.
const recount = 20 * time.Second

// evaluators returns Kubernetes' own, except for Pods, volume claims and devices, which are not stored here: their
// caches would never sync. Other kinds count as count/RESOURCE.GROUP.
func (s *set) evaluators() []quota.Evaluator {
	lister := generic.ListerFuncForResourceFunc(s.informers.ForResource)
	all := []quota.Evaluator{core.NewServiceEvaluator(lister)}
	for name, alias := range countedByName {
		r := corev1.SchemeGroupVersion.WithResource(name)
		all = append(all, generic.NewObjectCountEvaluator(r.GroupResource(), generic.ListResourceUsingListerFunc(lister, r), alias))
	}
	return all
}

// quotas keeps the status of ResourceQuotas, without which admission enforces none of them.
func (s *set) quotas(ctx context.Context) (func(context.Context), error) {
	discover := s.kube.Discovery().ServerPreferredNamespacedResources
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               s.kube.CoreV1(),
		ResourceQuotaInformer:     s.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(recount),
		Registry:                  generic.NewRegistry(s.evaluators()),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      func() map[schema.GroupResource]struct{} { return install.DefaultIgnoredResources() },
		InformersStarted:          s.started,
		InformerFactory:           s.objects,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		UpdateFilter:              install.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		go supervisor.Keep(ctx, "housekeeping", func(ctx context.Context) { c.Sync(ctx, discover, discoverEvery) })
		c.Run(ctx, 5)
	}, nil
}
