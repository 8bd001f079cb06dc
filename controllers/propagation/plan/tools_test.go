package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// TestToolsReadTheStatus checks what Helm 4, Flux and kpt conclude from the total status, by the library they all use:
// done when each cluster runs the change, and not before; failed when one is stuck.
func TestToolsReadTheStatus(t *testing.T) {
	const placed = `metadata: {name: web, namespace: shop, uid: u1, generation: 2, annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":2,"west-a":1}}'}}
`
	workload := func(kind, rest string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\n" + placed + "spec: {replicas: 3, template: {metadata: {labels: {app: web}}}" + rest + "}"
	}
	deployed := func(n, updated, ready, generation, observed string) string {
		return "metadata: {generation: " + generation + "}\nspec: {replicas: " + n + "}\nstatus: {observedGeneration: " + observed + ", replicas: " + n + ", updatedReplicas: " + updated + ", fullyLabeledReplicas: " + n +
			", readyReplicas: " + ready + ", availableReplicas: " + ready + ", currentReplicas: " + n + ", currentRevision: web-1, updateRevision: web-1, conditions: [{type: Available, status: 'True'}]}"
	}
	daemons := func(updated, ready string) string {
		return "metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: " + updated + ", numberReady: " + ready + ", numberAvailable: " + ready + "}"
	}
	tests := []struct {
		name, federated string
		copies          map[string]string
		state           State // of the last copy; "": InPlace
		outdated        bool  // so is the last copy
		want            kstatus.Status
	}{
		{"all", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "1", "1", "1")}, "", false, kstatus.CurrentStatus},
		{"one is not ready", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "0", "1", "1")}, "", false, kstatus.InProgressStatus},
		{"one rolls", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "0", "1", "2", "2")}, "", false, kstatus.InProgressStatus},
		{"one has not looked", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "1", "2", "1")}, "", false, kstatus.InProgressStatus},
		{"one has the template of before", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "1", "1", "1")}, Progressing, true, kstatus.InProgressStatus},
		{"one is pending", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": ""}, Pending, false, kstatus.InProgressStatus},
		{"one cannot be reached", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": ""}, Unreachable, false, kstatus.InProgressStatus},
		{"one refuses", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("3", "3", "3", "1", "1"), "west-a": ""}, Rejected, false, kstatus.FailedStatus},
		{"one is stuck", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": strings.Replace(deployed("1", "1", "0", "1", "1"),
			"conditions: [", "conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}, ", 1)}, "", false, kstatus.FailedStatus},
		{"all", workload("StatefulSet", ""), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "1", "1", "1")}, "", false, kstatus.CurrentStatus},
		{"one rolls", workload("StatefulSet", ""), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": strings.Replace(deployed("1", "0", "1", "1", "1"), "updateRevision: web-1", "updateRevision: web-2", 1)}, "", false, kstatus.InProgressStatus},
		{"one has the template of before", workload("StatefulSet", ""), map[string]string{"east-a": strings.ReplaceAll(deployed("2", "2", "2", "2", "2"), "web-1", "web-2"), "west-a": deployed("1", "1", "1", "1", "1")}, Progressing, true, kstatus.InProgressStatus},
		{"all", workload("ReplicaSet", ""), map[string]string{"east-a": deployed("2", "2", "2", "1", "1"), "west-a": deployed("1", "1", "1", "1", "1")}, "", false, kstatus.CurrentStatus},
		{"one is not ready", workload("ReplicaSet", ""), map[string]string{"east-a": deployed("2", "2", "1", "1", "1"), "west-a": deployed("1", "1", "1", "1", "1")}, "", false, kstatus.InProgressStatus},
		{"all", workload("DaemonSet", ""), map[string]string{"east-a": daemons("3", "3"), "west-a": daemons("3", "3")}, "", false, kstatus.CurrentStatus},
		{"one rolls", workload("DaemonSet", ""), map[string]string{"east-a": daemons("3", "3"), "west-a": daemons("2", "3")}, "", false, kstatus.InProgressStatus},
		{"one has the template of before", workload("DaemonSet", ""), map[string]string{"east-a": daemons("3", "3"), "west-a": daemons("3", "3")}, Progressing, true, kstatus.InProgressStatus},
	}
	for _, test := range tests {
		federated := parse(t, test.federated)
		var copies []Copy
		for _, cluster := range []string{"east-a", "west-a"} {
			text, there := test.copies[cluster]
			if !there {
				continue
			}
			c := Copy{Cluster: cluster, State: Synced, Looked: 2}
			if text != "" {
				c.Object = parse(t, "apiVersion: apps/v1\nkind: "+federated.GetKind()+"\n"+text)
			}
			copies = append(copies, c)
		}
		if last := &copies[len(copies)-1]; test.state != "" {
			last.State, last.Outdated, last.Message = test.state, test.outdated, "a reason"
		}
		got := concluded(t, federated, copies)
		if got.Status != test.want {
			t.Errorf("%s, %s: a tool reads %s (%s), want %s", federated.GetKind(), test.name, got.Status, got.Message, test.want)
		}
	}
}

// TestADeadlineMissedBefore: after a rollback, a cluster's Deployment still says for a moment that the rollout before
// missed its deadline. Tools take the rollback for failed only when it says so again.
func TestADeadlineMissedBefore(t *testing.T) {
	federated := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u1, generation: 2,
		annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":3}}'}}, spec: {replicas: 3, progressDeadlineSeconds: 600}}`)
	stuck := func(at, more string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, availableReplicas: 3,
			conditions: [`+more+`{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, lastUpdateTime: '`+at+`'}]}}`)
	}
	before, after := "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
	for _, test := range []struct {
		name string
		copy Copy
		want kstatus.Status
	}{
		{"stuck", Copy{Object: stuck(before, "")}, kstatus.FailedStatus},
		{"rolled back just now", Copy{Object: stuck(before, ""), MissedBefore: before}, kstatus.InProgressStatus},
		{"waits for its turn to be rolled back", Copy{Object: stuck(before, ""), Outdated: true}, kstatus.InProgressStatus},
		{"stuck again", Copy{Object: stuck(after, ""), MissedBefore: before}, kstatus.FailedStatus},
		{"can make no pods of the earlier template either", Copy{Object: stuck(before, "{type: ReplicaFailure, status: 'True'}, "), MissedBefore: before}, kstatus.FailedStatus},
	} {
		test.copy.Cluster, test.copy.State, test.copy.Looked = "east-a", Synced, 2
		if got := concluded(t, federated.DeepCopy(), []Copy{test.copy}); got.Status != test.want {
			t.Errorf("%s: a tool reads %s (%s), want %s", test.name, got.Status, got.Message, test.want)
		}
	}
	have := stuck(before, "")
	other := have.DeepCopy()
	_ = unstructured.SetNestedField(other.Object, "web:1", "spec", "template", "metadata", "labels", "version")
	if got := MissedBefore(Desired{configuration: configuration{Object: other}}, have); got != before {
		t.Errorf("another template: missed before at %q, want %q", got, before)
	}
	if got := MissedBefore(Desired{configuration: configuration{Object: have}}, have); got != "" {
		t.Errorf("the same template: missed before at %q, want nothing", got)
	}
}

// toolKinds are, of each kind that tools wait for, a federated object, and what a copy with the change has: that of east-a, and that of west-a.
var toolKinds = map[string][3]string{
	"Deployment": {"apiVersion: apps/v1\nspec: {replicas: 3, progressDeadlineSeconds: 600, template: {metadata: {labels: {app: web}}}}",
		"spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}",
		"spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}"},
	"ReplicaSet": {"apiVersion: apps/v1\nspec: {replicas: 3, template: {metadata: {labels: {app: web}}}}",
		"spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}",
		"spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1}"},
	"StatefulSet": {"apiVersion: apps/v1\nspec: {replicas: 3, updateStrategy: {type: RollingUpdate}, template: {metadata: {labels: {app: web}}}}",
		"spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, currentReplicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, currentRevision: web-1, updateRevision: web-1}",
		"spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, currentReplicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, currentRevision: web-1, updateRevision: web-1}"},
	"DaemonSet": {"apiVersion: apps/v1\nspec: {updateStrategy: {type: RollingUpdate}, template: {metadata: {labels: {app: web}}}}",
		"status: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3}",
		"status: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3}"},
	"Job": {"apiVersion: batch/v1\nspec: {parallelism: 3, completions: 3}",
		"status: {startTime: '2026-01-01T00:00:00Z', completionTime: '2026-01-01T00:01:00Z', succeeded: 2, conditions: [{type: Complete, status: 'True'}]}",
		"status: {startTime: '2026-01-01T00:00:00Z', completionTime: '2026-01-01T00:01:00Z', succeeded: 1, conditions: [{type: Complete, status: 'True'}]}"},
	"Service": {"apiVersion: v1\nspec: {type: LoadBalancer, clusterIP: 245.42.120.196, ports: [{port: 80}]}",
		"status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "status: {loadBalancer: {ingress: [{ip: 192.0.2.2}]}}"},
	"Ingress": {"apiVersion: networking.k8s.io/v1\nspec: {}",
		"status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "status: {loadBalancer: {ingress: [{ip: 192.0.2.2}]}}"},
	"HorizontalPodAutoscaler": {"apiVersion: autoscaling/v2\nspec: {maxReplicas: 9}",
		"status: {observedGeneration: 1, currentReplicas: 2, desiredReplicas: 2, conditions: [{type: AbleToScale, status: 'True', reason: ReadyForNewScale}, {type: ScalingActive, status: 'True'}]}",
		"status: {observedGeneration: 1, currentReplicas: 1, desiredReplicas: 1, conditions: [{type: AbleToScale, status: 'True', reason: ReadyForNewScale}, {type: ScalingActive, status: 'True'}]}"},
	"PodDisruptionBudget": {"apiVersion: policy/v1\nspec: {minAvailable: 1}",
		"status: {observedGeneration: 1, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2}", "status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}"},
}

// TestToolsAgreeOnEachKind: Helm 4 and Flux (kstatus), Argo CD, Helm 3 and `kubectl rollout status` take an object for done when all clusters have the change,
// not while one lacks it, and for failed when one refuses it. What a tool cannot know, since it looks at nothing that could say so, is listed.
func TestToolsAgreeOnEachKind(t *testing.T) {
	blind := map[string]string{ // by tool, the kinds of which it reads nothing that depends on clusters
		"kstatus": "Ingress", // the API has no place for conditions in it
		"Argo CD": "Service Ingress PodDisruptionBudget ReplicaSet", "Helm 3": "Service Ingress HorizontalPodAutoscaler PodDisruptionBudget ReplicaSet",
	}
	situations := []struct {
		name     string
		state    State
		there    bool // west-a has a copy
		outdated bool
		want     kstatus.Status
	}{
		{"all clusters have it", Synced, true, false, kstatus.CurrentStatus},
		{"one has none yet", Pending, false, false, kstatus.InProgressStatus},
		{"one has what was before", Progressing, true, true, kstatus.InProgressStatus},
		{"one refuses it", Rejected, false, false, kstatus.FailedStatus},
		{"one refuses the change", Rejected, true, true, kstatus.FailedStatus},
		{"one has another object of the name", Conflict, false, false, kstatus.FailedStatus},
	}
	for name, texts := range toolKinds {
		for _, now := range situations {
			federated := parse(t, texts[0]+"\nkind: "+name+`
metadata: {name: web, namespace: shop, uid: u1, resourceVersion: "7", generation: 2, annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":2,"west-a":1}}'}}`)
			if name == "Service" || name == "Ingress" {
				unstructured.RemoveNestedField(federated.Object, "metadata", "generation") // the API counts none
			}
			copies := []Copy{{Cluster: "east-a", State: Synced, Looked: 2}, {Cluster: "west-a", State: now.state, Message: "a reason", Outdated: now.outdated, Looked: 2}}
			for i, text := range texts[1:] {
				if now.outdated && i == 1 {
					text = strings.ReplaceAll(text, "web-1", "web-0")
				}
				if i == 0 || now.there {
					copies[i].Object = parse(t, "apiVersion: "+federated.GetAPIVersion()+"\nkind: "+name+"\nmetadata: {generation: 1, annotations: {federation.kubernetes.io/source-uid: u1}}\n"+text)
				}
			}
			if name == "Job" && now.outdated {
				continue // its template cannot change
			}
			got, done := concluded(t, federated, copies), now.want == kstatus.CurrentStatus
			if sees(blind["kstatus"], name) && got.Status != now.want {
				t.Errorf("%s, %s: kstatus reads %s (%s), want %s", name, now.name, got.Status, got.Message, now.want)
			}
			if is := argoCD(federated); sees(blind["Argo CD"], name) && (is == argoHealthy) != done {
				t.Errorf("%s, %s: Argo CD says %s", name, now.name, is)
			}
			if is := helm3(federated); sees(blind["Helm 3"], name) && is != done {
				t.Errorf("%s, %s: Helm 3 is done: %v", name, now.name, is)
			}
			if viewer, err := polymorphichelpers.StatusViewerFor(federated.GroupVersionKind().GroupKind()); err == nil {
				if said, is, err := viewer.Status(federated, 0); is != done || err != nil {
					t.Errorf("%s, %s: kubectl rollout status is done: %v (%s, %v)", name, now.name, is, said, err)
				}
			}
		}
	}
}

func sees(blind, kind string) bool { return !slices.Contains(strings.Fields(blind), kind) }

// TestToolsSeeFailures: what failed in one cluster has failed.
func TestToolsSeeFailures(t *testing.T) {
	for _, c := range []struct {
		name, stuck string
		kstatus     kstatus.Status
		argo        string
	}{
		{"Deployment", "spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", kstatus.FailedStatus, argoDegraded},
		{"Job", "status: {startTime: '2026-01-01T00:00:00Z', failed: 7, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}", kstatus.FailedStatus, argoDegraded},
		{"HorizontalPodAutoscaler", "status: {observedGeneration: 1, conditions: [{type: AbleToScale, status: 'False', reason: FailedGetScale}]}", kstatus.CurrentStatus, argoDegraded},
	} {
		texts := toolKinds[c.name]
		federated := parse(t, texts[0]+"\nkind: "+c.name+`
metadata: {name: web, namespace: shop, uid: u1, generation: 2, annotations: {federation.kubernetes.io/placement: '{"clusters":{"east-a":2,"west-a":1}}'}}`)
		var copies []Copy
		for i, text := range []string{texts[1], c.stuck} {
			copies = append(copies, Copy{Cluster: []string{"east-a", "west-a"}[i], State: Synced, Looked: 2,
				Object: parse(t, "apiVersion: "+federated.GetAPIVersion()+"\nkind: "+c.name+"\nmetadata: {generation: 1, annotations: {federation.kubernetes.io/source-uid: u1}}\n"+text)})
		}
		if got := concluded(t, federated, copies); got.Status != c.kstatus || argoCD(federated) != c.argo {
			t.Errorf("%s: kstatus reads %s, Argo CD %s, want %s, %s", c.name, got.Status, argoCD(federated), c.kstatus, c.argo)
		}
	}
}

// TestNobodyWaitsForALostCluster: what was placed there is placed elsewhere. While it is not, tools wait for it.
func TestNobodyWaitsForALostCluster(t *testing.T) {
	for placement, want := range map[string]kstatus.Status{`{"clusters":{"east-a":2,"west-a":1}}`: kstatus.InProgressStatus, `{"clusters":{"east-a":3}}`: kstatus.CurrentStatus} {
		federated := parse(t, toolKinds["Deployment"][0]+"\nkind: Deployment\nmetadata: {name: web, namespace: shop, generation: 2, annotations: {federation.kubernetes.io/placement: '"+placement+"'}}")
		got := concluded(t, federated, []Copy{{Cluster: "west-a", State: Unreachable}, {Cluster: "east-a", State: Synced, Looked: 2,
			Object: parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 1}\n"+strings.ReplaceAll(toolKinds["Deployment"][1], "2", "3"))}})
		if got.Status != want {
			t.Errorf("placed as %s: %s (%s), want %s", placement, got.Status, got.Message, want)
		}
	}
}

// TestMomentaryConditions: they are there only while they say something.
func TestMomentaryConditions(t *testing.T) {
	federated := parse(t, toolKinds["Service"][0]+"\nkind: Service\nmetadata: {name: web, namespace: shop}")
	for _, step := range []struct {
		state State
		want  string
	}{{Pending, "Propagated Reconciling"}, {Rejected, "Propagated Stalled"}, {Unreachable, "Propagated"}, {Progressing, "Propagated Reconciling"}, {Synced, "Propagated"}} {
		concluded(t, federated, []Copy{{Cluster: "east-a", State: step.state, Message: "a reason"}})
		var types []string
		for _, c := range federated.Object["status"].(map[string]any)["conditions"].([]any) {
			types = append(types, c.(map[string]any)["type"].(string))
		}
		if got := strings.Join(types, " "); got != step.want {
			t.Errorf("%s: conditions %s, want %s", step.state, got, step.want)
		}
	}
}

// concluded is what kstatus says of an object once its summary is written.
func concluded(t *testing.T, federated *unstructured.Unstructured, copies []Copy) *kstatus.Result {
	t.Helper()
	status, _ := federated.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	maps.Copy(status, Summarize(kind(t, federated.GetKind()), federated, copies, "2026-01-03T00:00:00Z").Status)
	federated.Object["status"] = status
	got, err := kstatus.Compute(federated)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestWhenAConditionWasUpdated checks that lastUpdateTime follows the reason, as in Kubernetes' own controller, and
// lastTransitionTime the status. An earlier object without one gets one.
func TestWhenAConditionWasUpdated(t *testing.T) {
	const first, second = "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"
	copies := func(updated string) []Copy {
		return []Copy{{Cluster: "east-a", State: Synced, Looked: 2, Object: parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 1}\nspec: {replicas: 1}\n"+
			"status: {observedGeneration: 1, replicas: 1, updatedReplicas: "+updated+", readyReplicas: 1, availableReplicas: 1}")}}
	}
	federated := parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, generation: 2}\nspec: {replicas: 1}\n"+
		"status: {conditions: [{type: Available, status: 'True', reason: MinimumReplicasAvailable, lastUpdateTime: null, lastTransitionTime: '2026-01-02T00:00:00Z'}]}")
	is := func(updated, now, want string) {
		t.Helper()
		s := Summarize(kind(t, "Deployment"), federated, copies(updated), now)
		federated.Object["status"] = s.Status
		got := ""
		for _, which := range []string{"Available", "Progressing"} {
			c := conditionIn(s, which)
			got += fmt.Sprint(which, " ", c["lastUpdateTime"], " ", c["lastTransitionTime"], "\n")
		}
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	is("0", first, "Available "+first+" 2026-01-02T00:00:00Z\nProgressing "+first+" "+first+"\n")
	is("1", second, "Available "+first+" 2026-01-02T00:00:00Z\nProgressing "+second+" "+first+"\n")
}
