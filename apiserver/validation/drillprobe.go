package validation

import (
	"net/url"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	maxProbes    = 50
	maxProbePath = 256
)

var (
	probeTypes = []v1beta1.DrillProbeType{v1beta1.ProbeDNS, v1beta1.ProbeHTTP, v1beta1.ProbeHTTPS, v1beta1.ProbeTCP}
	probeModes = []v1beta1.DrillProbeMode{v1beta1.ProbeCaching, v1beta1.ProbeFresh}
)

// validateProbes checks the probes of a drill. Admission, which knows the zone, checks that hosts are in it.
func validateProbes(s *v1beta1.FailoverDrillSpec, path *field.Path) (errs field.ErrorList) {
	if n := len(s.Probes); n > maxProbes {
		return field.ErrorList{field.TooMany(path, n, maxProbes)}
	}
	seen := map[string]bool{}
	for i := range s.Probes {
		p, path := &s.Probes[i], path.Index(i)
		errs = append(errs, label(p.Name, path.Child("name"))...)
		if seen[p.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		}
		seen[p.Name] = true
		errs = append(errs, validateProbe(p, path)...)
		errs = append(errs, between(&p.PeriodSeconds, 0, min(60, s.Baseline()), path.Child("periodSeconds"))...)
		errs = append(errs, between(&p.TimeoutSeconds, 0, 5, path.Child("timeoutSeconds"))...)
	}
	return errs
}

// validateProbe checks the target and the request of a probe.
func validateProbe(p *v1beta1.DrillProbe, path *field.Path) (errs field.ErrorList) {
	switch {
	case (p.Service == nil) == (p.Host == ""):
		errs = append(errs, field.Required(path, "must have either service or host"))
	case p.Service != nil:
		errs = append(errs, label(p.Service.Namespace, path.Child("service", "namespace"))...)
		errs = append(errs, label(p.Service.Name, path.Child("service", "name"))...)
	default:
		if problems := utilvalidation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(p.Host, "."))); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Child("host"), truncated(p.Host), problems[0]))
		}
	}
	if !slices.Contains(probeTypes, p.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, probeTypes))
	}
	if p.Mode != "" && !slices.Contains(probeModes, p.Mode) {
		errs = append(errs, field.NotSupported(path.Child("mode"), p.Mode, probeModes))
	}
	least, most := int32(0), int32(65535)
	switch p.Type {
	case v1beta1.ProbeTCP:
		least = 1
	case v1beta1.ProbeDNS:
		most = 0
	}
	errs = append(errs, between(&p.Port, least, most, path.Child("port"))...)
	if p.Path == "" {
		return errs
	}
	if u, err := url.ParseRequestURI(p.Path); err != nil || u.Host != "" || !strings.HasPrefix(p.Path, "/") || len(p.Path) > maxProbePath || strings.ContainsAny(p.Path, " #") {
		errs = append(errs, field.Invalid(path.Child("path"), truncated(p.Path), "must be a path of at most 256 bytes that begins with /, as /healthz"))
	} else if p.Type != v1beta1.ProbeHTTP && p.Type != v1beta1.ProbeHTTPS {
		errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must be left out: it is for types HTTP and HTTPS"))
	}
	return errs
}

// label checks a part of a name in DNS.
func label(name string, path *field.Path) field.ErrorList {
	if problems := utilvalidation.IsDNS1123Label(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, truncated(name), problems[0])}
	}
	return nil
}
