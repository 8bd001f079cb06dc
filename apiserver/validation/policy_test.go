package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

const goodSelector = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`

func policy(t *testing.T, spec string) *v1beta1.PlacementPolicy {
	t.Helper()
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "gold", Namespace: "shop"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return p
}

func TestGoodPolicies(t *testing.T) {
	for _, spec := range []string{
		goodSelector,
		`resourceSelectors: [{apiVersion: v1, kind: ConfigMap, names: [a, b]}, {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, labelSelector: {matchLabels: {a: b}}}]`,
		`{resourceSelectors: [{apiVersion: example.com/v1, kind: CronTab}], overrides: [{jsonPatch: [{op: replace, path: /spec/replicas, value: 3}]}]}`,
		`resourceSelectors: [{apiVersion: example.com/v1alpha1, kind: CronTab}, {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute}]`,
		goodSelector + `
priority: -5
clusters: {names: [east-a], labelSelector: {matchExpressions: [{key: tier, operator: In, values: [gold]}]}, zones: [a, eu-west-1b], regions: [east]}
workloadAffinity: Required
autoscaling: {scope: Federation}
spreadConstraints: [{spreadBy: Zone, minGroups: 2}, {spreadBy: Cluster, minGroups: 1, maxGroups: 3}, {spreadBy: Region, maxGroups: 1}]
replicaPreferences: {rebalance: true, clusters: {east-a: {minReplicas: 1, maxReplicas: 5, weight: 2}, "*": {weight: 1}}}
tolerations: [{operator: Exists}, {key: maintenance, value: soon, effect: NoSchedule}, {key: a.example/b, operator: Exists, effect: NoExecute}]
failover: {gracePeriodSeconds: 86400, failback: Never}
rollout: {strategy: OneClusterAtATime, order: [east-a, west-a], paused: true}
propagateReferences: true
dns: {ttlSeconds: 30, strategy: Failover, clusters: {east-a: {weight: 0}, "*": {priority: 1}}, hosts: [shop.example.com]}
overrides:
- clusters: {regions: [west]}
  jsonPatch:
  - {op: replace, path: /spec/template/spec/containers/0/image, value: "registry.west.example/web:1"}
  - {op: add, path: /metadata/annotations/example.com~1region, value: west}
  - {op: remove, path: /metadata/labels/tier}
  - {op: move, from: /spec/a, path: /spec/ab}
  - {op: copy, from: /metadata/name, path: /spec/template/metadata/labels/app}
  - {op: test, path: /kind, value: Deployment}
  - {op: test, path: /spec/replicas, value: 3}
  - {op: add, path: /spec/template/spec/tolerations/-, value: {key: a}}
`,
	} {
		if errs := ValidatePlacementPolicy(policy(t, spec)); len(errs) > 0 {
			t.Errorf("%s\n%v", spec, errs.ToAggregate())
		}
	}
}

// Each error names its field and what is allowed.
func TestFaultsOfPolicies(t *testing.T) {
	for spec, want := range map[string]string{
		goodSelector + `
dns: {ttlSeconds: 0}`: `spec.dns.ttlSeconds: Invalid value: 0: must be from 1 to 86400`,
		goodSelector + `
dns: {strategy: Random}`: `spec.dns.strategy: Unsupported value: "Random": supported values: "All", "Failover", "Nearest", "Weighted"`,
		goodSelector + `
dns: {clusters: {a: {weight: 1001}}}`: `spec.dns.clusters[a].weight: Invalid value: 1001: must be from 0 to 1000`,
		goodSelector + `
dns: {hosts: [` + strings.Repeat("a", 64) + `.example.com]}`: `aaaa" has 64 bytes: must be at most 63`,
		goodSelector + `
dns: {hosts: ["` + strings.Repeat("abcdefg.", 31) + `com"]}`: `spec.dns.hosts[0]: Too long: may not be more than 241 bytes`,
		goodSelector + `
dns: {hosts: [a.example.com, a.example.com]}`: `spec.dns.hosts[1]: Duplicate value: "a.example.com"`,
		`{}`: `spec.resourceSelectors: Required value: select at least one kind`,
		`resourceSelectors: [{apiVersion: v1, kind: Pod}]`:                                                                                                  `spec.resourceSelectors[0].kind: Invalid value: "Pod": cannot be spread: pods are made in the clusters: select the workload`,
		`resourceSelectors: [{apiVersion: v1, kind: Namespace}]`:                                                                                            `cannot be spread: a namespace`,
		`resourceSelectors: [{apiVersion: v1, kind: ResourceQuota}]`:                                                                                        `kind: Unsupported value: "ResourceQuota": supported values: "ConfigMap", "Secret", "Service", "ServiceAccount"`,
		`resourceSelectors: [{apiVersion: apps/v1, kind: deployment}]`:                                                                                      `kind: Unsupported value: "deployment": supported values: "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"`,
		`resourceSelectors: [{apiVersion: apps/v1beta1, kind: Deployment}]`:                                                                                 `apiVersion: Unsupported value: "apps/v1beta1": supported values: "apps/v1"`,
		`resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}]`:                                                                       `apiVersion: Invalid value: "rbac.authorization.k8s.io/v1": kinds of this group cannot be spread`,
		`resourceSelectors: [{apiVersion: federation/v1beta1, kind: Cluster}]`:                                                                              `it is the federation's own`,
		`resourceSelectors: [{apiVersion: app/v1, kind: Deployment}]`:                                                                                       `apiVersion: Invalid value: "app/v1": no such group`,
		`resourceSelectors: [{apiVersion: a/b/c, kind: X}]`:                                                                                                 `apiVersion: Invalid value: "a/b/c": must be GROUP/VERSION`,
		`resourceSelectors: [{apiVersion: Deployment, kind: apps/v1}]`:                                                                                      `apiVersion: Invalid value: "Deployment"`,
		`resourceSelectors: [{kind: Deployment}]`:                                                                                                           `apiVersion: Required value`,
		`resourceSelectors: [{apiVersion: v1}]`:                                                                                                             `kind: Required value`,
		`resourceSelectors: [{apiVersion: example.com/v1, kind: crontabs}]`:                                                                                 `kind: Invalid value: "crontabs": must be the name of a kind`,
		`resourceSelectors: [{apiVersion: v1, kind: Secret, names: [a, "", a, b/c]}]`:                                                                       `names[1]: Required value;names[2]: Duplicate value: "a";names[3]: Invalid value: "b/c"`,
		`resourceSelectors: [{apiVersion: v1, kind: Secret, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]`:                                `labelSelector.matchExpressions[0].operator: Invalid value: "Near"`,
		goodSelector + "\nclusters: {names: [East], zones: [\"\"], regions: [a/b]}":                                                                         `spec.clusters.names[0]: Invalid value: "East";spec.clusters.zones[0]: Required value;spec.clusters.regions[0]: Invalid value: "a/b"`,
		goodSelector + "\nspreadConstraints: [{spreadBy: Rack, minGroups: 1}]":                                                                              `spec.spreadConstraints[0].spreadBy: Unsupported value: "Rack": supported values: "Cluster", "Region", "Zone"`,
		goodSelector + "\nspreadConstraints: [{spreadBy: Zone, minGroups: 3, maxGroups: 2}, {spreadBy: Zone, minGroups: -1, maxGroups: 0}, {minGroups: 1}]": `spec.spreadConstraints[0].maxGroups: Invalid value: 2: must be no less than minGroups;[1].spreadBy: Duplicate value;[1].minGroups: Invalid value: -1;[1].maxGroups: Invalid value: 0;[2].spreadBy: Required value`,
		goodSelector + "\nautoscaling: {scope: Global}":                                                                                                     `spec.autoscaling.scope: Unsupported value: "Global": supported values: "Cluster", "Federation"`,
		goodSelector + "\nworkloadAffinity: Always":                                                                                                         `spec.workloadAffinity: Unsupported value: "Always": supported values: "None", "Preferred", "Required"`,
		goodSelector + "\nworkloadAffinity: Required\nspreadConstraints: [{spreadBy: Zone, minGroups: 3}, {spreadBy: Cluster, maxGroups: 2}]":               `spec.spreadConstraints[0].minGroups: Invalid value: 3: must be no more than the 2 clusters that maxGroups allows: with workloadAffinity Required all is in these`,
		goodSelector + "\nspreadConstraints: [{spreadBy: Zone}]":                                                                                            `spec.spreadConstraints[0]: Required value: say minGroups, maxGroups or both`,
		goodSelector + "\nreplicaPreferences: {clusters: {a: {weight: -1, minReplicas: 2, maxReplicas: 1}}}":                                                `spec.replicaPreferences.clusters[a].weight: Invalid value: -1: must be from 0 to 2147483647;minReplicas: Invalid value: 2: must be no more than maxReplicas (1)`,
		goodSelector + "\nreplicaPreferences: {clusters: {East: {weight: 1}, '*': {weight: 1}}}":                                                            `spec.replicaPreferences.clusters[East]: Invalid value: "East": a lowercase`,
		goodSelector + "\ndns: {clusters: {'*': {weight: 1}, 'east a': {weight: 1}}}":                                                                       `spec.dns.clusters[east a]: Invalid value: "east a": a lowercase`,
		goodSelector + "\noverrides: [{jsonPatch: [{op: test, path: /spec/replicas, value: 3}, {op: replace, path: /spec/replicas, value: 3}]}]":            `spec.overrides[0].jsonPatch[1].path: Invalid value: "/spec/replicas": may not be changed: which share of the replicas of a Deployment`,
		`{resourceSelectors: [{apiVersion: batch/v1, kind: Job}], overrides: [{jsonPatch: [{op: remove, path: /spec/parallelism}]}]}`:                       `path: Invalid value: "/spec/parallelism": may not be changed: which share of the replicas of a Job`,
		goodSelector + "\nreplicaPreferences: {rebalance: true}":                                                                                            `spec.replicaPreferences.clusters: Required value`,
		goodSelector + "\ntolerations: [{}, {key: a, operator: Exists, value: b}, {key: a, operator: Near}, {key: a, effect: PreferNoSchedule}, {key: a, tolerationSeconds: 5}, {key: a b}]": `spec.tolerations[0].operator: Invalid value: "": must be Exists;[1].value: Invalid value: "b";[2].operator: Unsupported value: "Near": supported values: "Equal", "Exists";[3].effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule";[4].tolerationSeconds: Invalid value: 5;[5].key: Invalid value: "a b"`,
		goodSelector + "\nfailover: {gracePeriodSeconds: 86401, failback: Later}":                                                                                                            `spec.failover.gracePeriodSeconds: Invalid value: 86401: must be from 0 to 86400;spec.failover.failback: Unsupported value: "Later": supported values: "Immediate", "Never", "Staged"`,
		goodSelector + "\nrollout: {strategy: Canary, order: [a, a]}":                                                                                                                        `spec.rollout.strategy: Unsupported value: "Canary": supported values: "AllAtOnce", "OneClusterAtATime";spec.rollout.order[1]: Duplicate value: "a"`,
		goodSelector + "\noverrides: [{jsonPatch: []}, {clusters: {names: [A]}, jsonPatch: [{op: patch, path: /spec}]}]":                                                                     `spec.overrides[0].jsonPatch: Required value: at least one operation;spec.overrides[1].clusters.names[0]: Invalid value: "A";spec.overrides[1].jsonPatch[0].op: Unsupported value: "patch": supported values: "add", "copy", "move", "remove", "replace", "test"`,
	} {
		wantFaults(t, spec, want)
	}
}

func TestFaultsOfOperations(t *testing.T) {
	for operation, want := range map[string]string{
		`{op: add, path: spec, value: 1}`:                                           `path: Invalid value: "spec": must be a JSON pointer: it begins with /`,
		`{op: add, path: /spec/a~2b, value: 1}`:                                     `path: Invalid value: "/spec/a~2b": must be a JSON pointer`,
		`{op: add, value: 1}`:                                                       `path: Required value`,
		`{op: add, path: /spec/a}`:                                                  `value: Required value: needed for add, replace and test`,
		`{op: remove, path: /spec/a, value: 1}`:                                     `value: Invalid value: "1": goes with add, replace and test only`,
		`{op: replace, path: /spec/a, value: 1, from: /b}`:                          `from: Invalid value: "/b": goes with move and copy only`,
		`{op: copy, path: /spec/a}`:                                                 `from: Required value`,
		`{op: move, from: /spec, path: /spec/a}`:                                    `path: Invalid value: "/spec/a": must not be below from`,
		`{op: copy, from: /spec, path: /spec/a/b}`:                                  `path: Invalid value: "/spec/a/b": must not be below from`,
		`{op: copy, from: spec, path: /spec/a}`:                                     `from: Invalid value: "spec": must be a JSON pointer`,
		`{op: move, from: /metadata/name, path: /spec/a}`:                           `from: Invalid value: "/metadata/name": may not be changed`,
		`{op: move, from: /spec/replicas, path: /spec/a}`:                           `from: Invalid value: "/spec/replicas": may not be changed: which share of the replicas of a Deployment`,
		`{op: replace, path: /kind, value: a}`:                                      `path: Invalid value: "/kind": may not be changed: an override may not touch apiVersion, kind and status`,
		`{op: replace, path: /status/replicas, value: 1}`:                           `may not be changed`,
		`{op: replace, path: /metadata, value: {}}`:                                 `may not be changed: of metadata an override may touch single labels and annotations`,
		`{op: add, path: /metadata/annotations, value: {}}`:                         `may not be changed: of metadata`,
		`{op: add, path: /metadata/finalizers/-, value: a}`:                         `may not be changed: of metadata`,
		`{op: remove, path: /metadata/labels/federation.kubernetes.io~1managed-by}`: `may not be changed: federation.kubernetes.io/managed-by is the federation's own`,
	} {
		wantFaults(t, goodSelector+"\noverrides: [{jsonPatch: ["+operation+"]}]", "spec.overrides[0].jsonPatch[0].;"+want)
	}
}

// An operation without from gets one error, and not a second that its path lies below from.
func TestOneFaultWithoutFrom(t *testing.T) {
	if got := fields(validateOperation(v1beta1.JSONPatchOperation{Op: "copy", Path: "/spec/a"}, nil)); got != "from" {
		t.Errorf("faults at %s, want from alone", got)
	}
}

// A Secret's type decides whether it is federated, and what reads it.
func TestOverridesKeepTheTypeOfSecrets(t *testing.T) {
	const secrets = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Secret}]`
	wantFaults(t, secrets+"\noverrides: [{jsonPatch: [{op: replace, path: /type, value: kubernetes.io/service-account-token}, {op: move, from: /type, path: /data/a}]}]",
		`spec.overrides[0].jsonPatch[0].path: Invalid value: "/type": may not be changed: it says what kind of Secret it is;[1].from: Invalid value: "/type"`)
	if errs := ValidatePlacementPolicy(policy(t, goodSelector+"\noverrides: [{jsonPatch: [{op: replace, path: /type, value: a}]}]")); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

// Operations are work for each object in each cluster.
func TestOperationsOfAPolicyAreBounded(t *testing.T) {
	p := policy(t, goodSelector)
	for range 3 {
		o := v1beta1.Override{}
		for range 70 {
			o.JSONPatch = append(o.JSONPatch, v1beta1.JSONPatchOperation{Op: "remove", Path: "/spec/a"})
		}
		p.Spec.Overrides = append(p.Spec.Overrides, o)
	}
	if got := ValidatePlacementPolicy(p).ToAggregate(); got == nil || !strings.Contains(got.Error(), "spec.overrides: Invalid value: 210: must have at most 200 operations in all") {
		t.Errorf("%v", got)
	}
	if p.Spec.Overrides = p.Spec.Overrides[:2]; len(ValidatePlacementPolicy(p)) > 0 {
		t.Error(ValidatePlacementPolicy(p).ToAggregate())
	}
}

// wantFaults checks that the errors of a spec contain all of the texts, which are separated by semicolons.
func wantFaults(t *testing.T, spec, want string) {
	t.Helper()
	got := ValidatePlacementPolicy(policy(t, spec)).ToAggregate()
	if got == nil {
		t.Errorf("%s\nwas accepted", spec)
		return
	}
	for text := range strings.SplitSeq(want, ";") {
		if !strings.Contains(got.Error(), text) {
			t.Errorf("%s\n%v\nlacks %q", spec, got, text)
		}
	}
}

func TestPolicyWarnings(t *testing.T) {
	for spec, want := range map[string]int{
		goodSelector:                             0,
		goodSelector + "\nrollout: {order: [a]}": 1,
		goodSelector + "\nrollout: {strategy: OneClusterAtATime, order: [a]}": 0,
		goodSelector + "\nfailover: {disabled: true, failback: Never}":        1,
		goodSelector + "\nfailover: {disabled: true}":                         0,
	} {
		if got := WarnOfPlacementPolicy(policy(t, spec)); len(got) != want {
			t.Errorf("%s\nwarnings %q, want %d", spec, got, want)
		}
	}
}
