package plan

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		{"one refuses", workload("Deployment", ", progressDeadlineSeconds: 600"), map[string]string{"east-a": deployed("3", "3", "3", "1", "1"), "west-a": ""}, Rejected, false, kstatus.InProgressStatus},
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

// concluded returns kstatus' result for an object once its summary is written.
func concluded(t *testing.T, federated *unstructured.Unstructured, copies []Copy) *kstatus.Result {
	t.Helper()
	if s := Summarize(kind(t, federated.GetKind()), federated, copies, "2026-01-03T00:00:00Z"); len(s.Status) > 0 {
		federated.Object["status"] = s.Status
	}
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
