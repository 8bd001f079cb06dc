package validation

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// annotationChecks has, by annotation, the check of its value.
var annotationChecks = map[string]func(value string, path *field.Path) field.ErrorList{
	v1beta1.ReplicaSetPreferencesAnnotation:  checkPreferences,
	v1beta1.DeploymentPreferencesAnnotation:  checkPreferences,
	v1beta1.StatefulSetPreferencesAnnotation: checkPreferences,
	v1beta1.JobPreferencesAnnotation:         checkPreferences,
	v1beta1.ClusterSelectorAnnotation:        errorsOf(v1beta1.ParseClusterSelector),
	v1beta1.DNSAnnotation:                    checkDNS,
	v1beta1.FallbackAnnotation:               v1beta1.ValidateFallback,
	v1beta1.FallbackBelowAnnotation:          v1beta1.ValidateFallbackBelow,
	v1beta1.ProxyProtocolAnnotation:          v1beta1.ValidateProxyProtocol,
	v1beta1.SSLPassthroughAnnotation:         v1beta1.ValidateSSLPassthrough,
	v1beta1.ClusterSetIPAnnotation:           errorsOf(v1beta1.ParseClusterSetIPs),
	v1beta1.MetricsAcrossClustersAnnotation:  errorsOf(v1beta1.ParseCombinations),
}

// ownPrefixes are the prefixes of the federation's annotations.
var ownPrefixes = map[string]bool{"federation.kubernetes.io": true, "federation.alpha.kubernetes.io": true}

// ValidateAnnotations checks the annotations that users put on federated objects. Errors name the
// annotation, and the path inside its JSON, as metadata.annotations[KEY].clusters[east].weight.
func ValidateAnnotations(annotations map[string]string) field.ErrorList {
	return ValidateChangedAnnotations(annotations, nil)
}

// ValidateChangedAnnotations is ValidateAnnotations for changed annotations only: stored ones do not block other
// changes.
func ValidateChangedAnnotations(annotations, old map[string]string) (errs field.ErrorList) {
	keys := make([]string, 0, len(annotationChecks))
	for key, value := range annotations {
		was, had := old[key]
		if annotationChecks[key] != nil && (!had || was != value) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		errs = append(errs, annotationChecks[key](annotations[key], field.NewPath("metadata", "annotations").Key(key))...)
	}
	return errs
}

// namesInDNS are the kinds whose objects have names in DNS.
var namesInDNS = map[string]bool{"Service": true, "Ingress": true}

// ofOneKind are the annotations that count for objects of one kind.
var ofOneKind = []struct{ key, kind, kinds string }{
	{v1beta1.FallbackAnnotation, "Service", "Services"}, {v1beta1.FallbackBelowAnnotation, "Service", "Services"}, {v1beta1.ClusterSetIPAnnotation, "Service", "Services"},
	{v1beta1.ProxyProtocolAnnotation, "Service", "Services"}, {v1beta1.SSLPassthroughAnnotation, "Ingress", "Ingresses"},
	{v1beta1.MetricsAcrossClustersAnnotation, "HorizontalPodAutoscaler", "HorizontalPodAutoscalers"},
}

// WarnOfAnnotations warns of changed annotations without effect, because they are for another kind or unknown, and of
// preferences that give replicas to no cluster.
func WarnOfAnnotations(resource schema.GroupResource, annotations, old map[string]string) (warnings []string) {
	kind := v1beta1.FederatedKindOf(resource)
	if kind == nil {
		return nil
	}
	if value, there := annotations[v1beta1.DNSAnnotation]; there && value != old[v1beta1.DNSAnnotation] && !namesInDNS[kind.Kind] {
		warnings = append(warnings, "metadata.annotations["+v1beta1.DNSAnnotation+"]: counts for nothing here: only Services and Ingresses have names in DNS")
	}
	for _, one := range ofOneKind {
		if value, there := annotations[one.key]; there && value != old[one.key] && kind.Kind != one.kind {
			warnings = append(warnings, "metadata.annotations["+one.key+"]: counts for nothing here: it is one of "+one.kinds)
		}
	}
	warnings = append(warnings, warnOfUnknown(annotations, old)...)
	if value := annotations[kind.Preferences]; value != old[kind.Preferences] {
		if p, errs := v1beta1.ParseReplicaPreferences(value, nil); len(errs) == 0 && len(p.Clusters) == 0 {
			warnings = append(warnings, "metadata.annotations["+kind.Preferences+"]: no cluster gets replicas: "+nobodyNamed)
		}
	}
	for _, of := range v1beta1.FederatedKinds {
		value, there := annotations[of.Preferences]
		if of.Preferences == "" || of.Preferences == kind.Preferences || !there || old[of.Preferences] == value {
			continue
		}
		instead := "the replicas of a " + kind.Kind + " are not divided"
		if kind.Preferences != "" {
			instead = "that of a " + kind.Kind + " is " + kind.Preferences
		}
		warnings = append(warnings, "metadata.annotations["+of.Preferences+"]: counts for nothing here: it is that of a "+of.Kind+"; "+instead)
	}
	return warnings
}

func warnOfUnknown(annotations, old map[string]string) (warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		prefix, _, _ := strings.Cut(key, "/")
		known := annotationChecks[key] != nil || slices.Contains(v1beta1.DecidedAnnotations, key) || key == v1beta1.TraceAnnotation
		if _, had := old[key]; !had && !known && ownPrefixes[prefix] {
			warnings = append(warnings, "metadata.annotations["+key+"]: counts for nothing: the federation has none of that name")
		}
	}
	return warnings
}

func checkPreferences(value string, path *field.Path) field.ErrorList {
	p, errs := v1beta1.ParseReplicaPreferences(value, path)
	if p != nil {
		errs = clusterNames(p.Clusters, path.Child("clusters"))
	}
	return errs
}

// errorsOf returns the check whose errors are those of a parser.
func errorsOf[T any](parse func(string, *field.Path) (T, field.ErrorList)) func(string, *field.Path) field.ErrorList {
	return func(value string, path *field.Path) field.ErrorList {
		_, errs := parse(value, path)
		return errs
	}
}

func checkDNS(value string, path *field.Path) field.ErrorList {
	p, errs := v1beta1.ParseDNSSettings(value, path)
	if p != nil {
		errs = clusterNames(p.Clusters, path.Child("clusters"))
	}
	return errs
}
