package v1beta1

// IngressClassName is the class of the Ingresses that the federation's own load balancers (federation-lb) serve. No member serves it.
const IngressClassName = "federation"
