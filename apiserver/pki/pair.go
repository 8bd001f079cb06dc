package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
	clockSkew     = 5 * time.Minute
)

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// leaf describes a certificate that an authority signs.
type leaf struct {
	certPath, keyPath string
	subject           pkix.Name
	hosts             []string // for a serving certificate
	usage             x509.ExtKeyUsage
}

// newPair makes a key and a certificate from the template, signed by parent, or self-signed.
func newPair(template *x509.Certificate, parent *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if parent == nil {
		parent = &pair{template, key}
	}
	der, err := parent.sign(template, key.Public())
	if err != nil {
		return nil, err
	}
	made, err := x509.ParseCertificate(der)
	return &pair{made, key}, err
}

// sign returns a certificate in DER for a public key, with a serial number of its own.
func (p *pair) sign(template *x509.Certificate, public crypto.PublicKey) (der []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, template, p.cert, public, p.key)
}

func (p *pair) write(certPath, keyPath string) error {
	key, err := keyutil.MarshalPrivateKeyToPEM(p.key)
	if err != nil {
		return err
	}
	if err := write(keyPath, key); err != nil {
		return err
	}
	return write(certPath, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: p.cert.Raw}))
}

// readPair reads a certificate, the first in its file, and its key and checks that they belong together.
func readPair(certPath, keyPath string) (*pair, error) {
	certs, err := cert.CertsFromFile(certPath)
	if err != nil {
		return nil, err
	}
	parsed, err := keyutil.PrivateKeyFromFile(keyPath)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a %T cannot sign", keyPath, parsed)
	}
	if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(certs[0].PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", keyPath, certPath)
	}
	return &pair{certs[0], key}, nil
}

// ensureAuthority reads an authority, or creates it if that is still allowed.
func ensureAuthority(certPath, keyPath, name string, mayMake bool, now time.Time) (*pair, error) {
	p, err := readPair(certPath, keyPath)
	if err == nil || !mayMake {
		return p, lostError(err)
	}
	if p, err = newAuthority(name, now); err != nil {
		return nil, err
	}
	return p, p.write(certPath, keyPath)
}

func newAuthority(name string, now time.Time) (*pair, error) {
	return newPair(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil)
}

// lostError adds what to do about something that existed and cannot be read.
func lostError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: it was made at the first start and cannot be made again; bring it back from a backup, or from another apiserver of this federation", err)
}

// ensureLeaf keeps a certificate that is valid for a while, or makes a new one.
func ensureLeaf(l leaf, authority *pair, now time.Time) error {
	if p, err := readPair(l.certPath, l.keyPath); err == nil && l.isValid(p, authority, now) {
		return nil
	} else if os.IsPermission(err) {
		return err
	}
	p, err := newPair(l.template(now), authority)
	if err != nil {
		return err
	}
	return p.write(l.certPath, l.keyPath)
}

func (l leaf) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject: l.subject, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
	}
	for _, h := range l.hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t
}

func (l leaf) isValid(p, authority *pair, now time.Time) bool {
	if p.cert.CheckSignatureFrom(authority.cert) != nil || now.Add(renewBefore).After(p.cert.NotAfter) {
		return false
	}
	if p.cert.Subject.CommonName != l.subject.CommonName || !slices.Equal(p.cert.Subject.Organization, l.subject.Organization) {
		return false
	}
	for _, h := range l.hosts {
		if p.cert.VerifyHostname(h) != nil {
			return false
		}
	}
	return true
}
