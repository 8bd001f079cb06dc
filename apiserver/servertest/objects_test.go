package servertest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestNewObjectsHaveTheFinalizersAndOwnOnesHaveNot(t *testing.T) {
	want := []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "finalizers-"}}
	for namespace, finalizers := range map[string][]string{"default": want, v1beta1.FederationNamespace: nil} {
		c, err := shared.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Finalizers, finalizers) {
			t.Errorf("in %s: finalizers %v, want %v", namespace, c.Finalizers, finalizers)
		}
	}
}

func TestServiceIsKeptAsTheUserWroteIt(t *testing.T) {
	services := shared.kube.CoreV1().Services("default")
	s, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30080}, {Name: "b", Port: 81}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Spec.IPFamilies != nil || s.Spec.HealthCheckNodePort != 0 {
		t.Errorf("something was allocated: %+v", s.Spec)
	}
	if s.Spec.Ports[0].NodePort != 30080 || s.Spec.Ports[1].NodePort != 0 {
		t.Errorf("node ports %d, %d, want 30080 as set, and none", s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort)
	}
	s.Spec.Ports[0].NodePort = 0
	if s, err = services.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil || s.Spec.Ports[0].NodePort != 0 {
		t.Errorf("node port after its removal: %d, %v", s.Spec.Ports[0].NodePort, err)
	}
	s.Spec.ClusterIP = "10.0.0.9"
	if _, err = services.Update(t.Context(), s, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.clusterIP") {
		t.Errorf("change of clusterIP: %v, want a refusal", err)
	}
	if _, err := services.Get(t.Context(), "kubernetes", metav1.GetOptions{}); !errors.IsNotFound(err) {
		t.Errorf("service kubernetes: %v, want none", err)
	}
}

func TestStatusOfAServiceIsWritableForLoadBalancersOnly(t *testing.T) {
	services := shared.kube.CoreV1().Services("default")
	for serviceType, writable := range map[corev1.ServiceType]bool{corev1.ServiceTypeLoadBalancer: true, corev1.ServiceTypeClusterIP: false} {
		s, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{GenerateName: "status-"},
			Spec: corev1.ServiceSpec{Type: serviceType, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		s.Labels = map[string]string{"a": "b"}
		s.Spec.Ports[0].Port = 99
		s, err = services.UpdateStatus(t.Context(), s, metav1.UpdateOptions{})
		if (err == nil) != writable {
			t.Fatalf("%s: %v", serviceType, err)
		}
		if err == nil && (s.Spec.Ports[0].Port != 80 || len(s.Status.LoadBalancer.Ingress) != 1) {
			t.Errorf("%s: the status write made %+v %+v", serviceType, s.Spec.Ports, s.Status)
		}
	}
}

func TestServerSideApplyFindsConflicts(t *testing.T) {
	maps := shared.kube.CoreV1().ConfigMaps("default")
	apply := func(manager, value string) error {
		_, err := maps.Apply(t.Context(), applycorev1.ConfigMap("applied", "default").WithData(map[string]string{"k": value}), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	if err := apply("one", "1"); err != nil {
		t.Fatal(err)
	}
	if err := apply("two", "2"); !errors.IsConflict(err) || !strings.Contains(err.Error(), ".data.k") {
		t.Errorf("second manager: %v, want a conflict over .data.k", err)
	}
}

func TestScale(t *testing.T) {
	if err := create(t, "apps/v1/replicasets", strings.Replace(replicaSet("x", "y", "1"), "bad", "scaled", 1)); err != nil {
		t.Fatal(err)
	}
	sets := shared.kube.AppsV1().ReplicaSets("default")
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "scaled", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: 30}}
	if _, err := sets.UpdateScale(t.Context(), "scaled", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"replicas":1},"status":{"replicas":12}}`)
	r, err := sets.Patch(t.Context(), "scaled", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if *r.Spec.Replicas != 30 || r.Status.Replicas != 12 {
		t.Errorf("replicas %d, in status %d; want 30, 12", *r.Spec.Replicas, r.Status.Replicas)
	}
}

// Every federated kind can be updated as kubectl does it, and has a status subresource if Kubernetes has one.
func TestEveryFederatedKindIsServed(t *testing.T) {
	newNamespace(t, "served")
	withoutStatus := []string{"serviceaccounts", "configmaps", "secrets", "networkpolicies"}
	for _, kind := range v1beta1.FederatedKinds {
		resource := kind.Resource.Resource
		t.Run(resource, func(t *testing.T) {
			client := in("served", kind.Resource)
			if resource == "namespaces" {
				client = shared.dynamic.Resource(kind.Resource)
			}
			made, err := client.Create(t.Context(), newObject(t, federatedObjects[resource], "served-"+resource), metav1.CreateOptions{FieldValidation: "Strict"})
			if err != nil || made.GetKind() != kind.Kind || len(made.GetFinalizers()) < 2 {
				t.Fatalf("made %v, %v", made, err)
			}
			change := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
			if made, err = client.Patch(t.Context(), made.GetName(), types.MergePatchType, change, metav1.PatchOptions{}); err != nil || made.GetLabels()["a"] != "b" {
				t.Errorf("changed to %v, %v", made, err)
			}
			if _, err = client.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Errorf("replaced: %v", err)
			}
			_, err = client.Patch(t.Context(), made.GetName(), types.MergePatchType, []byte(`{"status":{}}`), metav1.PatchOptions{}, "status")
			if slices.Contains(withoutStatus, resource) != errors.IsNotFound(err) || err != nil && !errors.IsNotFound(err) {
				t.Errorf("its status: %v", err)
			}
		})
	}
}

// An HPA of an old client is the same object.
func TestAutoscalersHaveTwoVersions(t *testing.T) {
	old := `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old}, spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`
	if err := create(t, "autoscaling/v1/horizontalpodautoscalers", old); err != nil {
		t.Fatal(err)
	}
	a, err := shared.kube.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil || len(a.Finalizers) != 2 || len(a.Spec.Metrics) != 1 || *a.Spec.Metrics[0].Resource.Target.AverageUtilization != 50 {
		t.Errorf("as autoscaling/v2 it is %+v, %v", a, err)
	}
}

// The API fills in the selector of a Job, with a label that is the UID of the federated object: copies need their own.
func TestWhatIsGeneratedForAJob(t *testing.T) {
	if err := create(t, "batch/v1/jobs", strings.Replace(federatedObjects["jobs"], "kind: Job", "kind: Job, metadata: {name: generated}", 1)); err != nil {
		t.Fatal(err)
	}
	j, err := shared.kube.BatchV1().Jobs("default").Get(t.Context(), "generated", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := j.Spec.Selector.MatchLabels; len(got) != 1 || got["batch.kubernetes.io/controller-uid"] != string(j.UID) {
		t.Errorf("selector %v", got)
	}
	got := slices.Sorted(maps.Keys(j.Spec.Template.Labels))
	want := []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"}
	if !slices.Equal(got, want) {
		t.Errorf("labels of pods %v, want %v", got, want)
	}
}
