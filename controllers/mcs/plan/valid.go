package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Bounds of what one export may bring to other clusters.
const (
	maxPorts         = 100
	maxExportedBytes = 16 << 10 // of labels and annotations
	maxEndpoints     = 5000     // of one cluster and family
	maxSources       = 64       // clusters whose endpoints a member has of one Service
)

// Reasons of the condition Valid beside those of the API.
const (
	ReasonNotAllowed     = "NamespaceNotAllowed"
	ReasonInvalidService = "InvalidService"
	ReasonInvalidExport  = "InvalidExport"
)

// reservedPrefixes begin keys of labels and annotations that the federation, or Kubernetes, reads on an import.
var reservedPrefixes = []string{"federation.kubernetes.io/", "federation.alpha.kubernetes.io/", "multicluster.kubernetes.io/", "kubectl.kubernetes.io/"}

// invalid returns the reason and the message if an export is not valid, else "". It does not check the selectors: see validSelectors.
func invalid(e *Export) (reason, message string) {
	switch {
	case e.Refused != "":
		return ReasonNotAllowed, e.Refused
	case e.Service == nil:
		return string(mcsv1beta1.ServiceExportReasonNoService), "there is no Service of this name"
	case e.Service.Spec.Type == corev1.ServiceTypeExternalName:
		return string(mcsv1beta1.ServiceExportReasonInvalidServiceType), "a Service of type ExternalName cannot be exported"
	}
	if len(e.Service.Spec.Ports) == 0 && !isHeadless(e.Service) {
		return ReasonInvalidService, "spec.ports: there is none, and only a headless Service may have none"
	}
	if message := invalidPorts(e.Service.Spec.Ports); message != "" {
		return ReasonInvalidService, message
	}
	if message := invalidPolicies(e.Service.Spec); message != "" {
		return ReasonInvalidService, message
	}
	if message := invalidMetadata(e.Export.Spec); message != "" {
		return ReasonInvalidExport, message
	}
	return "", ""
}

// validSelectors returns the selectors of clusters of an export that is valid otherwise, or the reason and the message if they are not valid.
func validSelectors(e *Export) (selectors []clusterSelector, reason, message string) {
	selectors, err := selectorsOf(e.Export.Spec.ExportedAnnotations)
	switch {
	case err != nil:
		return nil, string(ReasonInvalidClusterSelector), fmt.Sprintf("spec.exportedAnnotations[%s]%v", v1beta1.ClusterSelectorsAnnotation, err)
	case len(selectors) > 0 && isHeadless(e.Service):
		return nil, string(mcsv1beta1.ServiceExportReasonInvalidServiceType), fmt.Sprintf("spec.exportedAnnotations[%s]: clients of a headless Service get the addresses of all its pods", v1beta1.ClusterSelectorsAnnotation)
	}
	return selectors, "", ""
}

// invalidPorts checks what the cluster's own API server should have checked.
func invalidPorts(ports []corev1.ServicePort) string {
	if len(ports) > maxPorts {
		return fmt.Sprintf("spec.ports: %d ports, at most %d are exported", len(ports), maxPorts)
	}
	names := map[string]bool{}
	for i, p := range ports {
		switch {
		case p.Port < 1 || p.Port > 65535:
			return fmt.Sprintf("spec.ports[%d].port: %d, must be 1 to 65535", i, p.Port)
		case p.Protocol != corev1.ProtocolTCP && p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP:
			return fmt.Sprintf("spec.ports[%d].protocol: %.20q, must be TCP, UDP or SCTP", i, p.Protocol)
		case p.Name == "" && len(ports) > 1 || p.Name != "" && len(validation.IsDNS1123Label(p.Name)) > 0:
			return fmt.Sprintf("spec.ports[%d].name: %.80q, must be a DNS label", i, p.Name)
		case p.AppProtocol != nil && len(validation.IsQualifiedName(*p.AppProtocol)) > 0:
			return fmt.Sprintf("spec.ports[%d].appProtocol: %.80q, must be a qualified name", i, *p.AppProtocol)
		case names[p.Name]:
			return fmt.Sprintf("spec.ports[%d].name: %.80q is there twice", i, p.Name)
		}
		names[p.Name] = true
	}
	return ""
}

// invalidPolicies checks the fields of a Service that its import has, too.
func invalidPolicies(spec corev1.ServiceSpec) string {
	if a := spec.SessionAffinity; a != "" && a != corev1.ServiceAffinityNone && a != corev1.ServiceAffinityClientIP {
		return fmt.Sprintf("spec.sessionAffinity: %.20q, must be ClientIP or None", a)
	}
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if n := *c.ClientIP.TimeoutSeconds; n < 1 || n > 86400 {
			return fmt.Sprintf("spec.sessionAffinityConfig.clientIP.timeoutSeconds: %d, must be 1 to 86400", n)
		}
	}
	if p := spec.InternalTrafficPolicy; p != nil && *p != corev1.ServiceInternalTrafficPolicyCluster && *p != corev1.ServiceInternalTrafficPolicyLocal {
		return fmt.Sprintf("spec.internalTrafficPolicy: %.20q, must be Cluster or Local", *p)
	}
	if d := spec.TrafficDistribution; d != nil && len(validation.IsQualifiedName(*d)) > 0 {
		return fmt.Sprintf("spec.trafficDistribution: %.80q, must be a qualified name", *d)
	}
	return ""
}

// invalidMetadata checks what is to become labels and annotations elsewhere.
func invalidMetadata(spec mcsv1beta1.ServiceExportSpec) string {
	size := 0
	for field, of := range map[string]map[string]string{"exportedLabels": spec.ExportedLabels, "exportedAnnotations": spec.ExportedAnnotations} {
		for key, value := range of {
			size += len(key) + len(value)
			if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
				return fmt.Sprintf("spec.%s: %.80q is no name of a label or annotation", field, key)
			}
			if field == "exportedLabels" && len(validation.IsValidLabelValue(value)) > 0 {
				return fmt.Sprintf("spec.exportedLabels[%s]: %.80q is no value of a label", key, value)
			}
			for _, prefix := range reservedPrefixes {
				if strings.HasPrefix(key, prefix) && (key != v1beta1.ClusterSelectorsAnnotation || field == "exportedLabels") {
					return fmt.Sprintf("spec.%s: %.80q is reserved (%s)", field, key, prefix)
				}
			}
		}
	}
	if size > maxExportedBytes {
		return fmt.Sprintf("spec: exported labels and annotations have %d bytes, at most %d are exported", size, maxExportedBytes)
	}
	return ""
}

// condition returns a condition without its time, which whoever writes it knows.
func condition(of mcsv1beta1.ServiceExportConditionType, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: string(of), Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}
