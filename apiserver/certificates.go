package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	networkinglisters "k8s.io/client-go/listers/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// certificates lets load balancers get the Secrets that they need, and no others: those that an Ingress of the federation's class names for
// TLS, in its own namespace. Who may get ingresses/certificates there may do so (ADR 164).
type certificates struct {
	authorizer.Authorizer
	ingresses networkinglisters.IngressLister
}

// withCertificates adds that to an authorizer.
func withCertificates(all authorizer.Authorizer, shared informers.SharedInformerFactory) authorizer.Authorizer {
	return certificates{all, shared.Networking().V1().Ingresses().Lister()}
}

// Authorize allows what the authorizer behind it allows, and those Secrets.
func (c certificates) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := c.Authorizer.Authorize(ctx, a)
	if decision != authorizer.DecisionNoOpinion || !isSecretOfANamespace(a) || !c.isCertificate(a.GetNamespace(), a.GetName()) {
		return decision, reason, err
	}
	instead, why, failed := c.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: "get", APIGroup: "networking.k8s.io", APIVersion: "v1", Resource: "ingresses", Subresource: v1beta1.CertificatesSubresource,
		Namespace: a.GetNamespace(), ResourceRequest: true,
	})
	if instead == authorizer.DecisionAllow {
		return instead, why, failed
	}
	return decision, reason, err
}

// isSecretOfANamespace reports whether a request gets one Secret of a namespace that is federated.
func isSecretOfANamespace(a authorizer.Attributes) bool {
	return a.IsResourceRequest() && a.GetVerb() == "get" && a.GetAPIGroup() == "" && a.GetResource() == "secrets" && a.GetSubresource() == "" &&
		a.GetName() != "" && a.GetNamespace() != "" && !v1beta1.OwnNamespace(a.GetNamespace())
}

// isCertificate reports whether an Ingress of the class names a Secret for TLS.
func (c certificates) isCertificate(namespace, name string) bool {
	all, err := c.ingresses.Ingresses(namespace).List(labels.Everything())
	if err != nil {
		return false
	}
	for _, i := range all {
		if i.Spec.IngressClassName == nil || *i.Spec.IngressClassName != v1beta1.IngressClassName {
			continue
		}
		for _, t := range i.Spec.TLS {
			if t.SecretName == name {
				return true
			}
		}
	}
	return false
}
