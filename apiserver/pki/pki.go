package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/keyutil"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// AdminUser is the administrator's name.
	AdminUser = "federation-admin"
	// SuperAdminUser is for emergencies: its group may do everything, whatever RBAC says.
	SuperAdminUser = "federation-super-admin"
	// ControllersUser is the name of the federation's controllers. RBAC decides what they may do.
	ControllersUser = "system:federation-controllers"
	// FrontProxyUser is the name under which the apiserver calls apiservers behind it.
	FrontProxyUser = "federation-front-proxy"
)

// Request says what to make.
type Request struct {
	// Server is the URL in the kubeconfig files, as https://127.0.0.1:6443.
	Server string
	// Hosts are the names and IP addresses that the serving certificate is for.
	Hosts []string
}

// Exists reports whether Ensure has made anything below dataDir.
func Exists(dataDir string) bool {
	f := FilesIn(dataDir)
	return exists(f.AdminKubeconfig) || exists(filepath.Dir(f.CA))
}

// Ensure creates below dataDir what is missing and renews what expires soon. It may be called again at any time, and
// leaves valid files alone.
func Ensure(dataDir string, r Request, now time.Time) (*Files, error) {
	f := FilesIn(dataDir)
	if err := os.MkdirAll(filepath.Dir(f.CA), 0o700); err != nil {
		return nil, err
	}
	f.protect(dataDir)
	signs, err := f.ensureShared(!exists(f.AdminKubeconfig) && !exists(f.CA), now)
	if err != nil {
		return nil, err
	}
	for _, l := range f.leaves(r.Hosts) {
		signer := signs.ca
		if l.certPath == f.FrontProxyCert {
			signer = signs.frontProxyCA
		}
		if err := ensureLeaf(l, signer, now); err != nil {
			return nil, err
		}
	}
	return f, ensureKubeconfigs(f, r.Server)
}

// signers are the authorities of a federation.
type signers struct{ ca, frontProxyCA *pair }

// ensureShared reads what all apiservers of a federation share, or makes it if that is still allowed.
func (f *Files) ensureShared(mayMake bool, now time.Time) (s signers, err error) {
	if err = ensureServiceAccountKey(f.ServiceAccountKey, mayMake); err != nil {
		return s, err
	}
	if err = ensureEncryption(f.Encryption, mayMake); err != nil {
		return s, err
	}
	if s.frontProxyCA, err = ensureAuthority(f.FrontProxyCA, f.FrontProxyCAKey, frontProxyName, mayMake, now); err != nil {
		return s, err
	}
	s.ca, err = ensureAuthority(f.CA, f.CAKey, authorityName, mayMake, now)
	return s, err
}

// Identity identifies this federation: a hash of its authority's certificate, the first one if it was rotated.
func (f *Files) Identity() (string, error) {
	kept, err := os.ReadFile(f.IdentityFile)
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	} else if !os.IsNotExist(err) {
		return "", err
	}
	content, err := os.ReadFile(f.CA)
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}

func (f *Files) leaves(hosts []string) []leaf {
	client := func(cert, key, name string, groups ...string) leaf {
		return leaf{certPath: cert, keyPath: key, subject: pkix.Name{CommonName: name, Organization: groups}, usage: x509.ExtKeyUsageClientAuth}
	}
	return []leaf{
		{certPath: f.ServingCert, keyPath: f.ServingKey, subject: pkix.Name{CommonName: "federation-apiserver"}, hosts: hosts, usage: x509.ExtKeyUsageServerAuth},
		client(f.AdminCert, f.AdminKey, AdminUser, v1beta1.AdminsGroup),
		client(f.SuperAdminCert, f.SuperAdminKey, SuperAdminUser, user.SystemPrivilegedGroup),
		client(f.ControllersCert, f.ControllersKey, ControllersUser),
		client(f.FrontProxyCert, f.FrontProxyKey, FrontProxyUser),
	}
}

func ensureServiceAccountKey(path string, mayMake bool) error {
	_, err := keyutil.PrivateKeyFromFile(path)
	if err == nil || !mayMake {
		return lostError(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return write(path, content)
}

// encryption encrypts Secrets with the key, and still reads what was stored before there was one.
const encryption = `# Encrypts Secrets in etcd. Without this key they cannot be read: keep a backup of it.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: first
        secret: %s
  - identity: {}
`

func ensureEncryption(path string, mayMake bool) error {
	_, err := os.Stat(path)
	if err == nil || !mayMake {
		return lostError(err)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	return write(path, fmt.Appendf(nil, encryption, base64.StdEncoding.EncodeToString(key)))
}
