package v1beta1

// IngressClassName is the class of the Ingresses that the federation's own load balancers (federation-lb) serve. No member serves it.
const IngressClassName = "federation"

// LoadBalancersNamespace has a Lease for each load balancer, and the service accounts that they log in with. Nothing in it is
// propagated.
const LoadBalancersNamespace = "federation-load-balancers"

// CertificatesSubresource of Ingresses is no resource: who may get it in a namespace may get the Secrets that Ingresses of
// IngressClassName there name for TLS.
const CertificatesSubresource = "certificates"
