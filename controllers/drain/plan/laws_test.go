package plan

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// somewhere is a cluster that people, drills and drains have been at, in any order.
func somewhere(t *testing.T, r *rand.Rand) *world {
	w := newWorld(t, []*int32{nil, new(int32), new(int32(30))}[r.IntN(3)])
	if r.IntN(4) == 0 {
		w.c.Annotations = map[string]string{v1beta1.DrainAnnotation: []string{"x", (&v1beta1.Drain{Since: metav1.NewTime(start), Drill: "uid"}).String()}[r.IntN(2)]}
	}
	for range r.IntN(8) {
		switch r.IntN(9) {
		case 0:
			w.undrain()
		case 1:
			AddTaint(w.c, []corev1.Taint{Taint, Cordon}[r.IntN(2)])
		case 2:
			DropTaint(w.c, []corev1.Taint{Taint, Cordon}[r.IntN(2)])
		case 3:
			w.c.Spec.DNSWeight = []*int32{nil, new(int32), new(int32(7))}[r.IntN(3)]
		case 4:
			Request(w.c, v1beta1.ClusterDrain{TTLSeconds: new(int32(r.IntN(20)))})
		default:
			w.drain()
		}
		w.contents, w.providers = randomContents(r), randomProviders(r)
		w.pass(r.IntN(25))
	}
	return w
}

func randomContents(r *rand.Rand) (c Contents) {
	if r.IntN(4) == 0 {
		c.Unknown = "it does not answer"
	}
	for range r.IntN(3) {
		c.Objects = append(c.Objects, Object{Kind: "ReplicaSet", Name: "web", Placed: r.Int64N(2), Current: r.Int64N(2), Ready: r.Int64N(2), Stays: r.IntN(5) == 0, Finished: r.IntN(5) == 0})
	}
	return c
}

func randomProviders(r *rand.Rand) (all []v1beta1.DNSProvider) {
	for range r.IntN(3) {
		all = append(all, v1beta1.DNSProvider{Name: "p", Published: r.IntN(4) > 0, Since: metav1.NewTime(start.Add(time.Duration(r.IntN(60)) * time.Second))})
	}
	return all
}

// TestNext_ReadsWhatItWants: what DNS and contents are like makes no difference where WantsDNS and WantsContents say that they need not be looked up.
func TestNext_ReadsWhatItWants(t *testing.T) {
	wanted := map[string]int{}
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := somewhere(t, r)
		if !Concerns(w.c) {
			continue
		}
		known := World{Now: w.now, TTL: 15 * time.Second, Providers: w.providers, Contents: w.contents, Steady: w.steady}
		step, other := Next(w.c, known), known
		if WantsDNS(w.c) {
			wanted["DNS"]++
		} else {
			other.TTL, other.Providers = time.Duration(r.IntN(100))*time.Second, randomProviders(r)
		}
		if WantsContents(w.c) {
			wanted["contents"]++
		} else {
			other.Contents, other.Steady = randomContents(r), Steady{}
		}
		if got := Next(w.c, other); !reflect.DeepEqual(got, step) {
			t.Fatalf("seed %d: %s, %s: %+v, and %+v of what it does not want to know", seed, w, w.c.Annotations, step, got)
		}
	}
	if len(wanted) != 2 {
		t.Errorf("not everything was wanted: %v", wanted)
	}
}

// TestNext_ChangesItsOwnAlone: weight, its two taints and its record. Where no drain is asked for, nothing is taken out of service; where one is, nothing
// is brought back.
func TestNext_ChangesItsOwnAlone(t *testing.T) {
	for seed := range uint64(5000) {
		w := somewhere(t, rand.New(rand.NewPCG(seed, 2)))
		if w.c.Annotations == nil {
			w.c.Annotations = map[string]string{}
		}
		w.c.Labels, w.c.Annotations["owner"], w.c.Spec.Connection = map[string]string{"a": "b"}, "team-a", "Pull"
		mine := corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute}
		AddTaint(w.c, mine)
		before := w.c.DeepCopy()
		step := Next(w.c, World{Now: w.now, TTL: 15 * time.Second, Providers: w.providers, Contents: w.contents, Steady: w.steady})
		if !reflect.DeepEqual(w.c, before) {
			t.Fatalf("seed %d: the Cluster that was read is changed", seed)
		}
		if step.Cluster != nil && step.Status != nil || step.LookAgain < 0 || step.LookAgain > lookAgain {
			t.Fatalf("seed %d: %+v", seed, step)
		}
		if step.Cluster == nil {
			continue
		}
		for _, taint := range []corev1.Taint{Taint, Cordon} {
			if was, is := HasTaint(before, taint), HasTaint(step.Cluster, taint); was != is && is != (before.Spec.Drain != nil) {
				t.Fatalf("seed %d: a drain is asked for: %t, and %s is there: %t", seed, before.Spec.Drain != nil, taint.Key, is)
			}
		}
		if was, is := before.DNSWeight(), step.Cluster.DNSWeight(); was != is && (is == 0) != (before.Spec.Drain != nil) {
			t.Fatalf("seed %d: a drain is asked for: %t, and the weight is %d", seed, before.Spec.Drain != nil, is)
		}
		left := step.Cluster.DeepCopy()
		left.Spec.DNSWeight = before.Spec.DNSWeight
		left.Annotations[v1beta1.DrainAnnotation] = before.Annotations[v1beta1.DrainAnnotation]
		if before.Annotations[v1beta1.DrainAnnotation] == "" {
			delete(left.Annotations, v1beta1.DrainAnnotation)
		}
		for _, c := range []*v1beta1.Cluster{left, before} {
			c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&Taint) || t.MatchTaint(&Cordon) })
		}
		if !reflect.DeepEqual(left, before) {
			t.Fatalf("seed %d: %+v, was %+v", seed, left, before)
		}
	}
}
