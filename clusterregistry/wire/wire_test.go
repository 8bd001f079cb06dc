package wire

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

var serializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func noManagedFields(o metav1.Object) { o.SetManagedFields(nil) }

// encoded returns an object as an apiserver sends it.
func encoded(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := serializer.Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is read from protobuf must be, field by field, what would have been read from JSON.
func TestProtobufReadsAsJSONDoes(t *testing.T) {
	const seed = 7
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	for _, obj := range []runtime.Object{
		&corev1.Namespace{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.ServiceAccount{},
		&appsv1.ReplicaSet{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.Job{}, &batchv1.CronJob{},
		&networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{},
		&discoveryv1.EndpointSlice{},
	} {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			obj := obj.DeepCopyObject()
			filler.Fill(obj)
			obj.GetObjectKind().SetGroupVersionKind(kinds[0])
			obj.(metav1.Object).SetManagedFields(nil)
			got, _, err := reader{serializer, noManagedFields}.Decode(encoded(t, obj), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			stored, _, err := serializer.Decode(encoded(t, obj), nil, nil) // as an apiserver has it, whatever it sends
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			held, err := pack(stored, kinds[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []any{got, unpack(held)} {
				if !reflect.DeepEqual(got, want) {
					b, _ := json.Marshal(got)
					t.Fatalf("%s (seed %d):\n%s\n%s", kinds[0].Kind, seed, b, text)
				}
			}
		}
	}
}

// api answers in protobuf where it is asked for it, as far as these tests go.
func api(t *testing.T) *httptest.Server {
	web := appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "shop", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	var busy, proxied atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"new":1}}`))
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		switch {
		case r.URL.Query().Has("watch"):
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
			event := &metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Raw: encoded(t, &web)}}
			var b bytes.Buffer
			if err := protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(event, &b); err != nil {
				t.Error(err)
			}
			_, _ = protobuf.LengthDelimitedFramer.NewFrameWriter(w).Write(b.Bytes())
		case r.Method == http.MethodPatch && r.URL.Path == "/apis/apps/v1/namespaces/shop/replicasets/web" && r.URL.Query().Get("fieldManager") == "test":
			_, _ = w.Write(encoded(t, &web))
		case strings.HasSuffix(r.URL.Path, "/busy") && busy.Add(1)%3 != 0:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.HasSuffix(r.URL.Path, "/busy"):
			_, _ = w.Write(encoded(t, &web))
		case strings.HasSuffix(r.URL.Path, "/text"):
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write([]byte(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web","resourceVersion":"7","managedFields":[{"manager":"kubectl"}]}}`))
		case strings.HasSuffix(r.URL.Path, "/proxy"):
			if proxied.Add(1) > 1 {
				t.Error("what a proxy refuses is asked for twice")
			}
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write(bytes.Repeat([]byte("no "), 1<<20))
		case strings.HasSuffix(r.URL.Path, "/aggregated"):
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"of another version"}`))
		case strings.HasSuffix(r.URL.Path, "/gone"):
			status := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "gone").Status()
			status.APIVersion, status.Kind = "v1", "Status"
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(encoded(t, &status))
		default:
			_, _ = w.Write(encoded(t, &appsv1.ReplicaSetList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSetList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []appsv1.ReplicaSet{web}}))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheClient(t *testing.T) {
	s := api(t)
	c, err := NewDynamic(&rest.Config{Host: s.URL}, s.Client(), noManagedFields)
	if err != nil {
		t.Fatal(err)
	}
	ctx, sets := t.Context(), appsv1.SchemeGroupVersion.WithResource("replicasets")
	is := func(what string, u *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil || u.GetKind() != "ReplicaSet" || u.GetAPIVersion() != "apps/v1" || u.GetName() != "web" || u.GetResourceVersion() != "7" || len(u.GetManagedFields()) > 0 {
			t.Errorf("%s: %v, %v", what, u, err)
		}
	}
	list, err := c.Resource(sets).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.GetResourceVersion() != "9" || list.GetKind() != "ReplicaSetList" {
		t.Fatalf("list: %v, %v", list, err)
	}
	is("list", &list.Items[0], nil)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet"}}
	applied, err := c.Resource(sets).Namespace("shop").Apply(ctx, "web", u, metav1.ApplyOptions{FieldManager: "test"})
	is("apply", applied, err)
	body, options := []byte(`{"apiVersion":"apps/v1","kind":"ReplicaSet"}`), metav1.PatchOptions{FieldManager: "test", Force: new(true)}
	got, err := c.Apply(ctx, sets, types.NamespacedName{Namespace: "shop", Name: "web"}, body, options)
	answer, ok := got.(Answer)
	if err != nil || !ok || answer.GetUID() != "" || answer.Typed().(*appsv1.ReplicaSet).Name != "web" {
		t.Fatalf("an answer to an apply: %v, %v", got, err)
	}
	is("answer", answer.Unpack(), nil)
	if _, err := c.Apply(ctx, sets, types.NamespacedName{Namespace: "shop", Name: "gone"}, body, options); !apierrors.IsNotFound(err) {
		t.Errorf("an error is read as %v", err)
	}
	for _, name := range []string{"busy", "text"} {
		got, err := c.Apply(ctx, sets, types.NamespacedName{Namespace: "shop", Name: name}, body, options)
		u, ok := got.(*unstructured.Unstructured)
		if answer, typed := got.(Answer); typed {
			u, ok = answer.Unpack(), true
		}
		if !ok {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		is(name, u, err)
	}
	if _, err := c.Apply(ctx, sets, types.NamespacedName{Namespace: "shop", Name: "proxy"}, body, options); !apierrors.IsInternalError(err) || len(err.Error()) > 4096 {
		t.Errorf("what a proxy says is read as %.100v", err)
	}
	if _, err := c.Apply(ctx, sets, types.NamespacedName{Namespace: "shop", Name: "aggregated"}, body, options); !apierrors.IsConflict(err) {
		t.Errorf("an error in JSON is read as %v", err)
	}
	if _, err := c.Resource(sets).Namespace("shop").Get(ctx, "gone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an error is read as %v", err)
	}
	w, err := c.Resource(sets).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	event := <-w.ResultChan()
	watched, _ := event.Object.(*unstructured.Unstructured)
	is("watch", watched, nil)
	widget, err := c.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Get(ctx, "w", metav1.GetOptions{})
	if err != nil || widget.GetKind() != "Widget" {
		t.Errorf("a custom kind: %v, %v", widget, err)
	}
}
