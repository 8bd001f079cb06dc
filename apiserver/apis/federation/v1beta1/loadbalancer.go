package v1beta1

// IngressClassName is the class of the Ingresses that the federation's own load balancers (federation-lb) serve. No member serves it.
const IngressClassName = "federation"

// LoadBalancersNamespace has a Lease for each load balancer, and the service accounts that they log in with. Nothing in it is
// propagated.
const LoadBalancersNamespace = "federation-load-balancers"

// CertificatesSubresource of Ingresses is no resource: who may get it in a namespace may get the Secrets that Ingresses of
// IngressClassName there name for TLS.
const CertificatesSubresource = "certificates"

// LoadBalancerAnnotation, on the Lease of a load balancer, has as JSON what it says of itself: its region, its zone and the addresses
// that clients reach it at.
const LoadBalancerAnnotation = "federation.kubernetes.io/load-balancer"

// LoadBalancersConfigMap is a ConfigMap in FederationNamespace that has, by the name of each load balancer that is alive, what its Lease says. The
// leader of the controllers writes it.
const LoadBalancersConfigMap = "load-balancers"
