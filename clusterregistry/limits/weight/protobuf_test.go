package weight

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

var serializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// allocated returns how many bytes a function allocates, what it lets go included.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

const (
	// spare is how much is allocated beside what is decoded, in bytes.
	spare = 64 << 10
	// garbage is how many times its size a list allocates in all, as it grows by a quarter each time, and some more.
	garbage = 6
)

// bytesOf is a field of protobuf with bytes.
func bytesOf(number int, content []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

// objectOf is an object of a kind in its envelope.
func objectOf(gvk schema.GroupVersionKind, content []byte) []byte {
	about := slices.Concat(bytesOf(1, []byte(gvk.GroupVersion().String())), bytesOf(2, []byte(gvk.Kind)))
	return slices.Concat([]byte(magic), bytesOf(1, about), bytesOf(2, content))
}

// Of each field of all kinds of Kubernetes, a thousand of the shortest that there can be take no more than is said.
func TestNoFieldTakesMoreThanItWeighs(t *testing.T) {
	const many = 1000
	fields, seen := 0, map[reflect.Type]bool{}
	for gvk, top := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == k8sruntime.APIVersionInternal || !strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		var walk func(in reflect.Type, wrap func([]byte) []byte)
		walk = func(in reflect.Type, wrap func([]byte) []byte) {
			if seen[in] {
				return
			}
			seen[in] = true
			for i := range in.NumField() {
				f := in.Field(i)
				parts := strings.Split(f.Tag.Get("protobuf"), ",")
				if len(parts) < 2 {
					continue
				}
				number, err := strconv.Atoi(parts[1])
				if err != nil {
					t.Fatalf("%v.%s: %v", in, f.Name, err)
				}
				of := f.Type
				for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
					of = of.Elem()
				}
				var shortest [][]byte
				switch {
				case parts[0] == "varint":
					shortest = [][]byte{append(binary.AppendUvarint(nil, uint64(number)<<3), 1), bytesOf(number, bytes.Repeat([]byte{1}, 100))}
				case parts[0] == "fixed64":
					shortest = [][]byte{append(binary.AppendUvarint(nil, uint64(number)<<3|1), make([]byte, 8)...)}
				case f.Type.Kind() == reflect.Map:
					// Of entries of one key but the last are let go.
					var entries []byte
					for n := range many {
						entries = append(entries, bytesOf(number, slices.Concat(bytesOf(1, []byte(strconv.Itoa(n))), bytesOf(2, nil)))...)
					}
					shortest = [][]byte{entries, bytesOf(number, nil)}
				default:
					// A list of texts in a type of its own has them as field 1.
					shortest = [][]byte{bytesOf(number, nil), bytesOf(number, []byte("ab")), bytesOf(number, bytes.Repeat(bytesOf(1, nil), 100))}
				}
				for _, s := range shortest {
					fields++
					content := wrap(bytes.Repeat(s, 1+many*4/(4+len(s))))
					data := objectOf(gvk, content)
					w := NewProtobuf(false)
					if _, _, err := w.Add(data); err != nil {
						continue // nobody decodes it
					}
					took := allocated(func() { _, _, _ = serializer.Decode(data, nil, nil) }) // texts are no quantities, but have been read by then
					if took > garbage*w.total.takes+8*int64(len(data))+spare {
						t.Errorf("%v: %v.%s: %d bytes take %d, weighed %d (%q)", gvk, in, f.Name, len(data), took, w.total.takes, s[:min(8, len(s))])
					}
				}
				if of.Kind() == reflect.Struct {
					walk(of, func(content []byte) []byte { return wrap(bytesOf(number, content)) })
				}
			}
		}
		walk(top, func(content []byte) []byte { return content })
	}
	if fields < 1000 {
		t.Errorf("only %d fields have been tried", fields)
	}
}

// honest are lists as clusters send them.
func honest() map[string]k8sruntime.Object {
	about := func(name string) metav1.ObjectMeta {
		managed := []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{}}}}`)}}}
		controls := true
		return metav1.ObjectMeta{Name: name, Namespace: "default", UID: "0d6bd7f6-4f0a-4a6c-9d11-0f4a43a3ac11", ResourceVersion: "123456", CreationTimestamp: metav1.Now(), Labels: map[string]string{"app": "web", "pod-template-hash": "5f6c7d8b9"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5f6c7d8b9", UID: "7d6bd7f6-4f0a-4a6c-9d11-0f4a43a3ac11", Controller: &controls, BlockOwnerDeletion: &controls}}, ManagedFields: managed}
	}
	pods, slicesOf, events := &corev1.PodList{}, &discoveryv1.EndpointSliceList{}, &corev1.EventList{}
	ready := true
	for i := range 100 {
		name := fmt.Sprintf("web-5f6c7d8b9-%05d", i)
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: about(name),
			Spec: corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1.2.3", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}}}, Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}}},
			Status: corev1.PodStatus{Phase: "Running", PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: metav1.Now()}, {Type: "Initialized", Status: "True"}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, Image: "registry.example/web:1.2.3", ImageID: "registry.example/web@sha256:0123456789012345678901234567890123456789012345678901234567890123", ContainerID: "containerd://0123456789"}}}})
		slice := discoveryv1.EndpointSlice{ObjectMeta: about(name), AddressType: "IPv4"}
		for e := range 20 {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, e)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name, UID: "7d6bd7f6-4f0a-4a6c-9d11-0f4a43a3ac11"}})
		}
		slicesOf.Items = append(slicesOf.Items, slice)
		events.Items = append(events.Items, corev1.Event{ObjectMeta: about(name), Reason: "Pulled", Message: "Container image already present on machine", Count: 1, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: name}})
	}
	return map[string]k8sruntime.Object{"PodList": pods, "EndpointSliceList": slicesOf, "EventList": events}
}

// encoded is an object in protobuf, in its envelope.
func encoded(t testing.TB, object k8sruntime.Object) *bytes.Buffer {
	t.Helper()
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvks[0])
	data := &bytes.Buffer{}
	if err := serializer.Encode(object, data); err != nil {
		t.Fatal(err)
	}
	return data
}

// What clusters send costs its length, in whatever parts it comes.
func TestHonestListsCostTheirLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind, list := range honest() {
		data := encoded(t, list)
		length := int64(data.Len())
		whole := NewProtobuf(false)
		if cost, _, err := whole.Add(data.Bytes()); cost != length || whole.state != tag || err != nil {
			t.Errorf("%s: %d bytes cost %d, and are read to state %d, %v", kind, length, cost, whole.state, err)
		}
		t.Logf("%s: %d bytes take %.1f times that", kind, length, float64(whole.total.takes)/float64(length))
		parts := NewProtobuf(false)
		for data.Len() > 0 {
			_, _, _ = parts.Add(data.Next(1 + r.IntN(40)))
		}
		if parts.total != whole.total {
			t.Errorf("%s: in parts it costs %+v, and at once %+v", kind, parts.total, whole.total)
		}
	}
}

// Each event of a watch is weighed by itself.
func TestEventsOfProtobufAreWeighedOneByOne(t *testing.T) {
	empty := func(pods int) []byte {
		object := objectOf(corev1.SchemeGroupVersion.WithKind("PodList"), bytes.Repeat(bytesOf(2, nil), pods))
		content := slices.Concat(bytesOf(1, []byte("ADDED")), bytesOf(2, bytesOf(1, object)))
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
	}
	w := NewProtobuf(true)
	_, first, _ := w.Add(empty(1000))
	_, second, _ := w.Add(empty(10))
	total, both, err := w.Add(slices.Concat(empty(2000), empty(10)))
	if err != nil || w.state != frame || first < 50_000 || second > first/50 || both < first*3/2 || total < first+both {
		t.Errorf("events cost %d, %d, then %d, all of them %d; state %d, %v", first, second, both, total, w.state, err)
	}
}

// What a decoder could read in another way is refused, in whatever parts it comes.
func TestWhatCouldBeReadOtherwiseIsRefused(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithKind("PodList")
	items := bytes.Repeat(bytesOf(2, nil), 100)
	about := slices.Concat(bytesOf(1, []byte("v1")), bytesOf(2, []byte("PodList")))
	labels := func(entry []byte) []byte { return bytesOf(2, bytesOf(1, bytesOf(11, entry))) }
	frameOf := func(content []byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
	}
	object := objectOf(pods, items)
	for name, c := range map[string]struct {
		events bool
		data   []byte
	}{
		"nothing is said about the kind":     {false, slices.Concat([]byte(magic), bytesOf(2, items))},
		"a kind that nobody knows":           {false, objectOf(schema.GroupVersionKind{Version: "v1", Kind: "Nothing"}, items)},
		"a kind that is too long":            {false, objectOf(schema.GroupVersionKind{Version: "v1", Kind: strings.Repeat("x", 300)}, items)},
		"the kind comes later":               {false, slices.Concat([]byte(magic), bytesOf(2, items), bytesOf(1, about))},
		"the kind changes":                   {false, append(objectOf(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"}, nil), slices.Concat(bytesOf(1, about), bytesOf(2, items))...)},
		"two objects":                        {false, append(slices.Clone(object), bytesOf(2, items)...)},
		"no envelope":                        {false, items},
		"a group":                            {false, objectOf(pods, append([]byte{3<<3 | 3}, items...))},
		"more than there is":                 {false, objectOf(pods, append([]byte{2<<3 | 2, 3, 1<<3 | 2, 100}, items...))},
		"a fixed number past the end":        {false, append(objectOf(pods, append(bytes.Clone(items), 15<<3|1, 0)), bytesOf(2, items)...)},
		"a number past the end":              {false, append(objectOf(pods, append(bytes.Clone(items), 15<<3, 0x80)), bytesOf(2, items)...)},
		"no field":                           {false, objectOf(pods, []byte{0, 0})},
		"a field's number that is truncated": {false, objectOf(pods, append(binary.AppendUvarint(nil, (1<<32+2)<<3|2), 0))},
		"a number without an end":            {false, objectOf(pods, bytes.Repeat([]byte{0xff}, 11))},
		"a map's key as a number":            {false, objectOf(pods, labels([]byte{1 << 3, 20}))},
		"a map's key as a fixed number":      {false, objectOf(pods, labels(append([]byte{1<<3 | 1}, make([]byte, 8)...)))},
		"a map's key past its entry":         {false, objectOf(pods, append(labels([]byte{1<<3 | 2, 20}), make([]byte, 30)...))},
		"a map's value past its entry":       {false, objectOf(pods, append(labels([]byte{2<<3 | 2, 20}), make([]byte, 30)...))},
		"a huge quantity":                    {false, objectOf(corev1.SchemeGroupVersion.WithKind("Node"), bytesOf(3, bytesOf(1, slices.Concat(bytesOf(1, []byte("cpu")), bytesOf(2, bytesOf(1, []byte("1e2000000000")))))))},
		"a long quantity":                    {false, objectOf(corev1.SchemeGroupVersion.WithKind("Node"), bytesOf(3, bytesOf(1, slices.Concat(bytesOf(1, []byte("cpu")), bytesOf(2, bytesOf(1, bytes.Repeat([]byte("1"), 100)))))))},
		"neither a number nor a text":        {false, objectOf(corev1.SchemeGroupVersion.WithKind("Service"), bytesOf(2, bytesOf(1, bytesOf(4, []byte{1 << 3, 2}))))},
		"fields in CBOR":                     {false, objectOf(pods, bytesOf(2, bytesOf(1, bytesOf(17, bytesOf(7, bytesOf(1, []byte{0xd9, 0xd9, 0xf7, 0xa0}))))))},
		"two objects in an event":            {true, frameOf(slices.Concat(bytesOf(2, bytesOf(1, object)), bytesOf(2, bytesOf(1, object))))},
		"an event that is too short":         {true, append(frameOf(bytesOf(2, bytesOf(1, object)))[:4], 2<<3|2, 0xff, 0xff, 3)},
		"an event without an envelope":       {true, frameOf(bytesOf(2, bytesOf(1, items)))},
	} {
		whole, parts := NewProtobuf(c.events), NewProtobuf(c.events)
		_, _, err := whole.Add(c.data)
		var byBytes error
		for i := range c.data {
			_, _, byBytes = parts.Add(c.data[i : i+1])
		}
		if err == nil || byBytes == nil || err.Error() != byBytes.Error() {
			t.Errorf("%s: at once %v, in parts %v", name, err, byBytes)
		}
	}
	if _, _, err := Refuse("it is YAML").Add(nil); err != nil {
		t.Errorf("an answer without bytes: %v", err)
	}
	if _, _, err := Refuse("it is YAML").Add(items); err == nil {
		t.Error("what is refused passes")
	}
}

// No object that has all of its fields is refused, of any kind.
func TestNoHonestObjectIsRefused(t *testing.T) {
	kinds := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(gvk)
		if err != nil || gvk.Version == k8sruntime.APIVersionInternal || gvk.Kind == "WatchEvent" {
			continue
		}
		fill(reflect.ValueOf(object).Elem(), 0)
		object.GetObjectKind().SetGroupVersionKind(gvk)
		var data bytes.Buffer
		if err := serializer.Encode(object, &data); err != nil {
			continue // of options and the like
		}
		kinds++
		if _, _, err := NewProtobuf(false).Add(data.Bytes()); err != nil {
			t.Errorf("%v: %v", gvk, err)
		}
	}
	if kinds < 300 {
		t.Errorf("only %d kinds have been tried", kinds)
	}
}

// fill sets all fields of a value, down to some depth.
func fill(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch o := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*o = resource.MustParse("12345678901234567890123Mi")
		return
	case *intstr.IntOrString:
		*o = intstr.FromString("http")
		return
	case *metav1.Time:
		*o = metav1.Now()
		return
	case *metav1.MicroTime:
		*o = metav1.NowMicro()
		return
	case *metav1.FieldsV1:
		o.SetRawBytes([]byte(`{"f:a":{}}`))
		return
	case *k8sruntime.RawExtension:
		o.Raw = []byte(`{"a":[1]}`)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(-1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(200)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	}
}

// Nothing that is not refused takes more memory than it weighs, and no bytes make a Weigher panic.
func FuzzProtobuf(f *testing.F) {
	f.Add("v1", "PodList", []byte{}, bytesOf(2, nil))
	f.Add("v1", "PodList", []byte{}, bytesOf(2, bytesOf(2, bytesOf(2, nil))))
	f.Add("discovery.k8s.io/v1", "EndpointSliceList", []byte{}, bytesOf(2, bytesOf(3, bytesOf(1, nil))))
	f.Add("v1", "NodeList", []byte{1}, bytesOf(2, bytesOf(3, bytesOf(1, bytesOf(1, []byte("cpu"))))))
	f.Fuzz(func(t *testing.T, version, kind string, before, item []byte) {
		about := slices.Concat(bytesOf(1, []byte(version)), bytesOf(2, []byte(kind)))
		data := slices.Concat([]byte(magic), bytesOf(1, about), before, bytesOf(2, bytes.Repeat(item, min(2000, (1<<20)/max(1, len(item))))))
		events := NewProtobuf(true)
		_, _, _ = events.Add(data)
		_, _, _ = events.Add(item)
		w := NewProtobuf(false)
		if _, _, err := w.Add(data); err != nil {
			return // nobody decodes it
		}
		if took := allocated(func() { _, _, _ = serializer.Decode(data, nil, nil) }); took > garbage*w.total.takes+8*int64(len(data))+(1<<20) {
			t.Errorf("%d bytes take %d, weighed %d", len(data), took, w.total.takes)
		}
	})
}
