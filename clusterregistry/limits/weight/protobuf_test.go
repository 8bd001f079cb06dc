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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
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
					w.Add(data)
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

// What clusters send costs its length, in whatever parts it comes.
func TestHonestListsCostTheirLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind, list := range honest() {
		gvks, _, err := scheme.Scheme.ObjectKinds(list)
		if err != nil {
			t.Fatal(err)
		}
		list.GetObjectKind().SetGroupVersionKind(gvks[0])
		var data bytes.Buffer
		if err := serializer.Encode(list, &data); err != nil {
			t.Fatal(err)
		}
		length := int64(data.Len())
		whole := NewProtobuf(false)
		if cost, _ := whole.Add(data.Bytes()); cost != length || whole.state != tag {
			t.Errorf("%s: %d bytes cost %d, and are read to state %d", kind, length, cost, whole.state)
		}
		t.Logf("%s: %d bytes take %.1f times that", kind, length, float64(whole.total.takes)/float64(length))
		parts := NewProtobuf(false)
		for data.Len() > 0 {
			parts.Add(data.Next(1 + r.IntN(40)))
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
	_, first := w.Add(empty(1000))
	_, second := w.Add(empty(10))
	total, both := w.Add(slices.Concat(empty(2000), empty(10)))
	if w.state != frame || first < 100_000 || second > first/50 || both < first*3/2 || total < first+both {
		t.Errorf("events cost %d, %d, then %d, all of them %d; state %d", first, second, both, total, w.state)
	}
}

// What can't be understood costs as much as anything could.
func TestWhatIsUnclearIsExpensive(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithKind("PodList")
	items := bytes.Repeat(bytesOf(2, nil), 1000)
	about := slices.Concat(bytesOf(1, []byte("v1")), bytesOf(2, []byte("PodList")))
	for name, data := range map[string][]byte{
		"nothing is said about the kind": slices.Concat([]byte(magic), bytesOf(2, items)),
		"a kind that nobody knows":       objectOf(schema.GroupVersionKind{Version: "v1", Kind: "Nothing"}, items),
		"the kind comes later":           slices.Concat([]byte(magic), bytesOf(2, items), bytesOf(1, about)),
		"the kind changes":               append(objectOf(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"}, nil), slices.Concat(bytesOf(1, about), bytesOf(2, items))...),
		"no envelope":                    items,
		"a group":                        objectOf(pods, append([]byte{3<<3 | 3}, items...)),
		"more than there is":             objectOf(pods, append([]byte{2<<3 | 2, 1}, append([]byte{1<<3 | 2, 100}, items...)...)),
	} {
		if cost, _ := NewProtobuf(false).Add(data); cost < 1000*64 {
			t.Errorf("%s: it costs %d", name, cost)
		}
	}
	if cost, _ := Unknown().Add(items); cost < 1000*64 {
		t.Errorf("what may be anything costs %d", cost)
	}
}

// Nothing takes more memory than it weighs, and no bytes make Weigher panic.
func FuzzProtobuf(f *testing.F) {
	f.Add("v1", "PodList", []byte{}, bytesOf(2, nil))
	f.Add("v1", "PodList", []byte{}, bytesOf(2, bytesOf(2, bytesOf(2, nil))))
	f.Add("discovery.k8s.io/v1", "EndpointSliceList", []byte{}, bytesOf(2, bytesOf(3, bytesOf(1, nil))))
	f.Add("v1", "NodeList", []byte{1}, bytesOf(2, bytesOf(3, bytesOf(1, bytesOf(1, []byte("cpu"))))))
	f.Fuzz(func(t *testing.T, version, kind string, before, item []byte) {
		about := slices.Concat(bytesOf(1, []byte(version)), bytesOf(2, []byte(kind)))
		data := slices.Concat([]byte(magic), bytesOf(1, about), before, bytesOf(2, bytes.Repeat(item, min(2000, (1<<20)/max(1, len(item))))))
		w := NewProtobuf(false)
		w.Add(data)
		if took := allocated(func() { _, _, _ = serializer.Decode(data, nil, nil) }); took > garbage*w.total.takes+8*int64(len(data))+(1<<20) {
			t.Errorf("%d bytes take %d, weighed %d", len(data), took, w.total.takes)
		}
		events := NewProtobuf(true)
		events.Add(data)
		events.Add(item)
	})
}
