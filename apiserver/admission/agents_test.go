package admission

import (
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/certificates"

	"federation/apiserver/apis/federation/v1beta1"
)

// Whoever asks for a certificate asks for little; the agent of a cluster asks for an agent's only, without anything beside, and not without end.
func TestRequestsForCertificatesAreBounded(t *testing.T) {
	kube := fake.NewClientset()
	p := New(policies{}, nil, nil)
	p.requests = kube.CertificatesV1()
	agent := &user.DefaultInfo{Name: v1beta1.AgentUserName("east"), Groups: []string{v1beta1.AgentsGroup}}
	token := &user.DefaultInfo{Name: "system:bootstrap:abcdef", Groups: []string{v1beta1.BootstrapGroups}}
	person := &user.DefaultInfo{Name: "jane"}
	ask := func(who user.Info, change func(*certificates.CertificateSigningRequest)) error {
		csr := &certificates.CertificateSigningRequest{Spec: certificates.CertificateSigningRequestSpec{SignerName: v1beta1.AgentSigner, Request: make([]byte, 1000)}}
		if change != nil {
			change(csr)
		}
		return p.Admit(t.Context(), admission.NewAttributesRecord(csr, nil, certificates.SchemeGroupVersion.WithKind("CertificateSigningRequest").GroupKind().WithVersion("v1"), "", "",
			certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", admission.Create, &metav1.CreateOptions{}, false, who), nil)
	}
	for name, c := range map[string]struct {
		who    user.Info
		change func(*certificates.CertificateSigningRequest)
		want   string
	}{
		"an agent":                      {agent, nil, ""},
		"a token":                       {token, nil, ""},
		"a large key":                   {person, func(c *certificates.CertificateSigningRequest) { c.Spec.Request = make([]byte, 8<<10+1) }, "8193 bytes"},
		"a person for another signer":   {person, func(c *certificates.CertificateSigningRequest) { c.Spec.SignerName = "example.com/x" }, ""},
		"an agent for another signer":   {agent, func(c *certificates.CertificateSigningRequest) { c.Spec.SignerName = "example.com/x" }, `spec.signerName: "example.com/x"`},
		"a token for another signer":    {token, func(c *certificates.CertificateSigningRequest) { c.Spec.SignerName = "example.com/x" }, `spec.signerName: "example.com/x"`},
		"an agent with an annotation":   {agent, func(c *certificates.CertificateSigningRequest) { c.Annotations = map[string]string{"a": "b"} }, "metadata"},
		"an agent, not to be deleted":   {agent, func(c *certificates.CertificateSigningRequest) { c.Finalizers = []string{"a/b"} }, "metadata"},
		"a person with an annotation":   {person, func(c *certificates.CertificateSigningRequest) { c.Annotations = map[string]string{"a": "b"} }, ""},
		"an agent, owned by something":  {agent, func(c *certificates.CertificateSigningRequest) { c.OwnerReferences = make([]metav1.OwnerReference, 1) }, "metadata"},
		"an agent with a label":         {agent, func(c *certificates.CertificateSigningRequest) { c.Labels = map[string]string{"a": "b"} }, "metadata"},
		"an agent with a large request": {agent, func(c *certificates.CertificateSigningRequest) { c.Spec.Request = make([]byte, 1<<20) }, "1048576 bytes"},
	} {
		if err := ask(c.who, c.change); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for i := range maxKeptRequests {
		kept := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("csr-", i)}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: v1beta1.AgentSigner, Username: agent.Name}}
		if _, err := kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(agent, nil); err == nil || !strings.Contains(err.Error(), "30 requests of system:federation:cluster-agent:east are kept") {
		t.Errorf("one too many: %v", err)
	}
	if err := ask(token, nil); err != nil {
		t.Errorf("who has asked for none: %v", err)
	}
}
