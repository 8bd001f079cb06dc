package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/utils/ptr"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// warner warns of what is allowed but probably not meant: what works in one cluster and has another meaning in several. What it lacks it does not
// warn of, see Plugin.
type warner struct {
	policies     Policies
	clusters     func() []*v1beta1.Cluster
	count        func(object *unstructured.Unstructured) int
	tryOverrides TryOverrides
	objects      dynamic.Interface
	scalers      autoscalingclient.HorizontalPodAutoscalersGetter
}

func (p *Plugin) warner() *warner {
	return &warner{policies: p.policies, clusters: p.clusters, count: p.CountClusters, tryOverrides: p.TryOverrides, objects: p.objects, scalers: p.scalers}
}

// warn adds the warnings of a request.
func (w *warner) warn(ctx context.Context, a admission.Attributes) {
	if !byPeople(a) {
		return
	}
	var texts []string
	switch a.GetSubresource() {
	case "":
		texts = slices.Concat(w.warnOfNames(a), warnOfStaying(a), warnOfQuota(a), w.warnOfOverrides(ctx, a), w.warnOfMany(a))
		fallthrough
	case "scale":
		texts = append(texts, w.warnOfAutoscaler(ctx, a)...)
	}
	for _, text := range texts {
		warning.AddWarning(ctx, "", subjectOf(a)+": "+text)
	}
}

// subjectOf returns kind and name of the object: kubectl prints the warnings of many objects together.
func subjectOf(a admission.Attributes) string {
	kind, name := a.GetKind().Kind, a.GetName()
	if k := v1beta1.FederatedKindOf(a.GetResource().GroupResource()); k != nil {
		kind = k.Kind // not Scale
	}
	if object, err := meta.Accessor(a.GetObject()); err == nil && name == "" {
		name = cmp.Or(object.GetName(), object.GetGenerateName())
	}
	return strings.TrimSpace(kind + " " + name)
}

// byPeople reports whether the caller may read warnings, and is no part of the federation.
func byPeople(a admission.Attributes) bool {
	u := a.GetUserInfo()
	return u != nil && (!strings.HasPrefix(u.GetName(), "system:") || strings.HasPrefix(u.GetName(), "system:serviceaccount:"))
}

// warnOfNames lists the names that no cluster has, in annotations and policies that are new or changed.
func (w *warner) warnOfNames(a admission.Attributes) (unknown []string) {
	if is, ok := a.GetObject().(*v1beta1.PlacementPolicy); ok {
		if clusters := w.clusters(); len(clusters) > 0 {
			unknown = is.Spec.Unknown(clusters)
			if was, ok := a.GetOldObject().(*v1beta1.PlacementPolicy); ok {
				known := was.Spec.Unknown(clusters)
				unknown = slices.DeleteFunc(unknown, func(text string) bool { return slices.Contains(known, text) })
			}
		}
		return unknown
	}
	kind := v1beta1.FederatedKindOf(a.GetResource().GroupResource())
	if kind == nil {
		return nil
	}
	annotations, old := annotationsOf(a.GetObject()), annotationsOf(a.GetOldObject())
	path := field.NewPath("metadata", "annotations")
	if key := kind.Preferences; key != "" && annotations[key] != old[key] {
		if prefs, errs := v1beta1.ParseReplicaPreferences(annotations[key], nil); len(errs) == 0 {
			unknown = unknownOf(w, prefs.Clusters, path.Key(key))
		}
	}
	if key := v1beta1.DNSAnnotation; annotations[key] != old[key] {
		if settings, errs := v1beta1.ParseDNSSettings(annotations[key], nil); len(errs) == 0 {
			unknown = append(unknown, unknownOf(w, settings.Clusters, path.Key(key))...)
		}
	}
	return unknown
}

func unknownOf[V any](w *warner, named map[string]V, path *field.Path) []string {
	clusters := w.clusters()
	if len(clusters) == 0 {
		return nil
	}
	return v1beta1.UnknownClusters(named, path.Child("clusters"), clusters)
}

// staying are the kinds in namespaces that are for the federation itself, though people may mean the clusters.
var staying = map[schema.GroupResource]bool{
	{Resource: "resourcequotas"}: true, {Group: "rbac.authorization.k8s.io", Resource: "roles"}: true, {Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}: true,
}

// warnOfStaying warns of a new object that clusters do not get, though one might think so. Secrets and accounts in the
// federation's namespace are for the federation.
func warnOfStaying(a admission.Attributes) []string {
	resource, namespace := a.GetResource().GroupResource(), a.GetNamespace()
	policy := resource == v1beta1.PoliciesResource.GroupResource()
	switch {
	case a.GetOperation() != admission.Create || resource.Resource == "namespaces":
	case v1beta1.OwnNamespace(namespace) && (policy || v1beta1.FederatedKindOf(resource) != nil && resource.Resource != "secrets" && resource.Resource != "serviceaccounts"):
		return []string{"nothing in " + namespace + " goes to clusters"}
	case !v1beta1.OwnNamespace(namespace) && staying[resource]:
		return []string{"it stays at the federation, and counts there: clusters do not get " + resource.Resource}
	}
	return nil
}

// countedInQuotas are the keys of a quota, beside count/RESOURCE, that count objects at the federation.
var countedInQuotas = []core.ResourceName{core.ResourceConfigMaps, core.ResourceQuotas, core.ResourceSecrets, core.ResourceServices, core.ResourceServicesLoadBalancers, core.ResourceServicesNodePorts}

// warnOfQuota warns of new limits that nothing counts for: pods, and what they request, are in clusters.
func warnOfQuota(a admission.Attributes) []string {
	quota, ok := a.GetObject().(*core.ResourceQuota)
	if !ok {
		return nil
	}
	was, _ := a.GetOldObject().(*core.ResourceQuota)
	var never []string
	for name := range quota.Spec.Hard {
		if counts(name) {
			continue
		}
		if was != nil {
			if _, known := was.Spec.Hard[name]; known {
				continue
			}
		}
		never = append(never, string(name))
	}
	if len(never) == 0 {
		return nil
	}
	slices.Sort(never)
	return []string{"spec.hard: " + phrase.Some(never) + " limit nothing here: only objects at the federation count, as count/deployments.apps"}
}

// counts reports whether the federation stores what a key of a quota counts.
func counts(key core.ResourceName) bool {
	resource, byCount := strings.CutPrefix(string(key), "count/")
	return byCount && resource != "pods" && resource != "persistentvolumeclaims" || slices.Contains(countedInQuotas, key)
}

// warnOfMany warns of an object that has another meaning in several clusters than in one, if it is new or changed in that.
func (w *warner) warnOfMany(a admission.Attributes) []string {
	switch a.GetObject().(type) {
	case *batch.CronJob, *batch.Job, *apps.StatefulSet, *apps.Deployment, *apps.ReplicaSet:
		if a.GetOperation() != admission.Create {
			return nil
		}
	case *policy.PodDisruptionBudget, *autoscaling.HorizontalPodAutoscaler:
	default:
		return nil
	}
	if len(w.clusters()) < 2 || v1beta1.OwnNamespace(a.GetNamespace()) {
		return nil
	}
	policies := w.selectingPolicies(a)
	switch object := a.GetObject().(type) {
	case *batch.CronJob:
		if n := w.countClusters(a); n > 1 {
			return []string{fmt.Sprintf("it runs in each of %d clusters at each of its times: a PlacementPolicy may name one cluster", n)}
		}
	case *batch.Job:
		if object.Spec.CompletionMode != nil && *object.Spec.CompletionMode == batch.IndexedCompletion {
			return []string{"spec.completionMode: an Indexed Job is not divided: it goes whole to one cluster, and runs again from the start in another one if that is lost"}
		}
	case *policy.PodDisruptionBudget:
		if was, ok := a.GetOldObject().(*policy.PodDisruptionBudget); ok && equality.Semantic.DeepEqual(was.Spec, object.Spec) {
			return nil
		}
		n := w.countClusters(a)
		return slices.Concat(warnOfNumber("minAvailable", object.Spec.MinAvailable, n), warnOfNumber("maxUnavailable", object.Spec.MaxUnavailable, n))
	case *autoscaling.HorizontalPodAutoscaler:
		was, ok := a.GetOldObject().(*autoscaling.HorizontalPodAutoscaler)
		if ok && minReplicas(was) == minReplicas(object) && was.Spec.MaxReplicas == object.Spec.MaxReplicas {
			return nil
		}
		return warnOfRange(object, w.countClusters(a))
	case *apps.StatefulSet:
		return warnOfStateful(object, policies)
	case *apps.Deployment:
		return warnOfClaims(object.Spec.Template.Spec, policies)
	case *apps.ReplicaSet:
		return warnOfClaims(object.Spec.Template.Spec, policies)
	}
	return nil
}

// countClusters returns in how many clusters the object may be, as the scheduler has it; 0 while that is unknown.
func (w *warner) countClusters(a admission.Attributes) int {
	if w.count == nil {
		return 0
	}
	u, err := versioned(a.GetObject(), v1beta1.FederatedKindOf(a.GetResource().GroupResource()))
	if err != nil {
		return 0
	}
	return w.count(u)
}

func warnOfNumber(name string, value *intstr.IntOrString, clusters int) []string {
	if clusters < 2 || value == nil || value.Type != intstr.Int || value.IntVal == 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.%s: %d counts in each of %d clusters for the pods there, not for all together: a percentage fits any number of pods", name, value.IntVal, clusters)}
}

// warnOfRange warns of an autoscaler that each of several clusters has: together they may have several times what it says.
func warnOfRange(scaler *autoscaling.HorizontalPodAutoscaler, clusters int) []string {
	if clusters < 2 {
		return nil
	}
	least, most, n := int64(minReplicas(scaler)), int64(scaler.Spec.MaxReplicas), int64(clusters)
	return []string{fmt.Sprintf("minReplicas %d and maxReplicas %d count in each of %d clusters, together %d and %d: "+
		"a PlacementPolicy with spec.autoscaling.scope: Federation has them count for all together", least, most, n, n*least, n*most)}
}

func minReplicas(scaler *autoscaling.HorizontalPodAutoscaler) int32 {
	return ptr.Deref(scaler.Spec.MinReplicas, 1) // Kubernetes' default
}

func warnOfStateful(object *apps.StatefulSet, policies []*v1beta1.PlacementPolicy) (texts []string) {
	if object.Spec.Replicas > 1 {
		texts = append(texts, "each cluster that has replicas numbers its pods from 0: several have a pod "+object.Name+"-0")
	}
	if len(object.Spec.VolumeClaimTemplates) > 0 && !failsOver(policies) {
		return append(texts, volumesStay)
	}
	return append(texts, warnOfClaims(object.Spec.Template.Spec, policies)...)
}

// volumesStay is what to know of a workload with volumes.
const volumesStay = "its volumes stay in their cluster: it is not failed over unless a PlacementPolicy with spec.failover governs it"

func failsOver(policies []*v1beta1.PlacementPolicy) bool {
	return slices.ContainsFunc(policies, func(p *v1beta1.PlacementPolicy) bool { return p.Spec.Failover != nil })
}

// warnOfClaims warns of pods that use PersistentVolumeClaims by name, which are the clusters' own.
func warnOfClaims(pods core.PodSpec, policies []*v1beta1.PlacementPolicy) (texts []string) {
	for i, v := range pods.Volumes {
		if v.PersistentVolumeClaim != nil {
			texts = append(texts, fmt.Sprintf("spec.template.spec.volumes[%d]: PersistentVolumeClaims are the clusters' own: pods wait in a cluster that has no %s", i, v.PersistentVolumeClaim.ClaimName))
		}
	}
	if len(texts) > 0 && !failsOver(policies) {
		texts = append(texts, volumesStay)
	}
	return texts
}

// selectingPolicies returns the policies that select an object. Those that are not read yet do not count.
func (w *warner) selectingPolicies(a admission.Attributes) []*v1beta1.PlacementPolicy {
	object, ok := a.GetObject().(metav1.Object)
	if !ok || !w.policies.Synced() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.policies.In(a.GetNamespace())), func(policy *v1beta1.PlacementPolicy) bool {
		return !policy.Selects(a.GetKind().GroupKind(), object.GetName(), object.GetLabels())
	})
}

// autoscalerTimeout bounds the search for one. It is answered from the server's own cache.
const autoscalerTimeout = time.Second

// warnOfAutoscaler warns of a new number of replicas that an autoscaler is going to overrule.
func (w *warner) warnOfAutoscaler(ctx context.Context, a admission.Attributes) []string {
	kind := v1beta1.FederatedKindOf(a.GetResource().GroupResource())
	if kind == nil || kind.Preferences == "" || w.scalers == nil || a.GetOperation() != admission.Update || replicasOf(a.GetObject()) == replicasOf(a.GetOldObject()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, autoscalerTimeout)
	defer cancel()
	list, err := w.scalers.HorizontalPodAutoscalers(a.GetNamespace()).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // a warning is not worth an error
	}
	for i := range list.Items {
		if of := list.Items[i].Spec.ScaleTargetRef; of.Kind == kind.Kind && of.Name == a.GetName() {
			if v1beta1.StaysAtFederation(&list.Items[i]) {
				return []string{fmt.Sprintf("spec.replicas: HorizontalPodAutoscaler %s owns it, and changes it to what its metrics ask for", list.Items[i].Name)}
			}
			return []string{fmt.Sprintf("spec.replicas: HorizontalPodAutoscaler %s owns it: clusters keep the numbers that their autoscalers ask for", list.Items[i].Name)}
		}
	}
	return nil
}

func replicasOf(object runtime.Object) int32 {
	switch o := object.(type) {
	case *autoscaling.Scale:
		return o.Spec.Replicas
	case *apps.Deployment:
		return o.Spec.Replicas
	case *apps.ReplicaSet:
		return o.Spec.Replicas
	case *apps.StatefulSet:
		return o.Spec.Replicas
	}
	return 0
}
