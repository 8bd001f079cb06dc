package servertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// federatedObjects has one object of each federated kind.
var federatedObjects = map[string]string{
	"namespaces":               `{apiVersion: v1, kind: Namespace}`,
	"configmaps":               `{apiVersion: v1, kind: ConfigMap}`,
	"secrets":                  `{apiVersion: v1, kind: Secret}`,
	"services":                 `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`,
	"serviceaccounts":          `{apiVersion: v1, kind: ServiceAccount}`,
	"networkpolicies":          `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}, policyTypes: [Ingress]}}`,
	"poddisruptionbudgets":     `{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}}`,
	"statefulsets":             `{apiVersion: apps/v1, kind: StatefulSet, spec: {serviceName: s, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`,
	"daemonsets":               `{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`,
	"jobs":                     `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`,
	"cronjobs":                 `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`,
	"horizontalpodautoscalers": `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`,
	"replicasets":              `{apiVersion: apps/v1, kind: ReplicaSet, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`,
	"deployments":              `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`,
	"ingresses":                `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
}

// The finalizers left on a deleted object after the garbage collector's part tell the federation what to do with the
// members' copies.
func TestDeleteLeavesTheFinalizersThatSayWhatToDo(t *testing.T) {
	policies := map[string]struct {
		policy metav1.DeletionPropagation
		want   []string
	}{
		"none":       {"", []string{v1beta1.DeleteFromClustersFinalizer}}, // a client of controller-runtime names none, and no controller of Kubernetes
		"background": {metav1.DeletePropagationBackground, []string{v1beta1.DeleteFromClustersFinalizer}},
		"foreground": {metav1.DeletePropagationForeground, []string{v1beta1.DeleteFromClustersFinalizer}},
		"orphan":     {metav1.DeletePropagationOrphan, []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanMarkFinalizer}},
	}
	for _, resource := range v1beta1.FederatedResources {
		for name, c := range policies {
			t.Run(resource.Resource+"/"+name, func(t *testing.T) {
				t.Parallel()
				client := dynamic.ResourceInterface(shared.dynamic.Resource(resource).Namespace("default"))
				if resource.Resource == "namespaces" {
					client = shared.dynamic.Resource(resource)
				}
				object := newObject(t, federatedObjects[resource.Resource], "delete-"+name)
				if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := client.Delete(t.Context(), object.GetName(), deleteBy(c.policy)); err != nil {
					t.Fatal(err)
				}
				settle(t, client, object.GetName(), c.want)
				release(t, client, object.GetName())
			})
		}
	}
}

// deleteBy names a propagation policy; "": none.
func deleteBy(policy metav1.DeletionPropagation) (o metav1.DeleteOptions) {
	if policy != "" {
		o.PropagationPolicy = &policy
	}
	return o
}

func TestDeleteOfACollection(t *testing.T) {
	maps := shared.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	object := newObject(t, federatedObjects["configmaps"], "one-of-many")
	object.SetLabels(map[string]string{"collection": "all"})
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "collection=all"}); err != nil {
		t.Fatal(err)
	}
	settle(t, maps, "one-of-many", []string{v1beta1.DeleteFromClustersFinalizer})
	release(t, maps, "one-of-many")
}

// The garbage collector deletes, as "orphan", what still has that finalizer, which every federated object has: its
// copies must go nevertheless.
func TestWhatTheGarbageCollectorDeletesLeavesNoCopies(t *testing.T) {
	maps := shared.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	owner, err := maps.Create(t.Context(), newObject(t, federatedObjects["configmaps"], "owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := newObject(t, federatedObjects["configmaps"], "owned")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID()}})
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	background := metav1.DeletePropagationBackground
	if err := maps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	release(t, maps, "owner")
	settle(t, maps, "owned", []string{v1beta1.DeleteFromClustersFinalizer})
	release(t, maps, "owned")
}

func TestWhatIsInANamespaceSharesItsFate(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation][]string{
		metav1.DeletePropagationBackground: {v1beta1.DeleteFromClustersFinalizer},
		metav1.DeletePropagationOrphan:     {v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanMarkFinalizer},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel() // the namespace controller waits for seconds
			namespaceWithContent(t, policy, want)
		})
	}
}

// namespaceWithContent deletes a namespace and checks what happens to an object in it.
func namespaceWithContent(t *testing.T, policy metav1.DeletionPropagation, want []string) {
	namespaces := shared.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	name := "fate-" + strings.ToLower(string(policy))
	if _, err := namespaces.Create(t.Context(), newObject(t, federatedObjects["namespaces"], name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := shared.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(name)
	if _, err := maps.Create(t.Context(), newObject(t, federatedObjects["configmaps"], "inside"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	settle(t, maps, "inside", want)
	release(t, maps, "inside")
	release(t, namespaces, name)
}

func newObject(t *testing.T, content, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(content), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetName(name)
	return u
}

// settle waits until the object is marked as deleted and has these finalizers and no other.
func settle(t *testing.T, client dynamic.ResourceInterface, name string, want []string) {
	t.Helper()
	var last []string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = got.GetFinalizers()
		return got.GetDeletionTimestamp() != nil && slices.Equal(last, want), nil
	})
	if err != nil {
		t.Fatalf("%v; last finalizers %s, want %s", err, strings.Join(last, ", "), strings.Join(want, ", "))
	}
}

// release takes the finalizers off, as the federation does, and waits for the end of the object.
func release(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return errors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("%s is still there without finalizers: %v", name, err)
	}
}
