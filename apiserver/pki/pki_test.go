package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ensure(t *testing.T, dir string, now time.Time, hosts ...string) *Files {
	t.Helper()
	f, err := Ensure(dir, Request{Server: "https://127.0.0.1:6443", Hosts: append(hosts, "localhost")}, now)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// snapshot has the content of all files by path.
func snapshot(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600 (%v)", path, info.Mode(), err)
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// changed has the names of the files that differ.
func changed(was, is map[string][]byte) map[string]bool {
	names := map[string]bool{}
	for path, content := range is {
		if !bytes.Equal(was[path], content) {
			names[filepath.Base(path)] = true
		}
	}
	return names
}

func TestEnsureAgainChangesNothing(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, start)
	was := snapshot(t, dir)
	ensure(t, dir, start.Add(300*24*time.Hour))
	if names := changed(was, snapshot(t, dir)); len(names) > 0 {
		t.Errorf("made anew: %v", names)
	}
}

func TestCertificatesThatEndSoonAreRenewedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir, start)
	was := snapshot(t, dir)
	ensure(t, dir, start.Add(340*24*time.Hour))
	names := changed(was, snapshot(t, dir))
	for _, path := range []string{f.ServingCert, f.AdminCert, f.ControllersCert, f.FrontProxyCert, f.AdminKubeconfig, f.ControllersKubeconfig} {
		if !names[filepath.Base(path)] {
			t.Errorf("%s is as it was", path)
		}
	}
	for _, path := range []string{f.CA, f.CAKey, f.FrontProxyCA, f.ServiceAccountKey, f.Encryption} {
		if names[filepath.Base(path)] {
			t.Errorf("%s was made anew", path)
		}
	}
}

func TestNewHostMakesANewServingCertificateOnly(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, start)
	was := snapshot(t, dir)
	f := ensure(t, dir, start, "fed.example", "192.0.2.1")
	names := changed(was, snapshot(t, dir))
	if len(names) != 2 || !names["apiserver.crt"] || !names["apiserver.key"] {
		t.Errorf("made anew: %v, want the serving certificate and its key", names)
	}
	p, err := readPair(f.ServingCert, f.ServingKey)
	if err != nil || p.cert.VerifyHostname("fed.example") != nil || p.cert.VerifyHostname("192.0.2.1") != nil {
		t.Errorf("hosts %v %v, %v", p.cert.DNSNames, p.cert.IPAddresses, err)
	}
}

func TestWhatCannotBeMadeAgainIsMissed(t *testing.T) {
	names := []string{"ca.key", "ca.crt", "front-proxy-ca.key", "service-account.key", "encryption.yaml"}
	for _, name := range names {
		dir := t.TempDir()
		ensure(t, dir, start)
		if err := os.Remove(filepath.Join(dir, "pki", name)); err != nil {
			t.Fatal(err)
		}
		_, err := Ensure(dir, Request{Server: "https://127.0.0.1:6443"}, start)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s missing: %v", name, err)
		}
	}
}

func TestFirstStartThatWasCutOffGoesOn(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir, start)
	for _, path := range []string{f.AdminKubeconfig, f.AdminKey, f.CA, f.FrontProxyCAKey, f.Encryption} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	ensure(t, dir, start)
	if len(snapshot(t, dir)) != 19 {
		t.Errorf("%d files, want 19", len(snapshot(t, dir)))
	}
}

func TestACopiedFolderMustBeWhole(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	a := ensure(t, first, start)
	if err := os.CopyFS(filepath.Join(second, "pki"), os.DirFS(filepath.Join(first, "pki"))); err != nil {
		t.Fatal(err)
	}
	b := FilesIn(second)
	if err := os.Remove(b.Encryption); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(second, Request{Server: "https://127.0.0.1:6443"}, start); err == nil || !strings.Contains(err.Error(), "encryption.yaml") {
		t.Errorf("error %v, want one about the key that was not copied", err)
	}
	if err := os.Link(a.Encryption, b.Encryption); err != nil {
		t.Fatal(err)
	}
	ensure(t, second, start)
	was, _ := a.Identity()
	if is, err := b.Identity(); err != nil || is != was {
		t.Errorf("identity %s, want %s, %v", is, was, err)
	}
}

// The administrator's certificate of an earlier version is in the group that RBAC does not restrict.
func TestACertificateOfAnotherGroupIsReplaced(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir, start)
	ca, err := readPair(f.CA, f.CAKey)
	if err != nil {
		t.Fatal(err)
	}
	old := leaf{certPath: f.AdminCert, keyPath: f.AdminKey, subject: pkix.Name{CommonName: AdminUser, Organization: []string{"system:masters"}}, usage: x509.ExtKeyUsageClientAuth}
	if err := ensureLeaf(old, ca, start); err != nil {
		t.Fatal(err)
	}
	was := snapshot(t, dir)
	ensure(t, dir, start)
	if names := changed(was, snapshot(t, dir)); !names["admin.crt"] || !names["admin.kubeconfig"] || names["controllers.crt"] {
		t.Errorf("made anew: %v, want the administrator's", names)
	}
}

func TestOthersCannotReadKeys(t *testing.T) {
	dir := t.TempDir()
	f := ensure(t, dir, time.Now())
	next, public := filepath.Join(filepath.Dir(f.CA), "service-account-next.key"), filepath.Join(filepath.Dir(f.CA), "service-account-old.pub")
	for _, path := range []string{next, public} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	etcd := filepath.Join(dir, "etcd")
	if err := os.Mkdir(etcd, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(f.CA), f.CAKey, f.Encryption, next, public, f.AdminKubeconfig, f.SuperAdminKubeconfig, f.ControllersKubeconfig, etcd} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ensure(t, dir, time.Now())
	for path, want := range map[string]os.FileMode{dir: 0o755, filepath.Dir(f.CA): 0o700, f.CAKey: 0o600, f.Encryption: 0o600, next: 0o600, public: 0o777, f.AdminKubeconfig: 0o600, f.SuperAdminKubeconfig: 0o600, f.ControllersKubeconfig: 0o600, etcd: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

// Each file that Files names is kept from other users, whatever field is added to it: certificates from being written, all else from being read, too.
func TestEachOfTheFilesIsProtected(t *testing.T) {
	dir := t.TempDir()
	f, err := Ensure(dir, Request{Server: "https://127.0.0.1:6443"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	paths := reflect.ValueOf(*f)
	for i := range paths.NumField() {
		path := paths.Field(i).String()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	f.protect(dir)
	for i := range paths.NumField() {
		path, want := paths.Field(i).String(), os.FileMode(0o600)
		if strings.HasSuffix(path, ".crt") || filepath.Base(path) == "identity" {
			want = 0o644
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s (%s): %v, %v, want %v", paths.Type().Field(i).Name, path, info.Mode(), err, want)
		}
	}
}
