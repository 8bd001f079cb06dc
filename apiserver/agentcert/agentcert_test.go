package agentcert

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

// request is what an agent asks for, with what change makes of it.
func request(t *testing.T, cluster string, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) certificatesv1.CertificateSigningRequestSpec {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return requestWith(t, key, cluster, change)
}

func requestWith(t *testing.T, key crypto.Signer, cluster string, change func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)) certificatesv1.CertificateSigningRequestSpec {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: v1beta1.AgentUserName(cluster), Organization: []string{v1beta1.AgentsGroup}}}
	spec := certificatesv1.CertificateSigningRequestSpec{SignerName: v1beta1.AgentSigner, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}}
	if change != nil {
		change(template, &spec)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return spec
}

// What is asked for is exactly the certificate of an agent: nothing else is signed, whoever approves it.
func TestParse(t *testing.T) {
	type csr = x509.CertificateRequest
	type spec = certificatesv1.CertificateSigningRequestSpec
	for name, tc := range map[string]struct {
		change func(*csr, *spec)
		want   string // "": it is taken
	}{
		"an agent's":            {nil, ""},
		"with key encipherment": {func(_ *csr, s *spec) { s.Usages = append(s.Usages, certificatesv1.UsageKeyEncipherment) }, ""},
		"an administrator's":    {func(c *csr, _ *spec) { c.Subject.Organization = []string{"system:masters"} }, "organization"},
		"of two groups":         {func(c *csr, _ *spec) { c.Subject.Organization = append(c.Subject.Organization, "system:masters") }, "organization"},
		"of another user":       {func(c *csr, _ *spec) { c.Subject.CommonName = "federation-admin" }, "common name"},
		"of a path":             {func(c *csr, _ *spec) { c.Subject.CommonName = v1beta1.AgentUserName("a/b") }, "common name"},
		"of no cluster":         {func(c *csr, _ *spec) { c.Subject.CommonName = v1beta1.AgentUserName("") }, "common name"},
		"with a locality":       {func(c *csr, _ *spec) { c.Subject.Locality = []string{"x"} }, "nothing else"},
		"with a UID of its own": {func(c *csr, _ *spec) {
			c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: []int{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "u"}}
		}, "nothing else"},
		"with a host name":    {func(c *csr, _ *spec) { c.DNSNames = []string{"fed.example.com"} }, "alternative names"},
		"to serve":            {func(_ *csr, s *spec) { s.Usages = append(s.Usages, certificatesv1.UsageServerAuth) }, "server auth"},
		"not to authenticate": {func(_ *csr, s *spec) { s.Usages = s.Usages[:1] }, "client auth"},
		"to sign other's":     {func(_ *csr, s *spec) { s.Usages = append(s.Usages, certificatesv1.UsageCertSign) }, "cert sign"},
	} {
		s := request(t, "east", tc.change)
		r, err := Parse(&s)
		switch {
		case tc.want == "" && (err != nil || r.Cluster != "east" || r.Lifetime != lifetime):
			t.Errorf("%s: %+v, %v", name, r, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want an error about %s", name, err, tc.want)
		}
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	broken := request(t, "east", nil)
	broken.Request = broken.Request[:len(broken.Request)/2]
	for name, s := range map[string]spec{"a weak key": requestWith(t, weak, "east", nil), "half of one": broken, "none": {}} {
		if _, err := Parse(&s); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A certificate is good for what is asked, within bounds.
func TestParseLifetime(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{1: minLifetime, 7200: 2 * time.Hour, 1 << 30: lifetime} {
		s := request(t, "east", func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.ExpirationSeconds = &seconds
		})
		if r, err := Parse(&s); err != nil || r.Lifetime != want {
			t.Errorf("%d seconds: %v, %v; want %v", seconds, r, err, want)
		}
	}
}

// Only the bootstrap token of this very cluster, and the agent that has a certificate for this very Cluster, are approved without a person.
func TestJudge(t *testing.T) {
	cluster := func(change func(*v1beta1.Cluster)) *v1beta1.Cluster {
		c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u"}, Spec: v1beta1.ClusterSpec{Connection: v1beta1.ConnectionPull}}
		if change != nil {
			change(c)
		}
		return c
	}
	token := []string{"system:bootstrappers", v1beta1.BootstrapGroups, v1beta1.BootstrapGroup("east")}
	for name, tc := range map[string]struct {
		user, uid string
		groups    []string
		cluster   *v1beta1.Cluster
		want      Action
	}{
		"its token":                       {"system:bootstrap:abcdef", "", token, cluster(nil), Approve},
		"the token of another cluster":    {"system:bootstrap:abcdef", "", []string{v1beta1.BootstrapGroups, v1beta1.BootstrapGroup("west")}, cluster(nil), Deny},
		"a token for nodes":               {"system:bootstrap:abcdef", "", []string{"system:bootstrappers:kubeadm:default-node-token"}, cluster(nil), Deny},
		"the agent":                       {v1beta1.AgentUserName("east"), "u", []string{v1beta1.AgentsGroup}, cluster(nil), Approve},
		"the agent of an earlier Cluster": {v1beta1.AgentUserName("east"), "was", []string{v1beta1.AgentsGroup}, cluster(nil), Deny},
		"another agent":                   {v1beta1.AgentUserName("west"), "u", []string{v1beta1.AgentsGroup}, cluster(nil), Deny},
		"a person":                        {"jane", "", []string{"ops"}, cluster(nil), Wait},
		"who claims the group of a token": {"jane", "", token, cluster(nil), Wait},
		"no such cluster":                 {"system:bootstrap:abcdef", "", token, nil, Deny},
		"one that leaves":                 {"system:bootstrap:abcdef", "", token, cluster(func(c *v1beta1.Cluster) { c.DeletionTimestamp = &metav1.Time{} }), Deny},
		"one that we connect to":          {"system:bootstrap:abcdef", "", token, cluster(func(c *v1beta1.Cluster) { c.Spec.Connection = "" }), Deny},
	} {
		v := Judge(&certificatesv1.CertificateSigningRequestSpec{Username: tc.user, UID: tc.uid, Groups: tc.groups}, &Request{Cluster: "east"}, tc.cluster)
		if v.Action != tc.want || v.Message == "" || (v.TokenID != "") != (tc.want == Approve && strings.HasPrefix(tc.user, "system:bootstrap:")) {
			t.Errorf("%s: %+v, want %s", name, v, tc.want)
		}
	}
}

// running is a Controller beside a fake API, which has the token abcdef.
func running(t *testing.T) *fake.Clientset {
	kube := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1beta1.BootstrapSecretName("abcdef")}})
	factory := informers.NewSharedInformerFactory(kube, 0)
	find := func(_ context.Context, name string) (*v1beta1.Cluster, error) {
		if name != "east" {
			return nil, nil
		}
		return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u"}, Spec: v1beta1.ClusterSpec{Connection: v1beta1.ConnectionPull}}, nil
	}
	c, err := New(kube, factory.Certificates().V1().CertificateSigningRequests(), find, func(r *x509.CertificateRequest, uid string, _ time.Duration) ([]byte, error) {
		return []byte(r.Subject.CommonName + " " + uid), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	go c.Run(t.Context())
	return kube
}

// ask makes a request and returns it when it has a certificate, was denied or failed.
func ask(t *testing.T, kube *fake.Clientset, name string, spec certificatesv1.CertificateSigningRequestSpec, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	requests := kube.CertificatesV1().CertificateSigningRequests()
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now()}, Spec: spec}
	csr.Status.Conditions = conditions
	if _, err := requests.Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got, err := requests.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, denied := conditionsOf(got); denied || len(got.Status.Certificate) > 0 || has(got, certificatesv1.CertificateFailed) {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing becomes of %s: %+v", name, got.Status)
		}
	}
}

// A token is good for one certificate, for the Cluster that is there now; what a person approves is signed only if it is an agent's.
func TestController(t *testing.T) {
	kube := running(t)
	byToken := func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
		s.Username, s.Groups = "system:bootstrap:abcdef", []string{v1beta1.BootstrapGroup("east")}
	}
	if got := ask(t, kube, "first", request(t, "east", byToken)); string(got.Status.Certificate) != v1beta1.AgentUserName("east")+" u" {
		t.Errorf("the first: %+v", got.Status)
	}
	if got := ask(t, kube, "second", request(t, "east", byToken)); len(got.Status.Certificate) > 0 || !strings.Contains(got.Status.Conditions[0].Message, "has been used") {
		t.Errorf("the second: %+v", got.Status)
	}
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}
	if got := ask(t, kube, "by-hand", request(t, "east", nil), approved); len(got.Status.Certificate) == 0 {
		t.Errorf("approved by a person: %+v", got.Status)
	}
	masters := request(t, "east", func(c *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
		c.Subject.Organization = []string{"system:masters"}
	})
	if got := ask(t, kube, "masters", masters, approved); len(got.Status.Certificate) > 0 || !has(got, certificatesv1.CertificateFailed) {
		t.Errorf("an administrator's, approved by a person: %+v", got.Status)
	}
	if got := ask(t, kube, "unknown", request(t, "west", nil), approved); len(got.Status.Certificate) > 0 {
		t.Errorf("of no cluster: %+v", got.Status)
	}
}

// A token serves the request that has reserved it, also when that is decided about again, and no cluster that joined long after it was made.
func TestJudgeToken(t *testing.T) {
	if got := JudgeToken(nil, "request", &v1beta1.Cluster{}); !strings.Contains(got, "has been used") {
		t.Errorf("a token that is gone: %q", got)
	}
	now := time.Now()
	for name, tc := range map[string]struct {
		usedBy string
		before time.Duration // how long before the Cluster it was made
		want   string
	}{
		"new":                       {"", 0, ""},
		"made before the Cluster":   {"", time.Minute, ""},
		"of an earlier Cluster":     {"", time.Hour, "earlier"},
		"reserved by this request":  {"request", 0, ""},
		"reserved by another":       {"other", 0, "has been used"},
		"made after it, long since": {"", -48 * time.Hour, ""},
	} {
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-tc.before))}}
		if tc.usedBy != "" {
			token.Annotations = map[string]string{usedBy: tc.usedBy}
		}
		got := JudgeToken(token, "request", &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now)}})
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
