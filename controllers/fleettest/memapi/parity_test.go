package memapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/servertest"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	clusters    = v1beta1.ClustersResource
)

func newTestAPI() *API {
	return New(Options{Resources: []Resource{
		{GroupVersionResource: namespacesResource, Kind: "Namespace", Status: true},
		{GroupVersionResource: configMaps, Kind: "ConfigMap", Namespaced: true},
		{GroupVersionResource: replicaSets, Kind: "ReplicaSet", Namespaced: true, Status: true, Generation: true},
		{GroupVersionResource: clusters, Kind: "Cluster", Status: true, Generation: true},
	}})
}

// place is where a request goes.
type place struct {
	gvr       schema.GroupVersionResource
	namespace string
}

func (p place) of(c dynamic.Interface) dynamic.ResourceInterface {
	if p.namespace == "" {
		return c.Resource(p.gvr)
	}
	return c.Resource(p.gvr).Namespace(p.namespace)
}

var (
	files = place{configMaps, "kube-system"} // nothing there is federated: this is what Kubernetes does
	sets  = place{replicaSets, "kube-system"}
	all   = place{clusters, ""}
)

// request is one line of the table. uid is that of the object named by the request before it.
type request struct {
	what string
	do   func(ctx context.Context, c dynamic.Interface, uid types.UID) (*unstructured.Unstructured, error)
}

func object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func apply(p place, by, text string, also ...func(*unstructured.Unstructured)) request {
	return request{by + " applies " + text, func(ctx context.Context, c dynamic.Interface, uid types.UID) (*unstructured.Unstructured, error) {
		u := object(text)
		for _, f := range also {
			f(u)
		}
		if u.GetUID() == "same" {
			u.SetUID(uid)
		}
		return p.of(c).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: by, Force: by != "polite"})
	}}
}

func withVersion(v string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetResourceVersion(v) }
}

func withUID(uid types.UID) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetUID(uid) }
}

func patch(p place, name, text string, sub ...string) request {
	return request{"patch " + name + " " + text, func(ctx context.Context, c dynamic.Interface, uid types.UID) (*unstructured.Unstructured, error) {
		body := strings.ReplaceAll(text, "UID", string(uid))
		return p.of(c).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "patcher"}, sub...)
	}}
}

func jsonPatch(p place, name, text string) request {
	return request{"JSON patch " + name + " " + text, func(ctx context.Context, c dynamic.Interface, _ types.UID) (*unstructured.Unstructured, error) {
		return p.of(c).Patch(ctx, name, types.JSONPatchType, []byte(text), metav1.PatchOptions{FieldManager: "patcher"})
	}}
}

func create(p place, text string) request {
	return request{"create " + text, func(ctx context.Context, c dynamic.Interface, _ types.UID) (*unstructured.Unstructured, error) {
		return p.of(c).Create(ctx, object(text), metav1.CreateOptions{FieldManager: "creator"})
	}}
}

func update(p place, name, path, value string) request {
	return request{"update " + name + " " + path, func(ctx context.Context, c dynamic.Interface, _ types.UID) (*unstructured.Unstructured, error) {
		u, err := p.of(c).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		_ = unstructured.SetNestedField(u.Object, value, strings.Split(path, ".")...)
		return p.of(c).Update(ctx, u, metav1.UpdateOptions{FieldManager: "updater"})
	}}
}

func remove(p place, name string, options metav1.DeleteOptions) request {
	return request{"delete " + name, func(ctx context.Context, c dynamic.Interface, uid types.UID) (*unstructured.Unstructured, error) {
		o := *options.DeepCopy()
		if o.Preconditions != nil && o.Preconditions.UID != nil && *o.Preconditions.UID == "same" {
			o.Preconditions.UID = &uid
		}
		return nil, p.of(c).Delete(ctx, name, o)
	}}
}

func get(p place, name string) request {
	return request{"get " + name, func(ctx context.Context, c dynamic.Interface, _ types.UID) (*unstructured.Unstructured, error) {
		return p.of(c).Get(ctx, name, metav1.GetOptions{})
	}}
}

func uidOf(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

const (
	oneMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {a: x}}, data: {k: v}}"
	rs     = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web}, spec: {replicas: %d, selector: {matchLabels: {a: b}}, " +
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i%s}]}}}}"
	cluster = "{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: east}, spec: {serverAddressByClientCIDRs: [{clientCIDR: 0.0.0.0/0, serverAddress: %s}]}}"
)

var background = metav1.DeletePropagationBackground

var table = []request{
	apply(files, "fed", oneMap, withVersion("1")),
	apply(files, "fed", oneMap, withVersion("1")), // 409: it is there
	apply(files, "fed", oneMap, withUID("other")), // 409: another one is there
	apply(files, "fed", oneMap, withUID("same")),
	apply(files, "fed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: none}}", withUID("other")), // 409: none is there
	patch(files, "one", `{"data": {"mine": "1"}}`),
	apply(files, "fed", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k2: v2}}"), // a field that is no more is taken away, the patcher's stays
	apply(files, "polite", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k2: other}}"),
	apply(files, "rude", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k2: other}}"),
	create(files, oneMap),
	update(files, "one", "data.k3", "v3"),
	patch(files, "one", `{"data": null, "metadata": {"resourceVersion": "1"}}`),
	patch(files, "one", `{"metadata": {"uid": "UID", "annotations": {"n": "1"}}}`),
	patch(files, "one", `{"metadata": {"uid": "other", "annotations": {"n": "1"}}}`),
	patch(files, "one", `{"data": null}`),
	patch(files, "one", `not JSON`),
	patch(files, "absent", `{"data": null}`),
	jsonPatch(files, "one", `[{"op": "add", "path": "/data", "value": {"j": "1"}}]`),
	jsonPatch(files, "one", `[{"op": "test", "path": "/data/j", "value": "2"}]`),
	patch(files, "one", `{"metadata": {"finalizers": ["example.com/wait"]}}`),
	remove(files, "one", uidOf("other")),
	remove(files, "one", uidOf("same")),
	get(files, "one"),
	remove(files, "one", uidOf("same")), // again: nothing changes
	patch(files, "one", `{"metadata": {"finalizers": ["example.com/wait", "example.com/late"]}}`),
	patch(files, "one", `{"data": {"late": "1"}}`),
	patch(files, "one", `{"metadata": {"finalizers": null}}`),
	get(files, "one"),
	remove(files, "one", metav1.DeleteOptions{}),
	create(place{configMaps, "absent"}, oneMap),
	create(sets, fmt.Sprintf(rs, 3, "1")),
	patch(sets, "web", `{"status": {"replicas": 3}}`), // not by this way
	patch(sets, "web", `{"status": {"replicas": 3}, "spec": {"replicas": 5}}`, "status"),
	apply(sets, "fed", fmt.Sprintf(rs, 4, "2")),
	patch(sets, "web", `{"metadata": {"labels": {"l": "1"}}}`),
	update(sets, "web", "metadata.annotations.a", "1"),
	remove(sets, "web", metav1.DeleteOptions{PropagationPolicy: &background}),
	get(sets, "web"),
	create(all, fmt.Sprintf(cluster, "a:1")),
	patch(all, "east", `{"status": {"region": "east", "conditions": [{"type": "Ready", "status": "True"}]}}`, "status"),
	apply(all, "fed", fmt.Sprintf(cluster, "a:2")),
	patch(all, "east", `{"status": {"region": "west"}}`),
	get(all, "east"),
	patch(all, "east", `{"metadata": {"finalizers": ["orphan", "example.com/wait"]}}`),
	remove(all, "east", metav1.DeleteOptions{PropagationPolicy: &background}),
	get(all, "east"),
	patch(all, "east", `{"metadata": {"finalizers": null}}`),
	get(all, "east"),
	create(place{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nothings"}, ""}, "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: a}}"),
}

// TestParity sends a table of requests to an API in memory and to a real one: they must answer alike.
func TestParity(t *testing.T) {
	config := startServer(t)
	real, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api := newTestAPI()
	memory := api.Client("creator", nil)
	for _, name := range []string{"kube-system", "default"} {
		create(place{namespacesResource, ""}, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}").do(t.Context(), memory, "")
	}
	var uids [2]types.UID
	for i, r := range table {
		var answers [2]answer
		for j, c := range []dynamic.Interface{real, memory} {
			u, err := r.do(t.Context(), c, uids[j])
			if u != nil {
				uids[j] = u.GetUID()
			}
			answers[j] = answerOf(u, err)
		}
		if diff := answers[0].differs(answers[1]); diff != "" {
			t.Errorf("request %d, %s: %s", i, r.what, diff)
		}
	}
}

type answer struct {
	code   int32
	reason metav1.StatusReason
	object map[string]any
	fields map[string]any
	text   string
}

func answerOf(u *unstructured.Unstructured, err error) answer {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return answer{code: status.Status().Code, reason: status.Status().Reason, text: err.Error()}
	}
	if err != nil {
		return answer{code: -1, text: err.Error()}
	}
	if u == nil {
		return answer{code: 200}
	}
	a := answer{code: 200, fields: map[string]any{}}
	for _, f := range u.GetManagedFields() {
		var owned any
		_ = json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned)
		a.fields[f.Manager+" "+string(f.Operation)+" "+f.Subresource] = owned
	}
	u = u.DeepCopy()
	if u.GetDeletionTimestamp() != nil {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	}
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", f)
	}
	a.object = u.Object
	return a
}

// differs says how the answer of memory differs from the real one. The real one may hold more: defaults.
func (real answer) differs(memory answer) string {
	if real.code != memory.code || real.reason != memory.reason {
		return fmt.Sprintf("answers %d %s (%s), in memory %d %s (%s)", real.code, real.reason, real.text, memory.code, memory.reason, memory.text)
	}
	if real.object["metadata"] != nil && !reflect.DeepEqual(real.object["metadata"], memory.object["metadata"]) {
		return fmt.Sprintf("metadata\n%v, in memory\n%v", real.object["metadata"], memory.object["metadata"])
	}
	for key, value := range memory.object {
		if !within(value, real.object[key]) {
			return fmt.Sprintf("%s\n%v, in memory\n%v", key, real.object[key], value)
		}
	}
	for key := range real.object {
		if _, there := memory.object[key]; !there && !isEmpty(real.object[key]) && key != "status" {
			return fmt.Sprintf("has %s, in memory it has none", key)
		}
	}
	leaves(real.fields)
	leaves(memory.fields)
	if len(real.fields) != len(memory.fields) || !within(memory.fields, real.fields) {
		return fmt.Sprintf("owners\n%v, in memory\n%v", real.fields, memory.fields)
	}
	return ""
}

// leaves drops the ownership of structs as such: the real server has it for pointers only.
func leaves(fields map[string]any) {
	for by, value := range fields {
		owned := value.(map[string]any)
		withoutDots(owned)
		maps.DeleteFunc(owned, func(_ string, part any) bool { return isEmpty(part) })
		if len(owned) == 0 {
			delete(fields, by)
		}
	}
}

func withoutDots(owned map[string]any) {
	delete(owned, ".")
	for _, value := range owned {
		if m, ok := value.(map[string]any); ok {
			withoutDots(m)
		}
	}
}

func isEmpty(v any) bool {
	m, ok := v.(map[string]any)
	return v == nil || ok && len(m) == 0
}

func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		for key, value := range p {
			if !ok || !within(value, w[key]) {
				return false
			}
		}
		return true
	case []any:
		w, _ := whole.([]any)
		for i := range p {
			if len(w) != len(p) || !within(p[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(part, whole)
}

// startServer runs the federation's API server, which serves Kubernetes' own kinds as Kubernetes does.
func startServer(t *testing.T) *rest.Config {
	dir, err := os.MkdirTemp("", "memapi")
	if err != nil {
		t.Fatal(err)
	}
	server, err := servertest.Start(servertest.Options(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return server.Admin
}
