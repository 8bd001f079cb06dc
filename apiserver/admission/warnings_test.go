package admission

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	"federation/scheduler"
)

// TestAdmissionWarnings: what is allowed and hardly meant is said to the user who writes it, once.
func TestAdmissionWarnings(t *testing.T) {
	meta := func(namespace string, annotations ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: "web", Namespace: namespace, Annotations: map[string]string{}}
		for i := 0; i+1 < len(annotations); i += 2 {
			m.Annotations[annotations[i]] = annotations[i+1]
		}
		return m
	}
	indexed, five, percent := batch.IndexedCompletion, intstr.FromInt32(5), intstr.FromString("50%")
	one := selecting("batch/v1", "CronJob", nil)
	one.Namespace, one.Spec.Clusters = "shop", &v1beta1.ClusterAffinity{Names: []string{"east-a"}}
	two := selecting("batch/v1", "CronJob", nil)
	two.Namespace, two.Spec.Clusters = "shop", &v1beta1.ClusterAffinity{Names: []string{"east-a", "west-a"}}
	failover := selecting("apps/v1", "StatefulSet", nil)
	failover.Spec.Failover = &v1beta1.FailoverPolicy{}
	stateful := func() *apps.StatefulSet {
		return &apps.StatefulSet{ObjectMeta: meta("shop"), Spec: apps.StatefulSetSpec{Replicas: 2, VolumeClaimTemplates: make([]core.PersistentVolumeClaim, 1)}}
	}
	quota := func(keys ...core.ResourceName) *core.ResourceQuota {
		q := &core.ResourceQuota{ObjectMeta: meta("shop"), Spec: core.ResourceQuotaSpec{Hard: core.ResourceList{}}}
		for _, key := range keys {
			q.Spec.Hard[key] = resource.MustParse("1")
		}
		return q
	}
	scaler := func(most int32) *autoscaling.HorizontalPodAutoscaler {
		return &autoscaling.HorizontalPodAutoscaler{ObjectMeta: meta("shop"), Spec: autoscaling.HorizontalPodAutoscalerSpec{MaxReplicas: most}}
	}
	whole := selecting("autoscaling/v2", "HorizontalPodAutoscaler", nil)
	whole.Namespace, whole.Spec.Autoscaling = "shop", &v1beta1.AutoscalingPolicy{Scope: v1beta1.AutoscalingScopeFederation}
	mars := selecting("v1", "ConfigMap", nil)
	mars.ObjectMeta, mars.Spec.Clusters = meta("shop"), &v1beta1.ClusterAffinity{Names: []string{"mars", "east-a"}}
	prefers := `{"clusters":{"mars":{"weight":1},"east-a":{"weight":1},"*":{"weight":1}}}`
	for name, c := range map[string]struct {
		resource    string
		object, old runtime.Object
		by          string
		policies    policies
		want        []string // parts of the warnings, in order
	}{
		"unknown cluster in preferences": {"apps/v1/deployments", &apps.Deployment{ObjectMeta: meta("shop", v1beta1.DeploymentPreferencesAnnotation, prefers)}, nil, "", nil,
			[]string{`deployment-preferences].clusters[mars]: no cluster "mars" has joined`}},
		"it was there": {"apps/v1/deployments", &apps.Deployment{ObjectMeta: meta("shop", v1beta1.DeploymentPreferencesAnnotation, prefers)},
			&apps.Deployment{ObjectMeta: meta("shop", v1beta1.DeploymentPreferencesAnnotation, prefers)}, "", nil, nil},
		"unknown cluster in dns": {"v1/services", &core.Service{ObjectMeta: meta("shop", v1beta1.DNSAnnotation, `{"clusters":{"mars":{"weight":1}}}`)}, nil, "", nil,
			[]string{`federation.kubernetes.io/dns].clusters[mars]: no cluster "mars" has joined`}},
		"unknown cluster in a policy": {"federation/v1beta1/placementpolicies", mars, nil, "", nil, []string{`spec.clusters.names[0]: no cluster "mars" has joined`}},
		"a policy where nothing is federated": {"federation/v1beta1/placementpolicies", &v1beta1.PlacementPolicy{ObjectMeta: meta(v1beta1.FederationNamespace)}, nil, "", nil,
			[]string{"nothing in federation-system goes to clusters"}},
		"CronJob":                      {"batch/v1/cronjobs", &batch.CronJob{ObjectMeta: meta("shop")}, nil, "", nil, []string{"runs in each of 2 clusters"}},
		"CronJob for one cluster":      {"batch/v1/cronjobs", &batch.CronJob{ObjectMeta: meta("shop")}, nil, "", policies{one}, nil},
		"CronJob for some clusters":    {"batch/v1/cronjobs", &batch.CronJob{ObjectMeta: meta("shop")}, nil, "", policies{two}, []string{"runs in each of 2 clusters"}},
		"CronJob, by annotation":       {"batch/v1/cronjobs", &batch.CronJob{ObjectMeta: meta("shop", v1beta1.ClusterSelectorAnnotation, `[{"key":"tier","operator":"Exists"}]`)}, nil, "", nil, nil},
		"CronJob, changed":             {"batch/v1/cronjobs", &batch.CronJob{ObjectMeta: meta("shop")}, &batch.CronJob{ObjectMeta: meta("shop")}, "", nil, nil},
		"Indexed Job":                  {"batch/v1/jobs", &batch.Job{ObjectMeta: meta("shop"), Spec: batch.JobSpec{CompletionMode: &indexed}}, nil, "", nil, []string{"goes whole to one cluster"}},
		"Job":                          {"batch/v1/jobs", &batch.Job{ObjectMeta: meta("shop")}, nil, "", nil, nil},
		"PodDisruptionBudget, number":  {"policy/v1/poddisruptionbudgets", &policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MinAvailable: &five}}, nil, "", nil, []string{"spec.minAvailable: 5 counts in each of 2 clusters"}},
		"PodDisruptionBudget, percent": {"policy/v1/poddisruptionbudgets", &policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MinAvailable: &percent}}, nil, "", nil, nil},
		"PodDisruptionBudget, changed": {"policy/v1/poddisruptionbudgets", &policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MaxUnavailable: &five}},
			&policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MaxUnavailable: &percent}}, "", nil, []string{"spec.maxUnavailable: 5 counts in each of 2 clusters"}},
		"PodDisruptionBudget, as it was": {"policy/v1/poddisruptionbudgets", &policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MinAvailable: &five}},
			&policy.PodDisruptionBudget{ObjectMeta: meta("shop"), Spec: policy.PodDisruptionBudgetSpec{MinAvailable: &five}}, "", nil, nil},
		"HorizontalPodAutoscaler":                  {"autoscaling/v2/horizontalpodautoscalers", scaler(10), nil, "", nil, []string{"minReplicas 1 and maxReplicas 10 count in each of 2 clusters, together 2 and 20"}},
		"HorizontalPodAutoscaler for all together": {"autoscaling/v2/horizontalpodautoscalers", scaler(10), nil, "", policies{whole}, nil},
		"HorizontalPodAutoscaler, changed":         {"autoscaling/v2/horizontalpodautoscalers", scaler(10), scaler(9), "", nil, []string{"maxReplicas 10"}},
		"HorizontalPodAutoscaler, as it was":       {"autoscaling/v2/horizontalpodautoscalers", scaler(10), scaler(10), "", nil, nil},
		"Deployment with a claim": {"apps/v1/deployments", &apps.Deployment{ObjectMeta: meta("shop"), Spec: apps.DeploymentSpec{Template: core.PodTemplateSpec{Spec: core.PodSpec{Volumes: []core.Volume{
			{VolumeSource: core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}}}, nil, "", nil,
			[]string{"spec.template.spec.volumes[0]: PersistentVolumeClaims are the clusters' own: pods wait in a cluster that has no data", "not failed over"}},
		"StatefulSet":               {"apps/v1/statefulsets", stateful(), nil, "", nil, []string{"numbers its pods from 0", "not failed over"}},
		"StatefulSet with a policy": {"apps/v1/statefulsets", stateful(), nil, "", policies{failover}, []string{"numbers its pods from 0"}},
		"scaled, and autoscaled": {"apps/v1/deployments", &apps.Deployment{ObjectMeta: meta("shop"), Spec: apps.DeploymentSpec{Replicas: 17}}, &apps.Deployment{ObjectMeta: meta("shop"), Spec: apps.DeploymentSpec{Replicas: 3}}, "", nil,
			[]string{"HorizontalPodAutoscaler web-hpa"}},
		"kubectl scale": {"apps/v1/deployments/scale", &autoscaling.Scale{ObjectMeta: meta("shop"), Spec: autoscaling.ScaleSpec{Replicas: 17}}, &autoscaling.Scale{ObjectMeta: meta("shop")}, "", nil,
			[]string{"HorizontalPodAutoscaler web-hpa"}},
		"ResourceQuota": {"v1/resourcequotas", &core.ResourceQuota{ObjectMeta: meta("shop")}, nil, "", nil, []string{"stays at the federation"}},
		"ResourceQuota of pods": {"v1/resourcequotas", quota("pods", "count/pods", "requests.cpu", "limits.memory", "services", "count/deployments.apps"), nil, "", nil,
			[]string{"stays at the federation", "spec.hard: count/pods, limits.memory, pods, requests.cpu limit nothing here"}},
		"ResourceQuota of objects": {"v1/resourcequotas", quota("services", "count/deployments.apps"), nil, "", nil, []string{"stays at the federation"}},
		"ResourceQuota, changed":   {"v1/resourcequotas", quota("pods", "requests.cpu"), quota("pods"), "", nil, []string{"spec.hard: requests.cpu limit nothing here"}},
		"Role":                     {"rbac.authorization.k8s.io/v1/roles", &rbac.Role{ObjectMeta: meta("shop")}, nil, "", nil, []string{"stays at the federation"}},
		"in kube-system":           {"v1/configmaps", &core.ConfigMap{ObjectMeta: meta("kube-system")}, nil, "", nil, []string{"nothing in kube-system goes to clusters"}},
		"a credential":             {"v1/secrets", &core.Secret{ObjectMeta: meta(v1beta1.FederationNamespace)}, nil, "", nil, nil},
		"made by the server":       {"v1/configmaps", &core.ConfigMap{ObjectMeta: meta("kube-system")}, nil, "system:apiserver", nil, nil},
		"made by the federation":   {"v1/configmaps", &core.ConfigMap{ObjectMeta: meta(v1beta1.FederationNamespace)}, nil, pki.ControllersUser, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(c.resource, "/")
			resource, sub := schema.GroupVersionResource{}, ""
			if parts[len(parts)-1] == "scale" {
				parts, sub = parts[:len(parts)-1], "scale"
			}
			if len(parts) == 3 {
				resource.Group = parts[0]
				parts = parts[1:]
			}
			resource.Version, resource.Resource = parts[0], parts[1]
			kind := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: "Other"}
			if k := v1beta1.FederatedKindOf(resource.GroupResource()); k != nil {
				kind.Kind = k.Kind
			}
			operation := admission.Update
			if c.old == nil {
				operation = admission.Create
			}
			accessor := c.object.(metav1.Object)
			a := admission.NewAttributesRecord(c.object, c.old, kind, accessor.GetNamespace(), accessor.GetName(), resource, sub, operation, nil, false, &user.DefaultInfo{Name: c.by})
			p := New(c.policies, nil, nil)
			clusters := []*v1beta1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "west-a"}}}
			p.Clusters = func() []*v1beta1.Cluster { return clusters }
			p.CountClusters = func(u *unstructured.Unstructured) int {
				o, err := scheduler.Read(u)
				if err != nil {
					t.Fatal(err)
				}
				return scheduler.NewWorld(clusters, c.policies).MostClusters(&o)
			}
			p.SetExternalKubeClientSet(fake.NewClientset(&corev1.Namespace{}, &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Name: "web-hpa", Namespace: "shop"},
				Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			}))
			var got warned
			if err := p.Validate(warning.WithWarningRecorder(t.Context(), &got), a, nil); err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.want) {
				t.Fatalf("warnings %q, want %q", got, c.want)
			}
			for i, part := range c.want {
				if !strings.HasPrefix(got[i], kind.Kind+" web: ") || !strings.Contains(got[i], part) {
					t.Errorf("%q, want %q", got[i], part)
				}
			}
		})
	}
}
