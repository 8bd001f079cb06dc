package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Files of the cluster's certificates, below the data directory. Each NAME.crt has its NAME.key.
const (
	caName         = "pki/ca"          // signs all of these, and what the CSR API signs
	servingName    = "pki/apiserver"   // what the API shows
	adminName      = "pki/admin"       // a member of system:masters
	frontProxyName = "pki/front-proxy" // how the aggregator proves itself to extension API servers
	saKeyFile      = "pki/sa.key"      // signs ServiceAccount tokens
)

const certLifetime = 10 * 365 * 24 * time.Hour

type keyPair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// ensurePKI makes the cluster's certificates and keys if they are not there yet. The file that is
// written last is the one looked for, so a first start that was killed half-way begins again. Clients reach
// the API at these addresses.
func ensurePKI(addresses []net.IP) error {
	if _, err := os.Stat(adminName + ".crt"); err == nil {
		return nil
	}
	if err := os.MkdirAll("pki", 0o700); err != nil {
		return err
	}
	ca, err := newCA()
	if err != nil {
		return err
	}
	saKey, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(saKeyFile, saKey); err != nil {
		return err
	}
	server := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if err := ca.issue(servingName, server); err != nil {
		return err
	}
	if err := ca.issue(frontProxyName, client("front-proxy-client")); err != nil {
		return err
	}
	return ca.issue(adminName, client("admin", "system:masters"))
}

func client(user string, groups ...string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newCA() (*keyPair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	c, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "member-ca"}, key)
	if err != nil {
		return nil, err
	}
	ca := &keyPair{cert: c, key: key}
	return ca, ca.write(caName)
}

// issue signs a certificate after the template and writes it and its key to name.crt and name.key.
func (ca *keyPair) issue(name string, template x509.Certificate) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return err
	}
	template.NotBefore = ca.cert.NotBefore
	template.NotAfter = time.Now().Add(certLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	return (&keyPair{cert: c, key: key}).write(name)
}

func (p *keyPair) write(name string) error {
	if err := writeKey(name+".key", p.key); err != nil {
		return err
	}
	pem, err := cert.EncodeCertificates(p.cert)
	if err != nil {
		return err
	}
	return cert.WriteCert(name+".crt", pem)
}

func writeKey(file string, key crypto.Signer) error {
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(file, pem)
}

// loadCA reads what ensurePKI has made.
func loadCA() (*keyPair, error) {
	certs, err := cert.CertsFromFile(caName + ".crt")
	if err != nil {
		return nil, err
	}
	key, err := keyutil.PrivateKeyFromFile(caName + ".key")
	if err != nil {
		return nil, err
	}
	return &keyPair{cert: certs[0], key: key.(crypto.Signer)}, nil // an ECDSA key, which signs
}

// writeKubeconfig writes the admin kubeconfig with all certificates inside it, so that it can be
// copied anywhere. It appears whole or not at all: others may be waiting for it.
func (o *Options) writeKubeconfig() error {
	return o.writeKubeconfigOf(adminName, o.url(), o.Kubeconfig)
}

// writeKubeconfigOf writes that of one credential, for an address of the API.
func (o *Options) writeKubeconfigOf(credential, url, path string) error {
	var data [3][]byte
	for i, file := range []string{caName + ".crt", credential + ".crt", credential + ".key"} {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		data[i] = b
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[o.Name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: data[0]}
	config.AuthInfos[o.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	config.Contexts[o.Name] = &clientcmdapi.Context{Cluster: o.Name, AuthInfo: o.Name}
	config.CurrentContext = o.Name
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*config, path+".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
