package canonical

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

var podForm = Of[corev1.Pod]("metadata.", "metadata.name", "metadata.labels.", "metadata.managedFields", "spec.", "spec.nodeName")

func examplePod() *corev1.Pod {
	yes := true
	now := metav1.NewTime(time.Unix(1700000000, 0))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "5f0c2a64-0000-4000-8000-000000000001", ResourceVersion: "1", CreationTimestamp: now,
			Labels:          map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", Time: &now, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"k:{\"type\":\"Ready\"}":{".":{}}}}`)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
			Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "A", Value: "<é\n"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func inProtobuf(t testing.TB, p *corev1.Pod) []byte {
	data, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func inJSON(t testing.TB, p *corev1.Pod) []byte {
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWhatKubernetesWritesIsCanonical: of random pods, whatever they have.
func TestWhatKubernetesWritesIsCanonical(t *testing.T) {
	const seed = 11
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	for i := range 2000 {
		p := &corev1.Pod{}
		filler.Fill(p)
		p.TypeMeta = metav1.TypeMeta{}
		if _, ok := podForm.Protobuf(inProtobuf(t, p), nil); !ok {
			t.Fatalf("pod %d of seed %d in protobuf: %s", i, seed, inJSON(t, p))
		}
		if _, rest, ok := podForm.JSON(inJSON(t, p), nil); !ok || len(rest) > 0 {
			t.Fatalf("pod %d of seed %d, before %.200s: %s", i, seed, rest, inJSON(t, p))
		}
	}
}

func TestPartsAreWhatIsNamedAndWhatIsBetween(t *testing.T) {
	want := "metadata.name metadata. metadata.labels/app metadata.labels/pod-template-hash metadata. metadata.managedFields spec. spec.nodeName"
	for name, cut := range map[string]func() []Part{
		"JSON":     func() []Part { parts, _, _ := podForm.JSON(inJSON(t, examplePod()), nil); return parts },
		"protobuf": func() []Part { parts, _ := podForm.Protobuf(inProtobuf(t, examplePod()), nil); return parts },
	} {
		var all []string
		for _, p := range cut() {
			is := p.Path
			if p.Key != nil {
				is += "/" + string(p.Key)
			}
			all = append(all, is)
			if p.Path == "metadata.name" && strings.Trim(string(p.Value), `"`) != "web-1" {
				t.Errorf("%s: name %q", name, p.Value)
			}
			if p.Path == "metadata." && len(all) == 2 && name == "JSON" && !strings.HasSuffix(string(p.Raw), `"creationTimestamp":"2023-11-14T22:13:20Z"`) {
				t.Errorf("%s: before the labels is %q", name, p.Raw)
			}
		}
		if got := strings.Join(all, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " ") { // what ends is the status, which is in no object that is named
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhatDecodersCouldReadOtherwiseIsNotCanonicalJSON: each is a change of a pod that is.
func TestWhatDecodersCouldReadOtherwiseIsNotCanonicalJSON(t *testing.T) {
	good := string(inJSON(t, examplePod()))
	for name, change := range map[string][2]string{
		"a name twice":              {`"name":"web-1"`, `"name":"web-1","name":"other"`},
		"a name twice, apart":       {`"uid":`, `"name":"other","uid":`},
		"metadata twice":            {`"spec":{`, `"metadata":{"name":"other"},"spec":{`},
		"metadata in another case":  {`"spec":{`, `"Metadata":{"name":"other"},"spec":{`},
		"metadata after all":        {`"status":{`, `"metadata":{},"status":{`},
		"a node twice":              {`"nodeName":"n1"`, `"nodeName":"n1","nodeName":"n2"`},
		"a label twice":             {`"app":"web"`, `"app":"web","app":"other"`},
		"labels without order":      {`"app":"web"`, `"z":"web"`},
		"an escaped label twice":    {`"app":"web"`, `"app":"web","\u0061pp":"other"`},
		"an unknown field":          {`"nodeName":"n1"`, `"nodeName":"n1","zz":1`},
		"a field of no object":      {`"spec":{`, `"zz":{},"spec":{`},
		"its kind":                  {`{"metadata"`, `{"kind":"Secret","metadata"`},
		"a list for an object":      {`"spec":{"containers"`, `"spec":["containers"`},
		"a number for a text":       {`"nodeName":"n1"`, `"nodeName":1`},
		"nothing for a text":        {`"nodeName":"n1"`, `"nodeName":null`},
		"nothing for a list":        {`"env":[{"name":"A","value":"\u003cé\n"}]`, `"env":null`},
		"blanks":                    {`"nodeName":"n1"`, `"nodeName": "n1"`},
		"a control character":       {`"web:1"`, "\"web:\x1b\""},
		"no UTF-8":                  {`"web:1"`, "\"web:\xff\""},
		"half a character":          {`"web:1"`, `"web:\ud800"`},
		"an escape that is none":    {`"web:1"`, `"web:\x31"`},
		"an escape that ends early": {`"web:1"`, `"web:\u00`},
		"no quantity":               {`"100m"`, `"100x"`},
		"a quantity of many digits": {`"100m"`, `"1000000000000000000000000000m"`},
		"a quantity with exponent":  {`"100m"`, `"1e999999"`},
		"no time":                   {`"2023-11-14T22:13:20Z"`, `"2023-13-14T22:13:20Z"`},
		"a time elsewhere":          {`"2023-11-14T22:13:20Z"`, `"2023-11-14T22:13:20+01:00"`},
		"deep":                      {`{".":{}}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)},
		"an end too early":          {`"status":{`, `}`},
		"a comma too many":          {`"status":{`, `,"status":{`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Errorf("%s: nothing is changed in %s", name, good)
		}
		if _, rest, ok := podForm.JSON([]byte(bad), nil); ok && len(rest) == 0 {
			t.Errorf("%s is canonical: %s", name, bad)
		}
	}
	for i := range good {
		if _, _, ok := podForm.JSON([]byte(good[:i]), nil); ok {
			t.Errorf("the first %d bytes are canonical", i)
		}
	}
}

func wireField(number protowire.Number, content ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// TestWhatDecodersCouldReadOtherwiseIsNotCanonicalProtobuf: the same, in protobuf.
func TestWhatDecodersCouldReadOtherwiseIsNotCanonicalProtobuf(t *testing.T) {
	join := func(all ...[]byte) (data []byte) {
		for _, one := range all {
			data = append(data, one...)
		}
		return data
	}
	varint := func(number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
	}
	name, namespace := wireField(1, 'a'), wireField(3, 's')
	label := func(key, value byte) []byte { return wireField(11, join(wireField(1, key), wireField(2, value))...) }
	meta := wireField(1, join(name, namespace)...)
	if _, ok := podForm.Protobuf(join(meta, wireField(2, wireField(10, 'n')...)), nil); !ok {
		t.Fatal("the good one is not")
	}
	for about, data := range map[string][]byte{
		"metadata twice":                  join(meta, meta),
		"metadata after spec":             join(wireField(2), meta),
		"a name twice":                    wireField(1, join(name, name, namespace)...),
		"a name at the end":               wireField(1, join(namespace, name)...),
		"a node twice":                    join(meta, wireField(2, join(wireField(10, 'n'), wireField(10, 'm'))...)),
		"a label twice":                   wireField(1, join(name, namespace, label('a', '1'), label('a', '2'))...),
		"labels without order":            wireField(1, join(name, namespace, label('b', '1'), label('a', '2'))...),
		"a label with two keys":           wireField(1, join(name, wireField(11, join(wireField(1, 'a'), wireField(1, 'b'), wireField(2, 'c'))...))...),
		"a label without a value":         wireField(1, join(name, wireField(11, wireField(1, 'a')...))...),
		"an unknown field":                join(meta, wireField(9, 'x')),
		"an unknown field of many":        join(meta, wireField(1<<20, 'x')),
		"a group":                         join(meta, []byte{2<<3 | 3, 2<<3 | 4}),
		"the end of a group":              join(meta, []byte{2<<3 | 4}),
		"a number for a text":             wireField(1, varint(1, 1)...),
		"a text for a number":             wireField(1, join(name, wireField(7, 'x'))...),
		"field 0":                         join([]byte{0, 0}, meta),
		"a length beyond the end":         join(meta, []byte{2<<3 | 2, 100}),
		"a length without end":            join(meta, []byte{2<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}),
		"a number of more than 32 bits":   join(meta, wireField(2, wireField(2, wireField(6, join(wireField(1), varint(2, 1<<33))...)...)...)),
		"a time with nanoseconds":         wireField(1, join(name, wireField(8, join(varint(1, 1), varint(2, 1))...))...),
		"a truth of 2":                    join(meta, wireField(2, varint(11, 2)...)),
		"managed fields that are no JSON": wireField(1, join(name, wireField(17, wireField(7, wireField(1, '{')...)...))...),
	} {
		if _, ok := podForm.Protobuf(data, nil); ok {
			t.Errorf("%s is canonical: %x", about, data)
		}
	}
	good := inProtobuf(t, examplePod())
	for i := 1; i < len(good); i++ {
		if _, ok := podForm.Protobuf(good[:i], nil); ok && (&corev1.Pod{}).Unmarshal(good[:i]) != nil {
			t.Errorf("the first %d bytes are canonical, and cannot be decoded", i)
		}
	}
}

func BenchmarkPod(b *testing.B) {
	var parts []Part
	raw, text := inProtobuf(b, examplePod()), inJSON(b, examplePod())
	for name, do := range map[string]func() bool{
		"protobuf": func() (ok bool) { parts, ok = podForm.Protobuf(raw, parts[:0]); return ok },
		"JSON":     func() (ok bool) { parts, _, ok = podForm.JSON(text, parts[:0]); return ok },
		"protobuf decoded": func() bool {
			return (&corev1.Pod{}).Unmarshal(raw) == nil
		},
		"JSON decoded": func() bool { return json.Unmarshal(text, &corev1.Pod{}) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !do() {
					b.Fatal("it is not canonical")
				}
			}
		})
	}
}
