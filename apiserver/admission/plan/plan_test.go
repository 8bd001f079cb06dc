package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestFinalize_KeepsWhatIsThere: the federation's finalizers come after the others', once.
func TestFinalize_KeepsWhatIsThere(t *testing.T) {
	ours := []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer}
	for _, c := range []struct{ before, want []string }{
		{nil, ours},
		{[]string{"example.org/other"}, append([]string{"example.org/other"}, ours...)},
		{[]string{v1beta1.OrphanFinalizer}, []string{v1beta1.OrphanFinalizer, v1beta1.DeleteFromClustersFinalizer}},
		{ours, ours},
	} {
		o := &metav1.ObjectMeta{Finalizers: slices.Clone(c.before)}
		for range 2 { // a second time changes nothing
			Finalize(o)
			if !slices.Equal(o.Finalizers, c.want) {
				t.Errorf("%q became %q, want %q", c.before, o.Finalizers, c.want)
			}
		}
	}
}

func TestMarkForOrphaning(t *testing.T) {
	const federated, mark = v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanMarkFinalizer
	deleted := metav1.Now()
	for name, c := range map[string]struct {
		object metav1.ObjectMeta
		want   []string
	}{
		"a federated object":     {metav1.ObjectMeta{Finalizers: []string{federated}}, []string{federated, mark}},
		"a marked one":           {metav1.ObjectMeta{Finalizers: []string{mark, federated}}, []string{mark, federated}},
		"one that is deleted":    {metav1.ObjectMeta{Finalizers: []string{federated}, DeletionTimestamp: &deleted}, []string{federated}},
		"one that has no copies": {metav1.ObjectMeta{Finalizers: []string{"example.org/other"}}, []string{"example.org/other"}},
	} {
		shared := slices.Clip(c.object.Finalizers)
		before := slices.Clone(shared)
		if MarkForOrphaning(&c.object); !slices.Equal(c.object.Finalizers, c.want) || !slices.Equal(shared, before) {
			t.Errorf("%s: %q, want %q; others see %q", name, c.object.Finalizers, c.want, shared)
		}
	}
}

// TestLeavesCopies: what the delete says counts, the old option first; without it, the finalizer, where that is the default.
func TestLeavesCopies(t *testing.T) {
	yes, no, orphan, background := true, false, metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground
	for _, finalized := range []bool{false, true} {
		for _, byDefault := range []bool{false, true} {
			var finalizers []string
			if finalized {
				finalizers = []string{metav1.FinalizerOrphanDependents}
			}
			for name, c := range map[string]struct {
				options *metav1.DeleteOptions
				want    bool
			}{
				"no options":       {nil, finalized && byDefault},
				"empty options":    {&metav1.DeleteOptions{}, finalized && byDefault},
				"orphan":           {&metav1.DeleteOptions{PropagationPolicy: &orphan}, true},
				"background":       {&metav1.DeleteOptions{PropagationPolicy: &background}, false},
				"old clients' yes": {&metav1.DeleteOptions{OrphanDependents: &yes}, true},
				"old clients' no":  {&metav1.DeleteOptions{OrphanDependents: &no}, false},
			} {
				if got := LeavesCopies(finalizers, c.options, byDefault); got != c.want {
					t.Errorf("%s, finalizer %t, by default %t: %t", name, finalized, byDefault, got)
				}
			}
		}
	}
}

func TestAnnotate_ChangesNoSharedMap(t *testing.T) {
	shared := map[string]string{"a": "1"}
	o := &metav1.ObjectMeta{Annotations: shared}
	Annotate(o, "b", "2")
	if want := map[string]string{"a": "1", "b": "2"}; !maps.Equal(o.Annotations, want) || len(shared) != 1 {
		t.Errorf("%v, want %v; others see %v", o.Annotations, want, shared)
	}
	bare := &metav1.ObjectMeta{}
	if Annotate(bare, "b", "2"); bare.Annotations["b"] != "2" {
		t.Errorf("%v", bare.Annotations)
	}
}

// TestNew_Place goes through all kinds and what can be said of an object. An object goes nowhere without a placement (divided, confined, or to be
// governed) until somebody decides; one that brings its placement keeps it.
func TestNew_Place(t *testing.T) {
	for _, row := range append(slices.Clone(v1beta1.FederatedKinds), v1beta1.FederatedKind{
		Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, Kind: "Widget"}) {
		builtIn := v1beta1.FederatedKindOf(row.Resource.GroupResource()) != nil
		kind := schema.GroupKind{Group: row.Resource.Group, Kind: row.Kind}
		for bits := range 1 << 5 {
			brings, selects, governed, takes, decides := bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0, bits&16 > 0
			o := &metav1.ObjectMeta{Name: "web", Annotations: map[string]string{}}
			if brings {
				o.Annotations[v1beta1.PlacementAnnotation] = "kept"
			}
			if selects {
				o.Annotations[v1beta1.ClusterSelectorAnnotation] = "[]"
			}
			policy := &v1beta1.PlacementPolicy{}
			if governed {
				policy.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: row.Resource.GroupVersion().String(), Kind: row.Kind}}
			}
			policy.Spec.PropagateReferences = takes
			n := New{Resource: row.Resource.GroupResource(), Kind: kind, Object: o, Policies: func() ([]*v1beta1.PlacementPolicy, error) { return []*v1beta1.PlacementPolicy{policy}, nil }}
			asked := false
			err := n.Place(func() error {
				if asked = true; decides {
					Annotate(o, v1beta1.PlacementAnnotation, "decided")
				}
				return nil
			})
			confined := builtIn && row.Preferences == "" && !selects && v1beta1.Confined(row.Resource.GroupResource())
			waits := governed || takes && row.Referable
			want := ""
			switch now := row.Preferences != "" || confined && !waits; {
			case brings:
				want = "kept"
			case now && decides:
				want = "decided"
			case row.Preferences != "":
			case confined || waits:
				want = v1beta1.PlacementPending
			}
			about := fmt.Sprintf("%s: brings %t, selects %t, governed %t, taken along %t, decided %t", row.Kind, brings, selects, governed, takes, decides)
			if got := o.Annotations[v1beta1.PlacementAnnotation]; err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", about, got, err, want)
			}
			if asked && brings {
				t.Errorf("%s: decided again", about)
			}
		}
	}
}

// TestNew_PlaceFails: an error of what it asks is its own, and leaves the object as it is.
func TestNew_PlaceFails(t *testing.T) {
	broken := errors.New("not read yet")
	o := &metav1.ObjectMeta{Name: "web"}
	secrets := schema.GroupResource{Resource: "secrets"}
	n := New{Resource: secrets, Kind: schema.GroupKind{Kind: "Secret"}, Object: o, Policies: func() ([]*v1beta1.PlacementPolicy, error) { return nil, broken }}
	if err := n.Place(func() error { return nil }); !errors.Is(err, broken) || len(o.Annotations) > 0 {
		t.Errorf("policies that cannot be read: %v, %v", err, o.Annotations)
	}
	n.Policies = func() ([]*v1beta1.PlacementPolicy, error) { return nil, nil }
	if err := n.Place(func() error { return broken }); !errors.Is(err, broken) || len(o.Annotations) > 0 {
		t.Errorf("what cannot be decided: %v, %v", err, o.Annotations)
	}
}
