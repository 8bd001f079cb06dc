package admission

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// maxCertificateRequest bounds spec.request in bytes: before anybody decides about it, its signature is checked, which takes a core for
	// minutes if the key is large enough.
	maxCertificateRequest = 8 << 10
	// maxKeptRequests is how many requests of one agent, or of one bootstrap token, are kept at a time, decided or not.
	maxKeptRequests = 30
)

// checkCertificateRequest rejects a request for a certificate that is too large, and one by the agent of a cluster, whom nobody trusts, that is
// for anything but an agent's certificate, or one too many.
func (p *Plugin) checkCertificateRequest(ctx context.Context, a admission.Attributes) error {
	csr, ok := a.GetObject().(*certificates.CertificateSigningRequest)
	if !ok || a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return nil
	}
	if n := len(csr.Spec.Request); n > maxCertificateRequest {
		return admission.NewForbidden(a, fmt.Errorf("spec.request: has %d bytes: must have %d at most", n, maxCertificateRequest))
	}
	if user := a.GetUserInfo(); user == nil || !v1beta1.IsAgent(user.GetGroups()) {
		return nil
	}
	if csr.Spec.SignerName != v1beta1.AgentSigner {
		return admission.NewForbidden(a, fmt.Errorf("spec.signerName: %q: must be %s for the agent of a cluster", csr.Spec.SignerName, v1beta1.AgentSigner))
	}
	if len(csr.Labels)+len(csr.Annotations)+len(csr.Finalizers)+len(csr.OwnerReferences) > 0 {
		return admission.NewForbidden(a, fmt.Errorf("metadata: must have no labels, annotations, finalizers and owners for the agent of a cluster"))
	}
	kept, err := p.requests.CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", v1beta1.AgentSigner).String(), ResourceVersion: "0",
	})
	if err != nil {
		return err
	}
	own := 0
	for i := range kept.Items {
		if kept.Items[i].Spec.Username == a.GetUserInfo().GetName() {
			own++
		}
	}
	if own >= maxKeptRequests {
		return admission.NewForbidden(a, fmt.Errorf("%d requests of %s are kept, of at most %d: those that are decided go after an hour", own, a.GetUserInfo().GetName(), maxKeptRequests))
	}
	return nil
}
