package e2e

import (
	"fmt"
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// federatedKinds has a good object of each federated kind, but for its annotation.
var federatedKinds = map[string]string{
	"Namespace":               `{apiVersion: v1, kind: Namespace, metadata: {name: bad-input, %s}}`,
	"ConfigMap":               `{apiVersion: v1, kind: ConfigMap, metadata: {name: bad-input, %s}}`,
	"Secret":                  `{apiVersion: v1, kind: Secret, metadata: {name: bad-input, %s}}`,
	"Service":                 `{apiVersion: v1, kind: Service, metadata: {name: bad-input, %s}, spec: {ports: [{port: 80}]}}`,
	"ReplicaSet":              `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: bad-input, %s}, ` + badInputPods,
	"Deployment":              `{apiVersion: apps/v1, kind: Deployment, metadata: {name: bad-input, %s}, ` + badInputPods,
	"StatefulSet":             `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: bad-input, %s}, ` + badInputPods,
	"DaemonSet":               `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: bad-input, %s}, ` + badInputPods,
	"Job":                     `{apiVersion: batch/v1, kind: Job, metadata: {name: bad-input, %s}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`,
	"CronJob":                 `{apiVersion: batch/v1, kind: CronJob, metadata: {name: bad-input, %s}, spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`,
	"HorizontalPodAutoscaler": `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: bad-input, %s}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`,
	"PodDisruptionBudget":     `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: bad-input, %s}, spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}}`,
	"NetworkPolicy":           `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: bad-input, %s}, spec: {podSelector: {}}}`,
	"ServiceAccount":          `{apiVersion: v1, kind: ServiceAccount, metadata: {name: bad-input, %s}}`,
	"Ingress":                 `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: bad-input, %s}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
}

const badInputPods = `spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`

// badPreferences and badSelectors are values of annotations, and what kubectl says of them after
// metadata.annotations[KEY]: the path inside the JSON, the value, what is allowed.
var (
	badPreferences = map[string]string{
		`{`:                                   `: Invalid value: "{": must be JSON of the documented form: unexpected end of JSON input`,
		`[]`:                                  `: Invalid value: "[]": must be an object {...}, not a JSON array`,
		`{"rebalanced": true}`:                `unknown field "rebalanced"`,
		`{"clusters": {"a": {"wieght": 1}}}`:  `unknown field "clusters.a.wieght"`,
		`{"clusters": {"a": {"weight": -1}}}`: `.clusters[a].weight: Invalid value: -1: must be from 0 to 2147483647`,
		`{"clusters": {"*": {"minReplicas": -2}}}`:                  `.clusters[*].minReplicas: Invalid value: -2: must be from 0 to`,
		`{"clusters": {"a": {"maxReplicas": 3000000000}}}`:          `.clusters[a].maxReplicas: Invalid value: 3000000000: must be from 0 to`,
		`{"clusters": {"a": {"minReplicas": 5, "maxReplicas": 2}}}`: `.clusters[a].minReplicas: Invalid value: 5: must be no more than maxReplicas (2)`,
		`{"clusters": {"a": {"weight": 1.5}}}`:                      `must be a whole number, not a JSON number 1.5`,
		`{"rebalance": "yes"}`:                                      `.rebalance: Invalid value`,
		`{"clusters": {"a": {}}, "clusters": {}}`:                   `duplicate field "clusters"`,
		`{} {}`: `must be JSON of the documented form`,
	}
	badSelectors = map[string]string{
		`{}`:                                    `: Invalid value: "{}": must be a list [...], not a JSON object`,
		`[{"key": "tier", "operator": "Near"}]`: `[0].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists"`,
		`[{"key": "tier", "operator": "Exists"}, {"key": "t", "operator": "Exists", "value": 1}]`: `unknown field "[1].value"`,
		`[{"key": "tier", "operator": "In"}]`:                                                     `[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty`,
		`[{"key": "tier", "operator": "Exists", "values": ["a"]}]`:                                `[0].values: Invalid value: ["a"]: values set must be empty`,
		`[{"key": "tier", "operator": "Gt", "values": ["many"]}]`:                                 `[0].values[0]: Invalid value: "many"`,
		`[{"key": "not a key", "operator": "Exists"}]`:                                            `[0].key: Invalid value: "not a key"`,
		`[{"operator": "Exists"}]`:                                                                `[0].key: Invalid value: ""`,
	}
)

func TestKubectlSaysWhatIsWrongWithAnAnnotation(t *testing.T) {
	bad := map[string]map[string]string{
		v1beta1.ReplicaSetPreferencesAnnotation: badPreferences, v1beta1.DeploymentPreferencesAnnotation: badPreferences,
		v1beta1.StatefulSetPreferencesAnnotation: badPreferences, v1beta1.JobPreferencesAnnotation: badPreferences, v1beta1.ClusterSelectorAnnotation: badSelectors,
	}
	for key, values := range bad {
		for value, want := range values {
			kind := "ReplicaSet"
			objectSays(t, fmt.Sprintf(federatedKinds[kind], annotation(key, value)), kind, "metadata.annotations["+key+"]", want)
		}
	}
}

func TestEveryFederatedKindIsChecked(t *testing.T) {
	for kind, object := range federatedKinds {
		for key, value := range map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{`, v1beta1.ClusterSelectorAnnotation: `{}`} {
			objectSays(t, fmt.Sprintf(object, annotation(key, value)), kind, "metadata.annotations["+key+"]", ": Invalid value")
		}
	}
}

func TestKubectlSaysWhatIsWrongWithACluster(t *testing.T) {
	const cluster = `{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: %s}, spec: {serverAddressByClientCIDRs: [%s]%s}}`
	const good = `{clientCIDR: 0.0.0.0/0, serverAddress: "10.0.0.5:6443"}`
	at := "spec.serverAddressByClientCIDRs"
	for _, c := range []struct{ name, addresses, more, want string }{
		{"East_A", good, "", `metadata.name: Invalid value: "East_A": a lowercase RFC 1123 label`},
		{"east.a", good, "", `metadata.name: Invalid value: "east.a"`},
		{"a", "", "", at + ": Required value: at least one address"},
		{"a", `{clientCIDR: 10.0.0.0, serverAddress: a}`, "", at + `[0].clientCIDR: Invalid value: "10.0.0.0": must be a network in CIDR notation`},
		{"a", `{clientCIDR: 10.0.0.0/33, serverAddress: a}`, "", at + `[0].clientCIDR: Invalid value: "10.0.0.0/33"`},
		{"a", `{clientCIDR: 0.0.0.0/0}`, "", at + "[0].serverAddress"},
		{"a", `{clientCIDR: 0.0.0.0/0, serverAddress: "https://a:6443"}`, "", at + `[0].serverAddress: Invalid value: "https://a:6443": must be host, host:port, IP or IP:port, without a scheme, path or zone`},
		{"a", `{clientCIDR: 0.0.0.0/0, serverAddress: "a:70000"}`, "", "the port must be a number from 1 to 65535"},
		{"a", good + "," + good, "", at + `[1].clientCIDR: Duplicate value: "0.0.0.0/0"`},
		{"a", good, `, secretRef: {}`, "spec.secretRef.name: Required value: name a Secret in the namespace federation-system"},
		{"a", good, `, secretRef: {name: No_Name}`, `spec.secretRef.name: Invalid value: "No_Name"`},
		{"a", good, `, secret: a`, "spec.secret"},
		{"a", good, `, dnsWeight: 1001`, "spec.dnsWeight: Invalid value: 1001: must be from 0 to 1000"},
		{"a", good, `, taints: [{key: a, effect: PreferNoSchedule}]`, `spec.taints[0].effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule"`},
		{"a", good, `, taints: [{effect: NoSchedule}]`, "spec.taints[0].key: Required value"},
		{"a", good, `, taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]`, `spec.taints[1]: Duplicate value: "a:NoSchedule"`},
	} {
		objectSays(t, fmt.Sprintf(cluster, c.name, c.addresses, c.more), "Cluster", c.want)
	}
}

func TestKubectlSaysWhatIsWrongWithAPolicy(t *testing.T) {
	const policy = `{apiVersion: federation/v1beta1, kind: PlacementPolicy, metadata: {name: bad-input}, spec: {%s}}`
	const good = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], `
	for spec, want := range map[string]string{
		`priority: 1`:           `spec.resourceSelectors`,
		`resourceSelectors: []`: `spec.resourceSelectors: Required value: select at least one kind of objects`,
		`resourceSelectors: [{apiVersion: v1, kind: Pod}]`:                                    `spec.resourceSelectors[0].kind: Invalid value: "Pod": cannot be spread: pods are made in the clusters`,
		`resourceSelectors: [{apiVersion: v1, kind: Node}]`:                                   `spec.resourceSelectors[0].kind: Invalid value: "Node": cannot be spread`,
		`resourceSelectors: [{apiVersion: apps/v1, kind: Deploymnet}]`:                        `kind: Unsupported value: "Deploymnet": supported values: "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"`,
		`resourceSelectors: [{apiVersion: apps/v2, kind: Deployment}]`:                        `apiVersion: Unsupported value: "apps/v2": supported values: "apps/v1"`,
		`resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}]`:         `kinds of this group cannot be spread`,
		good + `clusters: {names: [East_A]}`:                                                  `spec.clusters.names[0]: Invalid value: "East_A"`,
		good + `clusters: {labelSelector: {matchExpressions: [{key: tier, operator: Near}]}}`: `spec.clusters.labelSelector.matchExpressions[0].operator: Invalid value: "Near"`,
		good + `spreadConstraints: [{spreadBy: Rack, minGroups: 2}]`:                          `spec.spreadConstraints[0].spreadBy: Unsupported value: "Rack": supported values: "Cluster", "Region", "Zone"`,
		good + `spreadConstraints: [{spreadBy: Zone, minGroups: 3, maxGroups: 2}]`:            `spec.spreadConstraints[0].maxGroups: Invalid value: 2: must be no less than minGroups`,
		good + `replicaPreferences: {clusters: {a: {weight: -1}}}`:                            `spec.replicaPreferences.clusters[a].weight: Invalid value: -1: must be from 0 to 2147483647`,
		good + `tolerations: [{key: a, effect: Never}]`:                                       `spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule"`,
		good + `failover: {gracePeriodSeconds: -1}`:                                           `spec.failover.gracePeriodSeconds: Invalid value: -1: must be from 0 to 86400`,
		good + `failover: {failback: Soon}`:                                                   `spec.failover.failback: Unsupported value: "Soon": supported values: "Immediate", "Never", "Staged"`,
		good + `rollout: {strategy: Canary}`:                                                  `spec.rollout.strategy: Unsupported value: "Canary": supported values: "AllAtOnce", "OneClusterAtATime"`,
		good + `overrides: [{jsonPatch: [{op: change, path: /spec/a, value: 1}]}]`:            `spec.overrides[0].jsonPatch[0].op: Unsupported value: "change"`,
		good + `overrides: [{jsonPatch: [{op: add, path: spec.a, value: 1}]}]`:                `spec.overrides[0].jsonPatch[0].path: Invalid value: "spec.a": must be a JSON pointer: it begins with /`,
		good + `overrides: [{jsonPatch: [{op: add, path: /spec/a}]}]`:                         `spec.overrides[0].jsonPatch[0].value: Required value`,
		good + `overrides: [{jsonPatch: [{op: remove, path: /metadata/finalizers}]}]`:         `spec.overrides[0].jsonPatch[0].path: Invalid value: "/metadata/finalizers": may not be changed`,
		good + `priorities: 1`: `spec.priorities`,
	} {
		objectSays(t, fmt.Sprintf(policy, spec), "PlacementPolicy", want)
	}
}

func TestKubectlSaysWhatIsWrongWithAReview(t *testing.T) {
	const review = `{apiVersion: federation/v1beta1, kind: FailoverReview, metadata: {generateName: bad-input-}, spec: {%s}}`
	for spec, want := range map[string]string{
		``:                      `spec: Required value: name at least one of clusters, zones or regions`,
		`clusters: [East_A]`:    `spec.clusters[0]: Invalid value: "East_A"`,
		`zones: [a/b/c]`:        `spec.zones[0]: Invalid value: "a/b/c": must be ZONE or REGION/ZONE`,
		`regions: [east, east]`: `spec.regions[1]: Duplicate value: "east"`,
	} {
		out, err := s.kubectl(t, "---\n"+fmt.Sprintf(review, spec), "create", "-f", "-")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: the answer lacks %q: %v, %s", spec, want, err, out)
		}
	}
}

func annotation(key, value string) string {
	return "annotations: {" + key + ": '" + value + "'}"
}

// objectSays applies an object from the client's and from the server's side, and wants all of the texts
// in both answers. kubectl takes what begins with a brace for JSON, so a line goes before it.
func objectSays(t *testing.T, object, kind string, want ...string) {
	t.Helper()
	for _, how := range []string{"--server-side=false", "--server-side"} {
		out, err := s.kubectl(t, "---\n"+object, "apply", how, "-f", "-")
		if err == nil {
			t.Errorf("%s: %s was accepted: %s", how, object, out)
		}
		for _, text := range append(want, kind) {
			if !strings.Contains(out, text) && !strings.Contains(out, strings.ReplaceAll(text, `"`, `\"`)) {
				t.Errorf("%s: %s\nthe answer lacks %q: %s", how, object, text, out)
			}
		}
		if len(strings.Split(strings.TrimSpace(out), "\n")) > 3 {
			t.Errorf("%s: the answer is long: %s", how, out)
		}
	}
}
