package views

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/views/canonical"
)

var formats = map[string]format{"protobuf": protobufFormat{}, "JSON": jsonFormat{}}

// written returns a list as a member writes it.
func written(t testing.TB, f format, list runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), f.mediaType())
	if !ok {
		t.Fatal(f.mediaType())
	}
	var b bytes.Buffer
	if err := encoderOf(info).Encode(list, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ofShop wants the pods of namespaces shop and default of cluster west. The federation has Deployment web.
func ofShop() *wanted {
	owners := &Owners{}
	owners.Add(deployments.GroupKind(), store{"web": "federated"})
	owners.Add(replicaSets.GroupKind(), store{})
	return &wanted{kind: &pods, ours: map[string]bool{"shop": true, "default": true}, cluster: "west", owners: owners.lookup()}
}

// decodedPart is what there is to compare with: the list is decoded, and each pod changed.
func decodedPart(w *wanted, list []byte) (part, error) {
	obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDeserializer(), list)
	if err != nil {
		return part{}, err
	}
	return w.decoded(context.Background(), obj)
}

// sameParts returns how a copied part differs from the decoded one.
func sameParts(f format, copied, decoded part) error {
	if copied.version != decoded.version || copied.next != decoded.next || copied.sent != decoded.sent || copied.dropped != decoded.dropped || len(copied.items) != len(decoded.items) {
		return fmt.Errorf("%+v, and not %+v", copied, decoded)
	}
	list := &encodedList{kind: &pods, format: f}
	for _, o := range copied.items {
		list.items = append(list.items, o.encoded)
	}
	got, err := list.decode()
	if err != nil {
		return fmt.Errorf("it cannot be decoded: %w: %q", err, list.items)
	}
	for i, want := range decoded.items {
		if c := copied.items[i]; c.name != want.name || c.namespace != want.namespace {
			return fmt.Errorf("%s/%s, and not %s/%s", c.namespace, c.name, want.namespace, want.name)
		}
		if !apiequality.Semantic.DeepEqual(&got.(*corev1.PodList).Items[i], want.object) {
			a, _ := json.Marshal(got.(*corev1.PodList).Items[i])
			b, _ := json.Marshal(want.object)
			return fmt.Errorf("\n%s, and not\n%s", a, b)
		}
	}
	return nil
}

// randomPods are pods with anything in them, some of which are of Deployment web.
func randomPods(seed int64, n int) *corev1.PodList {
	r := rand.New(rand.NewSource(seed))
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, r, scheme.Codecs)
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "17", Continue: "eyJ2Ijo"}}
	pick := func(all ...string) string { return all[r.Intn(len(all))] }
	for i := range n {
		var p corev1.Pod
		filler.Fill(&p)
		p.TypeMeta = metav1.TypeMeta{}
		p.Namespace, p.Name = pick("shop", "shop", "default", "kube-system", "other", ""), pick(fmt.Sprintf("p%d", i), "web-7d-x", "a.b", "No-Name", "")
		if yes := true; r.Intn(2) == 0 {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d", UID: types.UID(pick("a", "b")), Controller: &yes})
		}
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		if r.Intn(2) == 0 {
			p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = pick("7d", "8e")
		}
		if r.Intn(3) == 0 {
			p.Labels[v1beta1.ClusterLabel] = "elsewhere"
		}
		p.Spec.NodeName = pick("n1", "n2.example", "")
		list.Items = append(list.Items, p)
	}
	return list
}

// TestCopiedPodsAreTheDecodedOnes: of random pods all are copied, and each is what decoding it makes of it.
func TestCopiedPodsAreTheDecodedOnes(t *testing.T) {
	for name, f := range formats {
		for seed := range int64(20) {
			list := written(t, f, randomPods(seed, 100))
			got, ok := ofShop().copied(t.Context(), list, f)
			if !ok {
				t.Fatalf("%s, seed %d: nothing is copied", name, seed)
			}
			want, err := decodedPart(ofShop(), list)
			if err != nil {
				t.Fatal(err)
			}
			if err := sameParts(f, got, want); err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			if shown := &(encodedList{kind: &pods, format: f, items: [][]byte{got.items[0].encoded}}); !isCopiedAgain(shown) {
				t.Errorf("%s: a federation over this one decodes %q", name, got.items[0].encoded)
			}
		}
	}
}

// isCopiedAgain reports whether a list that is served here would be copied by who asks for it.
func isCopiedAgain(list *encodedList) bool {
	var all bytes.Buffer
	_ = list.format.write(&all, list.kind, &metav1.ListMeta{}, list.items)
	_, ok := ofShop().copied(context.Background(), all.Bytes(), list.format)
	return ok
}

// hostileLists are lists in which a decoder, or another one, finds something else than they seem to be, by what they do.
func hostileLists(t testing.TB, f format) map[string][]byte {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{NodeName: "n1"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}},
	}}
	good := written(t, f, list)
	if f == format(jsonFormat{}) {
		all := map[string][]byte{}
		for name, change := range map[string][2]string{
			"another item's name":    {`"name":"a"`, `"name":"a","name":"z.east"`},
			"another metadata":       {`"spec":{`, `"metadata":{"name":"z.east","namespace":"secret"},"spec":{`},
			"metadata by its case":   {`"spec":{`, `"METADATA":{"name":"z.east","namespace":"secret"},"spec":{`},
			"another node":           {`"nodeName":"n1"`, `"nodeName":"n1","nodeName":"n1.east"`},
			"the cluster's label":    {`"app":"a"`, `"app":"a","federation.kubernetes.io/cluster":"east","federation.kubernetes.io/cluster":"east"`},
			"the label with escapes": {`"app":"a"`, `"app":"a","federation.kubernetes.io\/cluster":"east"`},
			"items twice":            {`"items":[`, `"items":[{"metadata":{"name":"z.east"}}],"items":[`},
			"items after the list":   {"]}\n", `],"items":[]}`},
			"an item after the list": {"]}\n", `]},{"metadata":{"name":"z","namespace":"shop"}}]}`},
			"another list":           {"]}\n", `]}{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`},
			"another kind":           {`"kind":"PodList"`, `"kind":"SecretList"`},
			"its version twice":      {`"resourceVersion":"1"`, `"resourceVersion":"1","resourceVersion":"2"`},
			"no list":                {`"items":[`, `"items":{`},
			"a comma at the end":     {"]}\n", ",]}"},
			"no comma":               {"},{", "}{"},
		} {
			all[name] = []byte(strings.Replace(string(good), change[0], change[1], 1))
		}
		return all
	}
	pod, err := list.Items[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	message := func(number protowire.Number, of ...[]byte) []byte {
		return appendBytes(nil, number, slices.Concat(of...))
	}
	name, metadata := appendText(nil, metadataName, "z.east"), func(of ...[]byte) []byte { return message(itemMetadata, of...) }
	namespace := appendText(nil, 3, "shop")
	lists := func(of ...[]byte) []byte {
		return slices.Concat(envelopeBegin(&pods), message(envelopeRaw, append([][]byte{message(listMetadata)}, of...)...), envelopeEnd)
	}
	return map[string][]byte{
		"another item's name":      lists(message(listItems, metadata(appendText(nil, metadataName, "a"), name, namespace))),
		"another metadata":         lists(message(listItems, pod, metadata(name))),
		"another node":             lists(message(listItems, pod, message(itemSpec, appendText(nil, specNodeName, "n1.east")))),
		"the cluster's label":      lists(message(listItems, metadata(appendText(nil, metadataName, "a"), namespace, protobufFormat{}.appendLabel(nil, v1beta1.ClusterLabel, "east"), protobufFormat{}.appendLabel(nil, v1beta1.ClusterLabel, "east")))),
		"the list's metadata":      lists(message(listItems, pod), message(listMetadata, appendText(nil, 2, "9"))),
		"a field of the list":      lists(message(listItems, pod), message(9, name)),
		"an unknown field":         lists(message(listItems, pod, message(9, name))),
		"a group":                  lists(message(listItems, pod, []byte{9<<3 | 3}, name, []byte{9<<3 | 4})),
		"an item that is too long": append(bytes.TrimSuffix(lists(message(listItems, pod)), envelopeEnd), 0x7f),
		"two lists":                append(lists(message(listItems, pod)), lists()...),
		"another kind":             bytes.Replace(lists(message(listItems, pod)), []byte("PodList"), []byte("PodLisT"), 1),
		"another encoding":         append(bytes.TrimSuffix(lists(), envelopeEnd), 3<<3|2, 1, 'x', 4<<3|2, 0),
		"an end too early":         good[:len(good)-7],
		"the end in the list":      slices.Concat(envelopeBegin(&pods), message(envelopeRaw, message(listMetadata), message(listItems, pod), envelopeEnd)),
	}
}

// TestNothingIsSmuggledIntoCopies: what a member writes for one decoder to see another pod than the next is decoded, once and for all.
func TestNothingIsSmuggledIntoCopies(t *testing.T) {
	for name, f := range formats {
		for what, list := range hostileLists(t, f) {
			if p, ok := ofShop().copied(t.Context(), list, f); ok {
				t.Errorf("%s: %s is copied: %q", name, what, p.items)
			}
		}
	}
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	for name, f := range formats {
		for what, list := range hostileLists(t, f) {
			west.set(func() {
				west.answers = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/pods") {
						return false
					}
					w.Header().Set("Content-Type", f.mediaType())
					_, _ = w.Write(list)
					return true
				}
			})
			ctx, _ := in(t, "shop")
			obj, err := v.Pods.List(context.WithValue(ctx, formatKey{}, f), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range obj.(*encodedList).GetObject().(*corev1.PodList).Items {
				if !strings.HasSuffix(p.Name, ".west") || p.Namespace != "shop" || p.Labels[v1beta1.ClusterLabel] != "west" || p.Spec.NodeName != "" && !strings.HasSuffix(p.Spec.NodeName, ".west") {
					t.Errorf("%s: %s shows %+v", name, what, p)
				}
			}
		}
	}
}

// TestAListMayComeInAnyParts: what is copied of a list is the same however it comes, and whenever it is known what is wanted of it.
func TestAListMayComeInAnyParts(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for name, f := range formats {
		lists := hostileLists(t, f)
		for _, n := range []int{0, 1, 2, 30} {
			lists[fmt.Sprint(n, " pods")] = written(t, f, randomPods(int64(n), n))
		}
		whole := written(t, f, randomPods(9, 3))
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			lists[fmt.Sprint("the first bytes: ", n)] = whole[:n]
		}
		for what, list := range lists {
			want, wantOK := ofShop().copied(t.Context(), list, f)
			for _, most := range []int{1, 3, 100, 1 << 12} {
				c := &copying{ctx: t.Context(), format: f}
				for rest, known := list, r.Intn(len(list)+1); len(rest) > 0; {
					if len(list)-len(rest) >= known {
						c.wanted.CompareAndSwap(nil, ofShop())
					}
					n := min(1+r.Intn(most), len(rest))
					part := slices.Clone(rest[:n])
					c.take(part)
					clear(part) // the next one overwrites it
					rest = rest[n:]
				}
				c.wanted.CompareAndSwap(nil, ofShop())
				got, ok := c.finish()
				if ok != wantOK || ok && (got.version != want.version || got.next != want.next || got.sent != want.sent || got.dropped != want.dropped || !reflect.DeepEqual(got.items, want.items)) {
					t.Fatalf("%s: %s, in parts of up to %d bytes: %v, and not %v", name, what, most, ok, wantOK)
				}
			}
		}
	}
}

// TestALargeItemIsTriedSeldom: a list that comes in small parts costs no more than some times its length.
func TestALargeItemIsTriedSeldom(t *testing.T) {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Annotations: map[string]string{"a": strings.Repeat("x", 1<<20)}}}
	for name, f := range formats {
		list, tries := written(t, f, &corev1.PodList{Items: []corev1.Pod{p}}), 0
		w := &walk{kind: &pods, format: counting{f, &tries}, each: func([]canonical.Part) bool { return true }}
		for at := 1000; at < len(list); at += 1000 {
			w.over(list[:at])
		}
		if tries > 2000 {
			t.Errorf("%s: %d kB were gone over", name, tries)
		}
	}
}

// counting counts the kilobytes of items that are looked at.
type counting struct {
	format
	kilobytes *int
}

func (c counting) next(k *kind, items []byte, parts []canonical.Part) ([]canonical.Part, int, bool, bool) {
	*c.kilobytes += len(items) >> 10
	return c.format.next(k, items, parts)
}

// TestListsAreTheSameInEachFormat: what lists do they do for clients of each encoding.
func TestListsAreTheSameInEachFormat(t *testing.T) {
	defer func() { accepted = nil }()
	for name, f := range formats {
		accepted = f
		for what, test := range map[string]func(*testing.T){
			"names": TestPodsOfAllMembersAreListedByName, "namespaces": TestNamespacesThatAreNotSharedShowNothing, "hangs": TestAMemberThatHangsIsAWarningWithinTwoAndAHalfSeconds,
			"tokens": TestATokenThatWasReplacedIsReadAgain, "hostile": TestWhatAHostileMemberSendsIsBounded, "pages": TestPagesHaveEachPodOnce, "budget": TestAllThatIsReadAtOnceIsBounded,
			"share": TestOneMemberDoesNotTakeAllThatIsRead, "again": TestAMemberCannotHaveEverybodyListAgain,
		} {
			t.Run(name+"/"+what, test)
		}
	}
}

// TestWhoGetsACopy: clients that accept what members write get that, and others what is made of decoded objects.
func TestWhoGetsACopy(t *testing.T) {
	for accept, want := range map[string]format{
		"": jsonFormat{}, "application/json": jsonFormat{}, "*/*": jsonFormat{}, "application/vnd.kubernetes.protobuf": protobufFormat{},
		"application/vnd.kubernetes.protobuf,application/json":             protobufFormat{},
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json":    nil,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": nil,
		"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io":  nil,
		"application/yaml": nil, "application/cbor": nil, "text/html": nil, "application/json;pretty=1": nil,
	} {
		for _, info := range []request.RequestInfo{
			{IsResourceRequest: true, Verb: "list", APIVersion: "v1", Resource: "pods"}, {IsResourceRequest: true, Verb: "watch", APIVersion: "v1", Resource: "pods"},
			{IsResourceRequest: true, Verb: "list", APIVersion: "v1", Resource: "nodes"}, {IsResourceRequest: true, Verb: "list", APIGroup: "metrics.k8s.io", APIVersion: "v1beta1", Resource: "pods"},
		} {
			r := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), &info), http.MethodGet, "/api/v1/pods", nil)
			r.Header.Set("Accept", accept)
			var got format
			WithFormats(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = r.Context().Value(formatKey{}).(format) })).ServeHTTP(nil, r)
			if isList := info.Verb == "list" && info.Resource == "pods" && info.APIGroup == ""; isList && got != want || !isList && got != nil {
				t.Errorf("%s of %s for %q: %T", info.Verb, info.Resource, accept, got)
			}
		}
	}
}

// TestAnotherEncoderGetsObjects: an audit log in JSON of a list in protobuf, for one.
func TestAnotherEncoderGetsObjects(t *testing.T) {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	for _, f := range formats {
		encoded, err := f.encode(&p)
		if err != nil {
			t.Fatal(err)
		}
		list := &encodedList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, kind: &pods, format: f, items: [][]byte{encoded}}
		for _, other := range formats {
			got, err := runtime.Decode(legacyscheme.Codecs.UniversalDeserializer(), written(t, other, list))
			if err != nil {
				t.Fatal(err)
			}
			if is := got.(*corev1.PodList); len(is.Items) != 1 || !apiequality.Semantic.DeepEqual(is.Items[0], p) || is.ResourceVersion != "7" {
				t.Errorf("%T for %T: %+v", f, other, got)
			}
		}
	}
}

// FuzzCopiedPods changes what a member writes of a pod: what is copied of that must be what decoding makes of it.
func FuzzCopiedPods(f *testing.F) {
	for _, p := range randomPods(3, 8).Items {
		for name, of := range formats {
			encoded, err := of.encode(&p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(name == "JSON", encoded)
		}
	}
	f.Add(true, []byte(`{"metadata":{"name":"a","namespace":"shop","labels":{"app":"a"}},"spec":{"nodeName":"n1"},"status":{}},{"metadata":{"name":"b","namespace":"shop"}}`))
	f.Fuzz(func(t *testing.T, inJSON bool, item []byte) {
		of := format(protobufFormat{})
		if inJSON {
			of = jsonFormat{}
		}
		var all bytes.Buffer
		if err := of.write(&all, &pods, &metav1.ListMeta{ResourceVersion: "1"}, [][]byte{item}); err != nil {
			t.Fatal(err)
		}
		list := all.Bytes()
		copied, ok := ofShop().copied(t.Context(), list, of)
		if !ok {
			return
		}
		decoded, err := decodedPart(ofShop(), list)
		if err != nil {
			t.Fatalf("%v: %q", err, list)
		}
		if err := sameParts(of, copied, decoded); err != nil {
			t.Fatalf("%v: %q", err, list)
		}
	})
}

// BenchmarkCopied is what a member's list of 10,000 pods takes here.
func BenchmarkCopied(b *testing.B) {
	list := &corev1.PodList{}
	yes := true
	for i := range 10000 {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("web-7d4b9c6f5-%05d", i), UID: "5f0c2a64-0000-4000-8000-000000000000", ResourceVersion: "1",
				Labels:          map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5", UID: "u", Controller: &yes}},
			},
			Spec:   corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web", Image: "registry.example/team/web:v1.2.3", Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.128.0.1", Conditions: make([]corev1.PodCondition, 5)},
		})
	}
	for name, f := range formats {
		body := written(b, f, list)
		b.Run(name+"/copied", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := ofShop().copied(b.Context(), body, f); !ok {
					b.Fatal("it is decoded")
				}
			}
		})
		b.Run(name+"/decoded", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := decodedPart(ofShop(), body)
				if err != nil || p.encode(f) != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
