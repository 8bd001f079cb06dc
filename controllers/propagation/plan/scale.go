package plan

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Scale has the fields of the status from which the subresource scale of a custom kind takes the number of replicas and what selects their
// pods; "" where there is none.
type Scale struct{ Replicas, Selector string }

// maxSelector is the most bytes of what a copy says that selects its pods.
const maxSelector = 4096

// ScaleStatus returns what changes in the status of an object of a custom kind whose replicas are divided: what its scale shows for all
// clusters together. All else in it is left alone.
func ScaleStatus(s Source, copies []Copy) map[string]any {
	if s.Kind.Scale == nil || s.dividedField() == "" {
		return nil
	}
	changed, scale := map[string]any{}, *s.Kind.Scale
	if scale.Replicas != "" {
		total := int64(0)
		for _, c := range copies {
			if c.Object != nil {
				total += min(statusOf(c.Object, scale.Replicas), math.MaxInt32/int64(len(copies)))
			}
		}
		if now, ok, _ := unstructured.NestedInt64(s.Object.Object, "status", scale.Replicas); !ok || now != total {
			changed[scale.Replicas] = total
		}
	}
	if scale.Selector != "" {
		now, _, _ := unstructured.NestedString(s.Object.Object, "status", scale.Selector)
		if is := selectorOf(copies, scale.Selector, now); is != now {
			changed[scale.Selector] = is
		}
	}
	return changed
}

// selectorOf returns what most copies say that selects their pods. Of two that as many say, the present one stays. One cluster must not choose
// the pods that count in the others.
func selectorOf(copies []Copy, field, now string) string {
	count, most := map[string]int{}, now
	for _, c := range copies {
		if c.Object == nil {
			continue
		}
		text, _, _ := unstructured.NestedString(c.Object.Object, "status", field)
		if _, err := labels.Parse(text); err == nil && strings.TrimSpace(text) != "" && len(text) <= maxSelector {
			count[text]++
		}
	}
	for text, n := range count {
		if n > count[most] || n == count[most] && most != now && text < most {
			most = text
		}
	}
	return most
}
