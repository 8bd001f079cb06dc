package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxSelectors is how many selectors of clusters an export may have, as KEP-5939 bounds them; maxRequirements bounds what each has.
const (
	maxSelectors    = 16
	maxRequirements = 32
)

// Reasons of conditions that KEP-5939 adds to those of the API.
const (
	ReasonInvalidClusterSelector   mcsv1beta1.ServiceExportConditionReason = "InvalidClusterSelector"
	ReasonClusterSelectorsConflict mcsv1beta1.ServiceExportConditionReason = "ClusterSelectorsConflict"
)

// sameAsImporter stands for the value that the importing cluster has of the property.
const sameAsImporter = "@SameAsImporter@"

// clusterSelector selects clusters by their properties, in the syntax of KEP-5939.
type clusterSelector struct {
	PropertySelector propertySelector `json:"propertySelector"`
}

type propertySelector struct {
	MatchProperties  map[string]string     `json:"matchProperties,omitempty"`
	MatchExpressions []propertyRequirement `json:"matchExpressions,omitempty"`
}

type propertyRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// selectorsOf reads v1beta1.ClusterSelectorsAnnotation; its errors say where in it.
func selectorsOf(annotations map[string]string) ([]clusterSelector, error) {
	text, found := annotations[v1beta1.ClusterSelectorsAnnotation]
	if !found {
		return nil, nil
	}
	var all []clusterSelector
	strict, err := kjson.UnmarshalStrict([]byte(text), &all)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf(`: must be JSON as [{"propertySelector": {"matchProperties": {…}, "matchExpressions": […]}}]: %.200s`, err)
	}
	if len(all) > maxSelectors {
		return nil, fmt.Errorf(": %d selectors, at most %d are allowed", len(all), maxSelectors)
	}
	for i := range all {
		if err := all[i].PropertySelector.validate(); err != nil {
			return nil, fmt.Errorf("[%d].propertySelector%w", i, err)
		}
	}
	return all, nil
}

// validate returns an error that begins with the field.
func (p *propertySelector) validate() error {
	n := len(p.MatchProperties) + len(p.MatchExpressions)
	if n == 0 || n > maxRequirements {
		return fmt.Errorf(": %d requirements, must be 1 to %d", n, maxRequirements)
	}
	for key := range p.MatchProperties {
		if !isProperty(key) {
			return fmt.Errorf(".matchProperties: %.80q is no name of a property", key)
		}
	}
	for i, r := range p.MatchExpressions {
		takesValues := r.Operator == "In" || r.Operator == "NotIn"
		switch {
		case !isProperty(r.Key):
			return fmt.Errorf(".matchExpressions[%d].key: %.80q is no name of a property", i, r.Key)
		case !takesValues && r.Operator != "Exists" && r.Operator != "DoesNotExist":
			return fmt.Errorf(".matchExpressions[%d].operator: %.20q, must be In, NotIn, Exists or DoesNotExist", i, r.Operator)
		case takesValues != (len(r.Values) > 0):
			return fmt.Errorf(".matchExpressions[%d].values: %d values; In and NotIn take some, Exists and DoesNotExist none", i, len(r.Values))
		}
	}
	return nil
}

// isProperty reports whether a cluster may have a property of that name: ClusterProperties have names of objects, labels of Clusters a "/" in them, too.
func isProperty(name string) bool {
	return len(validation.IsDNS1123Subdomain(name)) == 0 || len(validation.IsQualifiedName(name)) == 0
}

// selects reports whether a cluster with the properties is selected for an importing one.
func (p *propertySelector) selects(properties, importer map[string]string) bool {
	for key, value := range p.MatchProperties {
		if !(propertyRequirement{key, "In", []string{value}}).holds(properties, importer) {
			return false
		}
	}
	return !slices.ContainsFunc(p.MatchExpressions, func(r propertyRequirement) bool { return !r.holds(properties, importer) })
}

// holds follows the rules of label selectors: NotIn holds for a cluster without the property. With the value of an importing cluster that
// has none it never holds.
func (r propertyRequirement) holds(properties, importer map[string]string) bool {
	value, has := properties[r.Key]
	own, ownHas := importer[r.Key]
	same := slices.Contains(r.Values, sameAsImporter)
	listed := has && (slices.Contains(r.Values, value) && value != sameAsImporter || same && value == own)
	switch {
	case same && !ownHas:
		return false
	case r.Operator == "In":
		return listed
	case r.Operator == "NotIn":
		return !listed
	}
	return has == (r.Operator == "Exists")
}

// selected returns the clusters of an import that each selector selects for the member, in the order of the selectors; nil without selectors.
func (in *Input) selected(imported *Import) (results [][]string) {
	if imported.Spec.Type != mcsv1beta1.ClusterSetIP {
		return nil
	}
	properties := map[string]map[string]string{}
	for _, s := range in.Sources {
		properties[s.Cluster] = s.Properties
	}
	for _, s := range imported.selectors {
		clusters := []string{}
		for _, cluster := range imported.Clusters {
			if s.PropertySelector.selects(properties[cluster], properties[in.Member]) {
				clusters = append(clusters, cluster)
			}
		}
		results = append(results, clusters)
	}
	return results
}

// tiers returns the first result that each cluster is in. Those in none come last, which is what a cluster that is not in the map has to be taken for.
func tiers(results [][]string) map[string]int {
	first := map[string]int{}
	for i := len(results) - 1; i >= 0; i-- {
		for _, cluster := range results[i] {
			first[cluster] = i - len(results)
		}
	}
	return first
}

// resultsText returns v1beta1.ClusterSelectorResultsAnnotation for people: at most 64 clusters of each selector.
func resultsText(results [][]string) string {
	var parts []string
	for _, clusters := range results {
		text, _ := json.Marshal(clusters[:min(len(clusters), maxSources)]) // never fails for strings
		parts = append(parts, string(text))
	}
	return "[" + strings.Join(parts, ",") + "]"
}
