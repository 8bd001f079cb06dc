package plan

import (
	"math/rand"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// spoil changes, removes or adds one value somewhere in a JSON value.
func spoil(r *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		n := r.Intn(len(v) + 1)
		for key, item := range v {
			if n--; n >= 0 {
				continue
			}
			if v[key] = spoil(r, item); r.Intn(4) == 0 {
				delete(v, key)
			}
			return v
		}
		v["more"] = []any{"", "x", int64(0), map[string]any{}, map[string]any{"a": int64(0)}, []any{}}[r.Intn(6)]
		return v
	case []any:
		if len(v) == 0 || r.Intn(4) == 0 {
			return append(v, "x")
		}
		i := r.Intn(len(v))
		v[i] = spoil(r, v[i])
		return v
	case string:
		return []any{"", v + "x", map[string]any{"name": v}}[r.Intn(3)]
	case int64:
		return []any{int64(0), v + 1, float64(v)}[r.Intn(3)]
	case bool:
		return !v
	}
	return value
}

// Holds of a typed object must agree with contains of the same object as unstructured.
func TestHoldsIsContains(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewSource(seed))
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, r, scheme.Codecs)
	yes, no := 0, 0
	for _, kind := range []runtime.Object{
		&corev1.Namespace{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.ReplicaSet{}, &appsv1.Deployment{},
		&appsv1.StatefulSet{}, &batchv1.CronJob{}, &networkingv1.Ingress{}, &autoscalingv2.HorizontalPodAutoscaler{},
	} {
		for range 40 {
			typed := kind.DeepCopyObject()
			filler.Fill(typed)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			if err != nil {
				t.Fatal(err)
			}
			for spoils := range 4 {
				want := runtime.DeepCopyJSON(content)
				for range spoils {
					spoil(r, want)
				}
				d := Desired{configuration: configuration{Object: &unstructured.Unstructured{Object: want}}}
				got, should := Holds(d, typed), contains(want, content)
				if got && !should || !got && spoils == 0 {
					t.Fatalf("seed %d, %T, spoiled %d times: holds: %t, contains: %t\n%s\n%s", seed, typed, spoils, got, should, JSON(want), JSON(content))
				}
				if should {
					yes++
				} else {
					no++
				}
			}
		}
	}
	if yes < 100 || no < 100 {
		t.Errorf("%d times yes, %d times no", yes, no)
	}
}
