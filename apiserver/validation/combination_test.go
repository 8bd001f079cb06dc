package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// How values of clusters become one is said by names of metrics, on autoscalers.
func TestMetricsAcrossClusters(t *testing.T) {
	for value, want := range map[string]string{
		`{"waiting":"Max","hits":"Sum"}`: "", `{}`: "",
		`{"waiting":"max","hits":"Mean"}`: `metadata.annotations[federation.kubernetes.io/metrics-across-clusters][hits]: Unsupported value: "Mean": supported values: "Sum", "Max"`,
		`["waiting"]`:                     "must be",
		`Max`:                             "must be JSON of the documented form",
	} {
		errs := ValidateAnnotations(map[string]string{v1beta1.MetricsAcrossClustersAnnotation: value})
		if want == "" && len(errs) > 0 || want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", value, errs, want)
		}
	}
	on := map[string]string{v1beta1.MetricsAcrossClustersAnnotation: `{}`}
	if w := WarnOfAnnotations(schema.GroupResource{Group: "apps", Resource: "deployments"}, on, nil); len(w) != 1 || !strings.Contains(w[0], "it is one of HorizontalPodAutoscalers") {
		t.Errorf("on a Deployment: %q", w)
	}
	if w := WarnOfAnnotations(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, on, nil); len(w) > 0 {
		t.Errorf("on an autoscaler: %q", w)
	}
}
