package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// The two tenants. Each has the cluster role edit in the namespace of its name, and nothing else.
const (
	alice   = "team-alice"
	mallory = "team-mallory"
)

// tenantCalls is how many random calls mallory makes; TENANT_CALLS says otherwise, and TENANT_SEED which.
const tenantCalls = 300

// TestTenantsCannotHurtEachOther: whatever mallory writes with the rights of the role edit, nothing of alice's changes: not her
// objects, not their copies in the members, not what DNS answers for her names; and her own changes still arrive.
func TestTenantsCannotHurtEachOther(t *testing.T) {
	for _, tenant := range []string{alice, mallory} {
		makeTenant(t, tenant)
	}
	world := aliceWorld(t)
	before := world.settled(t)
	quiet := world.change(t, "quiet")
	seed, calls := fromEnv("TENANT_SEED", 1), fromEnv("TENANT_CALLS", tenantCalls)
	t.Logf("TENANT_SEED=%d TENANT_CALLS=%d", seed, calls)
	attack := newAttack(t, rand.New(rand.NewPCG(seed, 0)), world)
	slowest := time.Duration(0)
	for n := range calls {
		attack.call(t)
		if n%25 == 24 {
			world.unchanged(t, before, attack.last)
			slowest = max(slowest, world.change(t, fmt.Sprint(n)))
		}
	}
	attack.end(t)
	world.unchanged(t, before, attack.last)
	t.Logf("%d calls: %s", calls, attack)
	t.Logf("a change of alice's is in all clusters after %s when it is quiet, and after %s at most beside mallory", quiet.Round(time.Millisecond), slowest.Round(time.Millisecond))
	if attack.accepted < int(calls)/10 {
		t.Errorf("only %d of %d calls were accepted: mallory has tried too little", attack.accepted, calls)
	}
}

func fromEnv(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// makeTenant makes a namespace, whose user has the role edit there.
func makeTenant(t *testing.T, name string) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: %[1]s}
roleRef: {apiGroup: %[2]s, kind: ClusterRole, name: edit}
subjects: [{apiGroup: %[2]s, kind: User, name: %[1]s}]
`, name, rbacv1.GroupName))
}

// as returns a client of the federation for a user.
func as(t *testing.T, user string, groups ...string) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(s.fed.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// tenantWorld is what alice has.
type tenantWorld struct {
	client dynamic.Interface
	uids   map[string]types.UID // of her objects, by kind and name
	hosts  []string             // names in DNS that are hers
}

var tenantResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"}, {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, v1beta1.PoliciesResource,
}

func aliceWorld(t *testing.T) *tenantWorld {
	t.Helper()
	w := &tenantWorld{client: as(t, alice), uids: map[string]types.UID{}}
	zone := s.env["DNS_ZONE"]
	w.hosts = []string{"web." + alice + "." + s.env["FEDERATION_NAME"] + ".svc." + zone, "www." + zone, "shop." + zone}
	for _, o := range documents(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: hers}
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {%[1]s: '{"hosts": ["www.%[2]s"]}'}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {rules: [{host: shop.%[2]s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]}]}
`, v1beta1.DNSAnnotation, zone)) {
		made, err := w.client.Resource(resourceOf(o)).Namespace(alice).Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.uids[o.GetKind()+"/"+o.GetName()] = made.GetUID()
	}
	return w
}

func documents(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, one := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(one), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	gvk := o.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	if strings.HasSuffix(plural, "ss") {
		plural = strings.TrimSuffix(plural, "s") + "es"
	}
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	return gvk.GroupVersion().WithResource(plural)
}

// settled waits until alice's names answer and nothing of hers changes any more, and returns that.
func (w *tenantWorld) settled(t *testing.T) (is map[string]string) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		for _, host := range w.hosts[:2] {
			if _, answers := s.lookup(t, host, dns.TypeA); len(answers) < 3 {
				return fmt.Sprintf("%s has addresses %v, want 3", host, answers)
			}
		}
		was := w.look(t)
		time.Sleep(2 * time.Second)
		if is = w.look(t); !maps.Equal(was, is) {
			return "alice's objects change still"
		}
		return ""
	})
	return is
}

// look returns what alice has: at the federation, in each member, in DNS.
func (w *tenantWorld) look(t *testing.T) map[string]string {
	t.Helper()
	is := map[string]string{}
	for where, c := range s.everywhere() {
		for _, r := range tenantResources {
			list, err := c.dyn.Resource(r).Namespace(alice).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // members have no policies
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list.Items {
				is[where+" "+r.Resource+"/"+o.GetName()] = essence(&o)
			}
		}
	}
	for _, host := range w.hosts {
		rcode, answers := s.lookup(t, host, dns.TypeA)
		slices.Sort(answers)
		is["DNS "+host] = fmt.Sprint(rcode, answers)
	}
	return is
}

// everywhere returns the federation and all members by name.
func (s *stack) everywhere() map[string]cluster {
	all := maps.Clone(s.members)
	all["federation"] = s.fed
	return all
}

// essence is all of an object except what changes by itself, and the key that change writes.
func essence(o *unstructured.Unstructured) string {
	o = o.DeepCopy()
	for _, field := range [][]string{{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"data", "changed"},
		{"metadata", "annotations", v1beta1.AppliedHashAnnotation}, {"metadata", "annotations", "deployment.kubernetes.io/revision"}} {
		unstructured.RemoveNestedField(o.Object, field...)
	}
	var dates func(any)
	dates = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if strings.HasSuffix(key, "Time") || key == "observedGeneration" || key == "message" {
					delete(v, key)
				}
				dates(inner)
			}
		case []any:
			for _, inner := range v {
				dates(inner)
			}
		}
	}
	dates(o.Object["status"])
	text, _ := json.Marshal(o.Object) // it came as JSON
	return string(text)
}

// unchanged fails the test where something of alice's is not as before for as long as 5 s, after the calls given.
func (w *tenantWorld) unchanged(t *testing.T, before map[string]string, calls []string) {
	t.Helper()
	var differs []string
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		is := w.look(t)
		differs = differs[:0]
		for key := range is {
			if is[key] != before[key] {
				differs = append(differs, fmt.Sprintf("%s was\n  %s\nand is\n  %s", key, before[key], is[key]))
			}
		}
		for key := range before {
			if _, there := is[key]; !there {
				differs = append(differs, key+" is gone")
			}
		}
		if len(differs) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	t.Fatalf("what is alice's has changed:\n%s\nmallory's last calls:\n%s", strings.Join(differs, "\n"), strings.Join(calls, "\n"))
}

// change makes a change as alice, and returns how long it takes to be in every cluster.
func (w *tenantWorld) change(t *testing.T, value string) time.Duration {
	t.Helper()
	patch := fmt.Sprintf(`{"data": {"changed": %q}}`, value)
	if _, err := w.client.Resource(tenantResources[0]).Namespace(alice).Patch(t.Context(), "settings", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return eventually(t, 30*time.Second, func() string {
		for member, c := range s.members {
			m, err := c.client.CoreV1().ConfigMaps(alice).Get(t.Context(), "settings", metav1.GetOptions{})
			if err != nil || m.Data["changed"] != value {
				return fmt.Sprintf("alice's change %q is not in %s: %v", value, member, err)
			}
		}
		return ""
	})
}

// attack is mallory's.
type attack struct {
	*rand.Rand
	client   dynamic.Interface
	world    *tenantWorld
	zone     string
	last     []string // the calls that were accepted last
	accepted int
	refused  map[string]int // by reason
	failed   []string       // calls that the API neither took nor refused, or that it should have refused
}

func newAttack(t *testing.T, r *rand.Rand, w *tenantWorld) *attack {
	return &attack{Rand: r, client: as(t, mallory), world: w, zone: s.env["DNS_ZONE"], refused: map[string]int{}}
}

func (a *attack) String() string {
	return fmt.Sprintf("%d accepted, refused %v", a.accepted, a.refused)
}

func pick[T any](a *attack, from ...T) T { return from[a.IntN(len(from))] }

// call makes one call.
func (a *attack) call(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	what, err := a.try(ctx)
	if reason := apierrors.ReasonForError(err); err != nil {
		if a.refused[string(reason)]++; reason == metav1.StatusReasonUnknown {
			a.failed = append(a.failed, what+": "+err.Error())
		}
		return
	}
	a.accepted++
	a.last = append(a.last, what)
	a.last = a.last[max(0, len(a.last)-50):]
}

func (a *attack) try(ctx context.Context) (what string, err error) {
	switch a.IntN(10) {
	case 0:
		return a.hers(ctx)
	case 1:
		r := pick(a, tenantResources...)
		what = "delete a " + r.Resource
		list, err := a.client.Resource(r).Namespace(mallory).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return what, err
		}
		how := pick(a, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		return what, a.client.Resource(r).Namespace(mallory).Delete(ctx, list.Items[a.IntN(len(list.Items))].GetName(), metav1.DeleteOptions{PropagationPolicy: &how})
	}
	o := a.object()
	a.decorate(o)
	text, _ := json.Marshal(o.Object) // made of JSON's types
	what = string(text[:min(len(text), 600)])
	r := a.client.Resource(resourceOf(o)).Namespace(mallory)
	if _, err = r.Create(ctx, o, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = r.Patch(ctx, o.GetName(), types.MergePatchType, text, metav1.PatchOptions{})
	}
	return what, err
}

// hers tries what is alice's, or the federation's, directly.
func (a *attack) hers(ctx context.Context) (what string, err error) {
	r := pick(a, tenantResources...)
	what = "what is not mallory's"
	patch := []byte(`{"metadata":{"labels":{"mallory":"was-here"}}}`)
	switch a.IntN(6) {
	case 0:
		_, err = a.client.Resource(r).Namespace(alice).List(ctx, metav1.ListOptions{})
	case 1:
		_, err = a.client.Resource(r).Namespace(alice).Patch(ctx, pick(a, "settings", "web", "shop", "password"), types.MergePatchType, patch, metav1.PatchOptions{})
	case 2:
		_, err = a.client.Resource(v1beta1.ClustersResource).Patch(ctx, pick(a, names...), types.MergePatchType, patch, metav1.PatchOptions{})
	case 3:
		_, err = a.client.Resource(tenantResources[1]).Namespace(v1beta1.FederationNamespace).List(ctx, metav1.ListOptions{})
	case 4:
		_, err = a.client.Resource(tenantResources[0]).Namespace(v1beta1.FederationNamespace).Patch(ctx, v1beta1.InfoConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		_, err = a.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Patch(ctx, alice, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err == nil {
		err = errors.New("was done")
	}
	return what, err
}

// object is one of mallory's own, most often with a trap in it.
func (a *attack) object() *unstructured.Unstructured {
	name := fmt.Sprintf("m%d", a.IntN(8))
	object := func(apiVersion, kind string, rest map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: rest}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	pods := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "web:1"}}}}
	switch a.IntN(7) {
	case 0:
		return object("v1", "ConfigMap", map[string]any{"data": map[string]any{"x": strings.Repeat("x", pick(a, 1, 1000, 900_000))}})
	case 1:
		kind := pick(a, corev1.SecretTypeOpaque, corev1.SecretTypeServiceAccountToken, corev1.SecretTypeDockercfg)
		return object("v1", "Secret", map[string]any{"type": string(kind), "stringData": map[string]any{"a": "b"}})
	case 2:
		return object("v1", "Service", map[string]any{"spec": map[string]any{"type": pick(a, "LoadBalancer", "LoadBalancer", "ClusterIP", "ExternalName"),
			"externalName": a.host(), "selector": map[string]any{"app": pick(a, name, "web")}, "ports": []any{map[string]any{"port": int64(pick(a, 80, 443, 53))}}}})
	case 3:
		return object("networking.k8s.io/v1", "Ingress", map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"host": a.host()}},
			"defaultBackend": map[string]any{"service": map[string]any{"name": name, "port": map[string]any{"number": int64(80)}}}}})
	case 4:
		return object("apps/v1", "Deployment", map[string]any{"spec": map[string]any{"replicas": int64(pick(a, 0, 1, 5, 30)),
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}}, "template": pods}})
	case 5:
		return object("v1", "ServiceAccount", map[string]any{})
	}
	return object("federation/v1beta1", "PlacementPolicy", map[string]any{"spec": a.policy()})
}

func (a *attack) host() string {
	return pick(a, "www."+a.zone, "shop."+a.zone, a.zone, "ns."+a.zone, "*."+a.zone, "web."+alice+"."+s.env["FEDERATION_NAME"]+".svc."+a.zone,
		"east-a."+a.zone, "_dmarc."+a.zone, "example.org", "mallory."+a.zone, strings.Repeat("a.", 100)+a.zone, "shop."+a.zone+".")
}

func (a *attack) policy() map[string]any {
	var operations []any
	for n := range pick(a, 1, 5, 28, 90) {
		operations = append(operations, pick(a,
			map[string]any{"op": "copy", "from": "/spec", "path": fmt.Sprintf("/spec/a%d", n)},
			map[string]any{"op": "add", "path": "/metadata/namespace", "value": alice},
			map[string]any{"op": "replace", "path": "/metadata/name", "value": "web"},
			map[string]any{"op": "add", "path": "/metadata/annotations/federation.kubernetes.io~1source-uid", "value": string(a.world.uids["Deployment/web"])},
			map[string]any{"op": "replace", "path": "/type", "value": "kubernetes.io/service-account-token"},
			map[string]any{"op": "add", "path": "/data/x", "value": strings.Repeat("y", 2000)}))
	}
	doubling := make([]any, 0, 28)
	for n := range 28 {
		doubling = append(doubling, map[string]any{"op": "copy", "from": "/spec", "path": fmt.Sprintf("/spec/a%d", n)})
	}
	return map[string]any{
		"priority": int64(pick(a, 0, 1<<30)),
		"resourceSelectors": []any{pick(a, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
			map[string]any{"apiVersion": "v1", "kind": "Secret"}, map[string]any{"apiVersion": "v1", "kind": "Namespace"}, map[string]any{"apiVersion": "v1", "kind": "Service"})},
		"propagateReferences": pick(a, true, false),
		"overrides":           []any{map[string]any{"jsonPatch": pick(a, operations, doubling)}},
	}
}

// decorate puts annotations, labels, owners and finalizers on an object.
func (a *attack) decorate(o *unstructured.Unstructured) {
	annotations, labels := map[string]string{}, map[string]string{}
	for range a.IntN(3) {
		address := pick(a, "127.0.0.1", "169.254.169.254", "0.0.0.0", "203.0.113.7")
		switch a.IntN(9) {
		case 0, 1:
			hosts, _ := json.Marshal(map[string]any{"hosts": []string{a.host(), a.host()}, "ttlSeconds": pick(a, 1, 86400)})
			annotations[v1beta1.DNSAnnotation] = string(hosts)
		case 2:
			annotations[v1beta1.DNSAnnotation] = fmt.Sprintf(`{"healthCheck": {"type": "HTTP", "port": %d, "path": "/metrics", "timeoutSeconds": 5}}`, pick(a, 80, 6443, 2379))
		case 3:
			annotations[v1beta1.ServiceIngressesAnnotation] = fmt.Sprintf(`{"clusters":[{"name":"east-a","items":[{"ip":%q}]}]}`, address)
		case 4:
			annotations[v1beta1.PlacementAnnotation] = `{"clusters":{"east-a":1000}}`
		case 5:
			annotations[v1beta1.ClusterSetIPAnnotation] = pick(a, address, "auto", "10.200.0.1")
		case 6:
			annotations[v1beta1.SourceAnnotation] = string(a.world.uids["Deployment/web"])
			annotations[v1beta1.CopyOfAnnotation] = alice + "/web"
		case 7:
			annotations[v1beta1.DeploymentPreferencesAnnotation] = `{"rebalance":true,"clusters":{"east-a":{"weight":2147483647,"minReplicas":5},"*":{"weight":1}}}`
		default:
			labels[v1beta1.ManagedByLabel] = pick(a, "x", string(a.world.uids["Service/web"]))
		}
	}
	o.SetAnnotations(annotations)
	o.SetLabels(labels)
	if a.IntN(6) == 0 {
		key := pick(a, slices.Sorted(maps.Keys(a.world.uids))...)
		kind, name, _ := strings.Cut(key, "/")
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: a.world.uids[key], BlockOwnerDeletion: new(true)}})
	}
	if a.IntN(10) == 0 {
		o.SetFinalizers([]string{pick(a, "example.com/mallory", "federation.kubernetes.io/delete-from-clusters")})
	}
}

// end judges calls that should not have come to that, and takes away what would keep the namespace from going.
func (a *attack) end(t *testing.T) {
	t.Helper()
	if len(a.failed) > 0 {
		t.Errorf("neither taken nor refused, or taken in spite of it all:\n%s", strings.Join(a.failed, "\n"))
	}
	admin := as(t, "system:admin", "system:masters")
	for _, r := range tenantResources {
		list, err := admin.Resource(r).Namespace(mallory).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if _, err := admin.Resource(r).Namespace(mallory).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Log(err)
			}
		}
	}
}
