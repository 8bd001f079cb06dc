package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// The steps of a rotation of the authorities, in this order. After each step the federation must restart, and whoever
// has a kubeconfig file or the authority's certificate elsewhere must take the new one, before the next step.
const (
	// StepTrust creates new authorities, which are trusted beside the signing ones.
	StepTrust = "trust"
	// StepSign makes the new ones sign. The keys of the old ones are deleted; what they signed is still trusted.
	StepSign = "sign"
	// StepFinish ends the trust in the old ones.
	StepFinish = "finish"
)

// Steps are all of them.
var Steps = []string{StepTrust, StepSign, StepFinish}

// authority has the paths of one. During a rotation the certificate's file has several: the first signs, all are
// trusted.
type authority struct{ cert, key, nextCert, nextKey, name string }

const (
	authorityName  = "federation-ca"
	frontProxyName = "federation-front-proxy-ca"
)

func (f *Files) authorities() []authority {
	of := func(cert, key, name string) authority {
		return authority{cert, key, nextPath(cert), nextPath(key), name}
	}
	return []authority{of(f.CA, f.CAKey, authorityName), of(f.FrontProxyCA, f.FrontProxyCAKey, frontProxyName)}
}

// nextPath returns the path of a file's replacement: ca-next.crt for ca.crt.
func nextPath(path string) string {
	end := filepath.Ext(path)
	return strings.TrimSuffix(path, end) + "-next" + end
}

// Rotate carries out a step for the authorities below a data directory, while no process of the federation uses it. An
// interrupted step can be repeated; for a step out of order the error names the next one.
func Rotate(dataDir, step string, now time.Time) error {
	f := FilesIn(dataDir)
	do := map[string]func(authority, time.Time) error{StepTrust: authority.trust, StepSign: authority.sign, StepFinish: authority.finish}[step]
	if do == nil {
		return fmt.Errorf("step %q: want one of %s", step, strings.Join(Steps, ", "))
	}
	if err := f.keepIdentity(); err != nil {
		return lostError(err)
	}
	for _, a := range f.authorities() {
		if err := do(a, now); err != nil {
			return err
		}
	}
	return nil
}

// keepIdentity stores the federation's identity before its authority changes.
func (f *Files) keepIdentity() error {
	if exists(f.IdentityFile) {
		return nil
	}
	identity, err := f.Identity()
	if err != nil {
		return err
	}
	return write(f.IdentityFile, []byte(identity+"\n"))
}

func (a authority) trust(now time.Time) error {
	certs, err := cert.CertsFromFile(a.cert)
	if err != nil {
		return lostError(err)
	}
	if len(certs) > 1 && exists(a.nextCert) {
		return nil // it was done
	}
	if len(certs) > 1 {
		return fmt.Errorf("%s has more than one certificate: a rotation has begun, and %q is next", a.cert, StepFinish)
	}
	made, err := readPair(a.nextCert, a.nextKey)
	if err != nil { // an interrupted step may have left a part
		if made, err = newAuthority(a.name, now); err != nil {
			return err
		}
		if err := made.write(a.nextCert, a.nextKey); err != nil {
			return err
		}
	}
	return writeCerts(a.cert, certs[0], made.cert)
}

func (a authority) sign(time.Time) error {
	certs, err := cert.CertsFromFile(a.cert)
	if err != nil {
		return lostError(err)
	}
	if !exists(a.nextCert) && len(certs) > 1 {
		return nil // it was done
	}
	made, err := readPair(a.nextCert, a.nextKey)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there: %q is next", a.nextCert, StepTrust)
	}
	if err != nil {
		return err
	}
	ordered, trusted := []*x509.Certificate{made.cert}, false
	for _, c := range certs {
		if c.Equal(made.cert) {
			trusted = true
		} else {
			ordered = append(ordered, c)
		}
	}
	if !trusted {
		return fmt.Errorf("%s does not have the certificate in %s: %q is next", a.cert, a.nextCert, StepTrust)
	}
	key, err := os.ReadFile(a.nextKey)
	if err != nil {
		return err
	}
	if err := write(a.key, key); err != nil {
		return err
	}
	if err := writeCerts(a.cert, ordered...); err != nil {
		return err
	}
	return errors.Join(os.Remove(a.nextKey), os.Remove(a.nextCert)) // the certificate last: while it is there the step can be repeated
}

func (a authority) finish(time.Time) error {
	if exists(a.nextCert) {
		return fmt.Errorf("%s is there: %q is next", a.nextCert, StepSign)
	}
	signs, err := readPair(a.cert, a.key)
	if err != nil {
		return lostError(err)
	}
	return writeCerts(a.cert, signs.cert)
}

func writeCerts(path string, certs ...*x509.Certificate) error {
	var all bytes.Buffer
	for _, c := range certs {
		if err := pem.Encode(&all, &pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw}); err != nil {
			return err
		}
	}
	return write(path, all.Bytes())
}
