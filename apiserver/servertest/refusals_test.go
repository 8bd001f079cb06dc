package servertest

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	preferences = "federation.kubernetes.io/replica-set-preferences"
	selector    = "federation.alpha.kubernetes.io/cluster-selector"
)

// replicaSet returns a valid one, except for what is inserted.
func replicaSet(annotation, value, replicas string) string {
	return `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: bad, annotations: {` + annotation + `: '` + value + `'}},
 spec: {replicas: ` + replicas + `, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`
}

func TestBadObjectsAreRefusedWithEveryFault(t *testing.T) {
	at := "metadata.annotations[" + preferences + "]"
	for name, c := range map[string]struct {
		resource, object string
		want             []string
	}{
		"negative replicas and a wrong name of a container": {"apps/v1/replicasets",
			strings.Replace(replicaSet("x", "y", "-3"), "name: c", "name: C", 1),
			[]string{"spec.replicas: Invalid value: -3", "spec.template.spec.containers[0].name"}},
		"type and port of a Service": {"/v1/services", `{apiVersion: v1, kind: Service, metadata: {name: bad}, spec: {type: Balancer, ports: [{port: 0}]}}`,
			[]string{`spec.type: Unsupported value: "Balancer"`, "spec.ports[0].port: Invalid value: 0"}},
		"preferences that are no JSON":        {"apps/v1/replicasets", replicaSet(preferences, `{`, "1"), []string{at, "must be JSON"}},
		"preferences with an unknown field":   {"apps/v1/replicasets", replicaSet(preferences, `{"rebalanc":true}`, "1"), []string{at, `unknown field "rebalanc"`}},
		"preferences with a negative weight":  {"apps/v1/replicasets", replicaSet(preferences, `{"clusters":{"east":{"weight":-1}}}`, "1"), []string{at + ".clusters[east].weight: Invalid value: -1"}},
		"preferences with more than the most": {"apps/v1/replicasets", replicaSet(preferences, `{"clusters":{"*":{"minReplicas":5,"maxReplicas":2}}}`, "1"), []string{at + ".clusters[*].minReplicas: Invalid value: 5", "maxReplicas (2)"}},
		"a selector with an unknown operator": {"apps/v1/replicasets", replicaSet(selector, `[{"key":"a","operator":"Near"}]`, "1"), []string{"metadata.annotations[" + selector + "][0].operator", `"Near"`}},
		"a Cluster with all wrong": {"federation/v1beta1/clusters", `{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: a.b}, spec: {serverAddressByClientCIDRs: [{clientCIDR: all, serverAddress: "https://x"}], secretRef: {name: A_}}}`,
			[]string{"metadata.name", "serverAddressByClientCIDRs[0].clientCIDR", "serverAddressByClientCIDRs[0].serverAddress", "spec.secretRef.name"}},
		"a Cluster with a bad taint and weight": {"federation/v1beta1/clusters", `{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: a}, spec: {dnsWeight: 2000, taints: [{key: a, effect: Sometimes}], serverAddressByClientCIDRs: [{clientCIDR: 0.0.0.0/0, serverAddress: a}]}}`,
			[]string{`spec.taints[0].effect: Unsupported value: "Sometimes": supported values: "NoExecute", "NoSchedule"`, "spec.dnsWeight: Invalid value: 2000: must be from 0 to 1000"}},
		"a policy with all wrong": {"federation/v1beta1/placementpolicies", `{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: bad}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}], failover: {failback: Later}, overrides: [{jsonPatch: [{op: add, path: /kind, value: 1}]}]}}`,
			[]string{`spec.resourceSelectors[0].kind: Invalid value: "Pod"`, "spec.failover.failback", "spec.overrides[0].jsonPatch[0].path"}},
		"a policy with an unknown field": {"federation/v1beta1/placementpolicies", `{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: bad}, spec: {resourceSelector: []}}`, []string{`unknown field "spec.resourceSelector"`}},
		"a review of nothing":            {"federation/v1beta1/failoverreviews", `{apiVersion: federation/v1beta1, kind: FailoverReview, spec: {}}`, []string{"spec: Required value: name at least one of clusters, zones or regions"}},
		"a Cluster without an address":   {"federation/v1beta1/clusters", `{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: a}}`, []string{"spec.serverAddressByClientCIDRs: Required value"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(t, c.resource, c.object)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}

// create sends an object in YAML, to the namespace default if its kind is namespaced.
func create(t *testing.T, resource, object string) error {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(object), &content); err != nil {
		t.Fatal(err)
	}
	part := strings.Split(resource, "/")
	client := shared.dynamic.Resource(schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]})
	u := &unstructured.Unstructured{Object: content}
	if part[0] == "federation" && part[2] != "placementpolicies" {
		_, err := client.Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	}
	_, err := client.Namespace("default").Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"})
	return err
}

func TestBadAnnotationIsRefusedOnUpdate(t *testing.T) {
	if err := create(t, "/v1/configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: annotated}}`); err != nil {
		t.Fatal(err)
	}
	patch := `{"metadata":{"annotations":{"` + selector + `":"{}"}}}`
	_, err := shared.kube.CoreV1().ConfigMaps("default").Patch(t.Context(), "annotated", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), selector) {
		t.Errorf("got %v, want a refusal that names the annotation", err)
	}
}
