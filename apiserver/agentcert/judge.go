package agentcert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// lifetime is how long a certificate is good for, unless less is asked for.
	lifetime = 30 * 24 * time.Hour
	// minLifetime is the least that is given.
	minLifetime = 10 * time.Minute
	// tokenBefore is how long before its Cluster a bootstrap token can have been made: one of before was for a cluster of that name that has left.
	tokenBefore = 5 * time.Minute
	// usedBy is an annotation on the Secret of a bootstrap token: the UID of the request that uses it up.
	usedBy = "federation.kubernetes.io/used-by"
	// bootstrapUser begins the user names of bootstrap tokens; what follows is the ID of the token.
	bootstrapUser = "system:bootstrap:"
)

// Action is what to do with a request.
type Action string

// The actions.
const (
	// Wait: a person decides.
	Wait Action = "Wait"
	// Approve the request.
	Approve Action = "Approve"
	// Deny the request.
	Deny Action = "Deny"
)

// Verdict says what to do with a request, and why.
type Verdict struct {
	Action  Action
	Message string
	// TokenID is the bootstrap token that is used up by it; "" where it is none.
	TokenID string
}

// Request is what is asked for by a CertificateSigningRequest.
type Request struct {
	// Cluster is the name of the Cluster.
	Cluster string
	// Parsed is what the agent signed.
	Parsed *x509.CertificateRequest
	// Lifetime is how long the certificate is to be good for.
	Lifetime time.Duration
}

// Parse returns what a CertificateSigningRequest asks for. The error says what is wrong with it.
func Parse(spec *certificatesv1.CertificateSigningRequestSpec) (*Request, error) {
	block, _ := pem.Decode(spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("spec.request: must be a CERTIFICATE REQUEST in PEM")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	if !sound(parsed.PublicKey) { // before it is used
		return nil, errors.New("spec.request: the key must be ECDSA of 256 bits or more, Ed25519, or RSA of 2048 to 8192 bits")
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, fmt.Errorf("spec.request: its signature: %w", err)
	}
	cluster, ok := v1beta1.ClusterOfAgent(parsed.Subject.CommonName)
	switch {
	case !ok || len(validation.IsDNS1123Label(cluster)) > 0:
		return nil, fmt.Errorf("spec.request: common name %q: must be %s", parsed.Subject.CommonName, v1beta1.AgentUserName("CLUSTER"))
	case !slices.Equal(parsed.Subject.Organization, []string{v1beta1.AgentsGroup}):
		return nil, fmt.Errorf("spec.request: organization %q: must be %q", parsed.Subject.Organization, v1beta1.AgentsGroup)
	case len(parsed.Subject.Names) != 2:
		return nil, errors.New("spec.request: the subject must have a common name and an organization, and nothing else")
	case len(parsed.DNSNames)+len(parsed.IPAddresses)+len(parsed.EmailAddresses)+len(parsed.URIs) > 0:
		return nil, errors.New("spec.request: must have no alternative names")
	}
	for _, u := range spec.Usages {
		switch u {
		case certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return nil, fmt.Errorf("spec.usages: %q: must be client auth, digital signature or key encipherment", u)
		}
	}
	if !slices.Contains(spec.Usages, certificatesv1.UsageClientAuth) {
		return nil, errors.New("spec.usages: must have client auth")
	}
	r := &Request{Cluster: cluster, Parsed: parsed, Lifetime: lifetime}
	if s := spec.ExpirationSeconds; s != nil {
		r.Lifetime = max(minLifetime, min(lifetime, time.Duration(*s)*time.Second))
	}
	return r, nil
}

// sound reports whether a public key is strong enough for a certificate, and not so large that it takes long to use.
func sound(public any) bool {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize >= 256
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048 && key.N.BitLen() <= 8192
	case ed25519.PublicKey:
		return true
	}
	return false
}

// Judge decides about a request. cluster is the Cluster that it names; nil: there is none.
func Judge(spec *certificatesv1.CertificateSigningRequestSpec, r *Request, cluster *v1beta1.Cluster) Verdict {
	deny := func(format string, a ...any) Verdict {
		return Verdict{Action: Deny, Message: fmt.Sprintf(format, a...)}
	}
	token, byToken := strings.CutPrefix(spec.Username, bootstrapUser)
	switch {
	case cluster == nil:
		return deny("there is no Cluster %q", r.Cluster)
	case cluster.DeletionTimestamp != nil:
		return deny("the Cluster %q is leaving the federation", r.Cluster)
	case !cluster.IsPull():
		return deny("spec.connection of the Cluster %q is not %s: it has no agent", r.Cluster, v1beta1.ConnectionPull)
	case byToken && slices.Contains(spec.Groups, v1beta1.BootstrapGroup(r.Cluster)):
		return Verdict{Action: Approve, Message: "asked for with the bootstrap token of the cluster", TokenID: token}
	case byToken:
		return deny("the bootstrap token %s is not for the cluster %q: its groups are %q", token, r.Cluster, spec.Groups)
	case spec.Username != v1beta1.AgentUserName(r.Cluster) && slices.Contains(spec.Groups, v1beta1.AgentsGroup):
		return deny("%s may not ask for a certificate of another cluster's agent", spec.Username)
	case spec.Username != v1beta1.AgentUserName(r.Cluster):
		return Verdict{Action: Wait, Message: "a person decides"}
	case spec.UID != string(cluster.UID):
		return deny("the agent has a certificate for another Cluster %q: its UID is %q, and that of the Cluster %q", r.Cluster, spec.UID, cluster.UID)
	}
	return Verdict{Action: Approve, Message: "asked for by the agent of the cluster"}
}

// JudgeToken returns why a bootstrap token may not be used for a request, by the token's Secret, nil for one that is gone; "": it may.
func JudgeToken(token *corev1.Secret, request types.UID, cluster *v1beta1.Cluster) string {
	switch {
	case token == nil, token.Annotations[usedBy] != "" && token.Annotations[usedBy] != string(request):
		return "has been used: make another one"
	case token.CreationTimestamp.Add(tokenBefore).Before(cluster.CreationTimestamp.Time):
		return "was made for an earlier cluster of the name: make another one"
	}
	return ""
}
