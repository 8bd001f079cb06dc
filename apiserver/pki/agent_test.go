package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	authenticatorx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/client-go/util/cert"
)

// Kubernetes takes the certificate that is signed for the user, group and UID that it is for, and it is trusted.
func TestSignClient(t *testing.T) {
	f, err := Ensure(t.TempDir(), Request{Server: "https://127.0.0.1:1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "agent", Organization: []string{"agents"}}, PublicKey: key.Public()}
	made, err := f.SignClient(r, "a-uid", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(made)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := cert.NewPool(f.CA)
	if err != nil {
		t.Fatal(err)
	}
	chains, err := certs[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Fatal(err)
	}
	who, ok, err := authenticatorx509.CommonNameUserConversion.User(chains[0])
	if err != nil || !ok || who.User.GetName() != "agent" || who.User.GetUID() != "a-uid" || len(who.User.GetGroups()) != 1 || who.User.GetGroups()[0] != "agents" {
		t.Errorf("%+v, %t, %v", who, ok, err)
	}
	if left := time.Until(certs[0].NotAfter); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it is good for %s, want 1h", left)
	}
}
