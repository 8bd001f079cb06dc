package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// The status of each kind: what Kind.Status of its row returns.

func sum(copies []Copy, fields ...string) (total int64) {
	for _, c := range copies {
		if c.Object != nil {
			n, _, _ := unstructured.NestedInt64(c.Object.Object, fields...)
			total += n
		}
	}
	return total
}

// observedGeneration returns the object's generation once every visible cluster has observed it.
func observedGeneration(federated *unstructured.Unstructured, copies []Copy) int64 {
	for _, c := range copies {
		seen := c.Object == nil || statusOf(c.Object, "observedGeneration") >= c.Object.GetGeneration()
		if c.State == Pending || !seen || c.State != Unreachable && c.Looked < federated.GetGeneration() {
			return statusOf(federated, "observedGeneration")
		}
	}
	return federated.GetGeneration()
}

// sumFields returns the status function of a kind that consists of numbers.
func sumFields(fields ...string) func(*unstructured.Unstructured, []Copy) map[string]any {
	return func(federated *unstructured.Unstructured, copies []Copy) map[string]any {
		status := map[string]any{"observedGeneration": observedGeneration(federated, copies)}
		for _, f := range fields {
			status[f] = sum(copies, "status", f)
		}
		return status
	}
}
