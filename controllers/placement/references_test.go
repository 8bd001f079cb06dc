package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

var (
	secrets         = referable["Secret"]
	serviceAccounts = referable["ServiceAccount"]
	onlyWest        = `annotations: {federation.alpha.kubernetes.io/cluster-selector: '[{"key": "side", "operator": "In", "values": ["west"]}]'}`
)

// confined returns a new Secret or ServiceAccount as admitted.
func confined(kind, name, more string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: shop, uid: %s, creationTimestamp: %q,
  annotations: {federation.kubernetes.io/placement: pending}}%s}`, kind, name, "u"+name, time.Now().UTC().Format(time.RFC3339), more)
}

// goes returns where an object goes by its placement annotation.
func (f *fleet) goes(resource schema.GroupVersionResource, name string) string {
	f.t.Helper()
	if p := v1beta1.ParsePlacement(f.annotation(resource, name)); p != nil && p.Everywhere {
		return "everywhere"
	}
	return f.clustersOf(resource, name)
}

func (f *fleet) label(cluster, key, value string) {
	f.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if _, err := f.client.Resource(v1beta1.ClustersResource).Patch(f.t.Context(), cluster, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

func (f *fleet) remove(resource schema.GroupVersionResource, name string) {
	f.t.Helper()
	if err := f.client.Resource(resource).Namespace("shop").Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

// TestSecretsGoWhereThatGoesWhichRefersToThem has one row per referring kind, and checks that the Secret leaves with
// its referrer.
func TestSecretsGoWhereThatGoesWhichRefersToThem(t *testing.T) {
	pod := `spec: {volumes: [{name: v, secret: {secretName: pass}}], containers: [{name: c}]}`
	for kind, c := range map[string]struct{ text, goes string }{
		"Deployment":     {`apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, spec: {replicas: 2, template: {` + pod + `}}`, "west-a"},
		"ReplicaSet":     {`apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x, namespace: shop, uid: x}, spec: {replicas: 2, template: {` + pod + `}}`, "east-a west-a"},
		"StatefulSet":    {`apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, spec: {replicas: 0, template: {` + pod + `}}`, ""},
		"DaemonSet":      {`apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, namespace: shop, uid: x}, spec: {template: {` + pod + `}}`, "everywhere"},
		"Job":            {`apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, spec: {template: {` + pod + `}}`, "west-a"},
		"CronJob":        {`apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, spec: {jobTemplate: {spec: {template: {` + pod + `}}}}`, "west-a"},
		"Ingress":        {`apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, spec: {tls: [{secretName: pass}]}`, "west-a"},
		"ServiceAccount": {`apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: shop, uid: x, ` + onlyWest + `}, imagePullSecrets: [{name: pass}]`, "west-a"},
	} {
		inFleet(t, func(f *fleet) {
			f.cluster("east-a", "True")
			f.cluster("west-a", "True")
			f.label("west-a", "side", "west")
			f.apply(secrets, confined("Secret", "pass", ""))
			if got := f.goes(secrets, "pass"); got != "pending" {
				t.Errorf("%s: before it is there the Secret is %s", kind, got)
			}
			var resource schema.GroupVersionResource
			for _, k := range v1beta1.FederatedKinds {
				if k.Kind == kind {
					resource = k.Resource
				}
			}
			f.apply(resource, "{"+c.text+"}")
			if got := f.goes(secrets, "pass"); got != c.goes {
				t.Errorf("%s: the Secret goes to %q, want %q", kind, got, c.goes)
			}
			f.remove(resource, "x")
			if got := f.goes(secrets, "pass"); got != "" {
				t.Errorf("%s: when it is gone the Secret goes to %q", kind, got)
			}
		})
	}
}

// TestASecretThatNothingRefersTo checks that it goes nowhere and one event says so, or everywhere if requested.
func TestASecretThatNothingRefersTo(t *testing.T) {
	for everywhere, want := range map[bool]string{false: "", true: "everywhere"} {
		inFleetWith(t, func(o *Options) { o.SecretsEverywhere = everywhere }, func(f *fleet) {
			f.cluster("east-a", "True")
			f.apply(secrets, confined("Secret", "pass", ""))
			time.Sleep(5 * time.Second)
			if got := f.goes(secrets, "pass"); got != want {
				t.Errorf("it goes to %q, want %q", got, want)
			}
			if everywhere {
				return
			}
			if p := v1beta1.ParsePlacement(f.annotation(secrets, "pass")); len(p.Notes) != 1 || p.Notes[0] != scheduler.Unreferred {
				t.Errorf("notes %q", p.Notes)
			}
			select {
			case said := <-f.events.Events:
				if !strings.HasPrefix(said, "Normal Unreferenced In no cluster: nothing refers to it; a policy or --propagate-secrets=All") {
					t.Errorf("event %q", said)
				}
			default:
				t.Error("no event")
			}
		})
	}
}

// TestAnAccountTakesItsSecretsAlong checks that Secrets follow an account that a workload takes along.
func TestAnAccountTakesItsSecretsAlong(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		f.cluster("west-a", "True")
		f.label("west-a", "side", "west")
		f.apply(secrets, confined("Secret", "pull", ""))
		f.apply(serviceAccounts, confined("ServiceAccount", "runner", ", imagePullSecrets: [{name: pull}]"))
		f.apply(replicaSets, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: shop, uid: w, `+onlyWest+`}, spec: {replicas: 2, template: {spec: {serviceAccountName: runner}}}}`)
		if account, pull := f.goes(serviceAccounts, "runner"), f.goes(secrets, "pull"); account != "west-a" || pull != "west-a" {
			t.Errorf("the account goes to %q, its Secret to %q", account, pull)
		}
		patch := `{"imagePullSecrets":[]}`
		if _, err := f.client.Resource(serviceAccounts).Namespace("shop").Patch(t.Context(), "runner", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		f.settle()
		if got := f.goes(secrets, "pull"); got != "" {
			t.Errorf("the account refers to nothing any more, and the Secret goes to %q", got)
		}
	})
}

// TestAStartTakesNoSecretAway checks that referrers are known before anything is decided, in whatever order objects
// come.
func TestAStartTakesNoSecretAway(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.cluster("east-a", "True")
		for i := range 30 {
			f.apply(secrets, confined("Secret", fmt.Sprintf("pass-%d", i), ""))
		}
		var env []string
		for i := range 30 {
			env = append(env, fmt.Sprintf("{secretRef: {name: pass-%d}}", i))
		}
		f.apply(v1beta1.FederatedKindOf(schema.GroupResource{Group: "apps", Resource: "daemonsets"}).Resource,
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, namespace: shop, uid: w}, spec: {template: {spec: {containers: [{name: c, envFrom: [`+strings.Join(env, ", ")+`]}]}}}}`)
		if got := f.goes(secrets, "pass-7"); got != "everywhere" {
			t.Fatalf("it goes to %q", got)
		}
		f.client.ClearActions()
		f.stop()
		f.start()
		for _, a := range f.client.Actions() {
			if a.GetVerb() == "patch" && a.GetResource() == secrets {
				t.Error("the placement of a Secret was written at a start")
			}
		}
	})
}
