package v1beta1

import "strings"

// ServiceName reports whether a canonical name has the form of those that Services have by themselves:
// SERVICE.NAMESPACE.FEDERATION.svc[[.ZONE].REGION].DNS-ZONE.
func ServiceName(federation, zone, name string) bool {
	below, ok := strings.CutSuffix(name, "."+zone)
	labels := strings.Split(below, ".")
	return ok && len(labels) >= 4 && len(labels) <= 6 && labels[2] == strings.ToLower(federation) && labels[3] == "svc"
}
