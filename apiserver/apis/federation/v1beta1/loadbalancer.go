package v1beta1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IngressClassName is the class of the Ingresses that the federation's own load balancers (federation-lb) serve. No member serves it.
const IngressClassName = "federation"

// LoadBalancerClassName is the loadBalancerClass of the Services of type LoadBalancer whose ports the federation's own load balancers serve.
// Members don't see it: the cluster's own load balancers serve the copies, and are what connections are passed on to.
const LoadBalancerClassName = "federation.kubernetes.io/cross-cluster"

// ProxyProtocolAnnotation, on a Service of LoadBalancerClassName or behind an Ingress of IngressClassName, has each connection to a cluster begin with a
// header of PROXY protocol, which names the client. Its value is "v2".
const ProxyProtocolAnnotation = "federation.kubernetes.io/proxy-protocol"

// ProxyProtocolV2 is the value of ProxyProtocolAnnotation.
const ProxyProtocolV2 = "v2"

// ValidateProxyProtocol checks the value of ProxyProtocolAnnotation.
func ValidateProxyProtocol(value string, path *field.Path) field.ErrorList {
	if value != ProxyProtocolV2 {
		return field.ErrorList{field.NotSupported(path, value, []string{ProxyProtocolV2})}
	}
	return nil
}

// SSLPassthroughAnnotation, on an Ingress of IngressClassName, has TLS connections for its hosts passed on as they are to the Service behind each host, which
// has the certificate. The host is the server name that clients ask for (SNI). Its values are "true" and "false"; other ingress controllers have it by this name.
const SSLPassthroughAnnotation = "federation.kubernetes.io/ssl-passthrough"

// ValidateSSLPassthrough checks the value of SSLPassthroughAnnotation.
func ValidateSSLPassthrough(value string, path *field.Path) field.ErrorList {
	if value != "true" && value != "false" {
		return field.ErrorList{field.NotSupported(path, value, []string{"false", "true"})}
	}
	return nil
}

// PassesTLS reports whether an Ingress has TLS connections for its hosts passed on as they are.
func PassesTLS(i *networkingv1.Ingress) bool {
	return i.Annotations[SSLPassthroughAnnotation] == "true"
}

// LoadBalancersNamespace has a Lease for each load balancer, and the service accounts that they log in with. Nothing in it is
// propagated.
const LoadBalancersNamespace = "federation-load-balancers"

// CertificatesSubresource of Ingresses is no resource: who may get it in a namespace may get the Secrets that Ingresses of
// IngressClassName there name for TLS.
const CertificatesSubresource = "certificates"

// LoadBalancerAnnotation, on the Lease of a load balancer, has as JSON what it says of itself: its region, its zone and the addresses
// that clients reach it at.
const LoadBalancerAnnotation = "federation.kubernetes.io/load-balancer"

// LoadBalancerOutAnnotation, on the same Lease, has as JSON the clusters' load balancers that this one does not use, because their checks or
// requests to them fail. It is there to be read by people: nothing follows from it.
const LoadBalancerOutAnnotation = "federation.kubernetes.io/load-balancer-out"

// LoadBalancersConfigMap is a ConfigMap in FederationNamespace that has, by the name of each load balancer that is alive, what its Lease says. The
// leader of the controllers writes it.
const LoadBalancersConfigMap = "load-balancers"

// IsBalanced reports whether the federation's own load balancers serve an Ingress: it is of their class, and is not being deleted.
func IsBalanced(i *networkingv1.Ingress) bool {
	return i.Spec.IngressClassName != nil && *i.Spec.IngressClassName == IngressClassName && i.DeletionTimestamp == nil
}

// IsBalancedService reports whether the federation's own load balancers serve the ports of a Service: it is of their class, and is not being deleted.
func IsBalancedService(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass != nil && *s.Spec.LoadBalancerClass == LoadBalancerClassName && s.DeletionTimestamp == nil
}

// BalancedHosts returns the hosts that an Ingress asks the load balancers for, in lower case: of its rules, and with a default backend
// those of its TLS section, and "" for any other that nobody has.
func BalancedHosts(i *networkingv1.Ingress) (hosts []string) {
	add := func(host string) { hosts = append(hosts, strings.ToLower(strings.TrimSuffix(host, "."))) }
	for _, rule := range i.Spec.Rules {
		add(rule.Host)
	}
	if i.Spec.DefaultBackend != nil {
		for _, t := range i.Spec.TLS {
			for _, host := range t.Hosts {
				add(host)
			}
		}
		add("")
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// WildcardOf returns the wildcard that covers a host: "*.example.com" of "www.example.com"; "" if none can.
func WildcardOf(host string) string {
	_, parent, ok := strings.Cut(host, ".")
	if !ok || strings.HasPrefix(host, "*.") {
		return ""
	}
	return "*." + parent
}
