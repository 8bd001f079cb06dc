package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"time"

	"k8s.io/client-go/util/cert"
)

// uidAttribute is the attribute of a subject that Kubernetes takes for the UID of a user.
var uidAttribute = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// SignClient returns a certificate in PEM for the client that signed a request, with its common name and organization, and a UID. The request must have
// been checked.
func (f *Files) SignClient(r *x509.CertificateRequest, uid string, lifetime time.Duration) ([]byte, error) {
	ca, err := readPair(f.CA, f.CAKey)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	der, err := ca.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: r.Subject.CommonName, Organization: r.Subject.Organization,
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: uidAttribute, Value: uid}},
		},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, r.PublicKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), nil
}
