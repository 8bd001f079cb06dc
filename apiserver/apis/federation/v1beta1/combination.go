package v1beta1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MetricsAcrossClustersAnnotation holds, as JSON, a Combination for each of an autoscaler's metrics of the types Object and External
// whose default is not right, by its name. It counts on HorizontalPodAutoscalers that stay at the federation.
const MetricsAcrossClustersAnnotation = "federation.kubernetes.io/metrics-across-clusters"

// Combination says how the values that a metric has in several clusters become one.
type Combination string

const (
	// CombinationSum adds them up: each cluster has its own part of what is measured. It is the default.
	CombinationSum Combination = "Sum"
	// CombinationMax takes the largest: all clusters measure the same.
	CombinationMax Combination = "Max"
)

// ParseCombinations parses the JSON of a MetricsAcrossClustersAnnotation. Errors name the path inside the JSON below path.
func ParseCombinations(value string, path *field.Path) (map[string]Combination, field.ErrorList) {
	var by map[string]Combination
	if value == "" {
		return nil, nil
	}
	if err := decodeStrict(value, &by, path); err != nil {
		return nil, field.ErrorList{err}
	}
	var errs field.ErrorList
	for name, one := range by {
		if one != CombinationSum && one != CombinationMax {
			errs = append(errs, field.NotSupported(path.Key(name), one, []Combination{CombinationSum, CombinationMax}))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return by, errs
}
