package pki

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"k8s.io/klog/v2"
)

// Files are the paths of what Ensure made.
type Files struct {
	CA, CAKey                       string
	ServingCert, ServingKey         string
	AdminCert, AdminKey             string
	SuperAdminCert, SuperAdminKey   string
	ControllersCert, ControllersKey string
	ServiceAccountKey               string
	FrontProxyCA, FrontProxyCAKey   string
	FrontProxyCert, FrontProxyKey   string
	Encryption                      string
	IdentityFile                    string // once the authority has been rotated
	AdminKubeconfig                 string
	SuperAdminKubeconfig            string
	ControllersKubeconfig           string
}

// FilesIn returns the paths below a data directory, whether there is anything or not.
func FilesIn(dataDir string) *Files {
	in := func(name string) string { return filepath.Join(dataDir, "pki", name) }
	return &Files{
		CA: in("ca.crt"), CAKey: in("ca.key"),
		ServingCert: in("apiserver.crt"), ServingKey: in("apiserver.key"),
		AdminCert: in("admin.crt"), AdminKey: in("admin.key"),
		SuperAdminCert: in("super-admin.crt"), SuperAdminKey: in("super-admin.key"),
		ControllersCert: in("controllers.crt"), ControllersKey: in("controllers.key"),
		ServiceAccountKey: in("service-account.key"),
		FrontProxyCA:      in("front-proxy-ca.crt"), FrontProxyCAKey: in("front-proxy-ca.key"),
		FrontProxyCert: in("front-proxy-client.crt"), FrontProxyKey: in("front-proxy-client.key"),
		Encryption:            in("encryption.yaml"),
		IdentityFile:          in("identity"),
		AdminKubeconfig:       filepath.Join(dataDir, "admin.kubeconfig"),
		SuperAdminKubeconfig:  filepath.Join(dataDir, "super-admin.kubeconfig"),
		ControllersKubeconfig: filepath.Join(dataDir, "controllers.kubeconfig"),
	}
}

// ServiceAccountKeys returns the keys that verify service account tokens: the signing key, and those that signed before
// or will sign after it, service-account-*.key or, public ones, service-account-*.pub.
func (f *Files) ServiceAccountKeys() []string {
	keys := []string{f.ServiceAccountKey}
	for _, end := range []string{"key", "pub"} {
		more, _ := filepath.Glob(filepath.Join(filepath.Dir(f.ServiceAccountKey), "service-account-*."+end)) // the pattern is a good one
		keys = append(keys, more...)
	}
	return keys
}

// write puts a file in place at once: readers see the old content or the new, never a part.
func write(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // it is gone when all went well
	if _, err = temp.Write(content); err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// protect removes permissions of other users that they must not have, in case the folder was copied or unpacked without
// care: to write into the data directory, and to read keys, kubeconfig files and etcd's folder. If we cannot change that, as in volumes of containers, it
// logs it.
func (f *Files) protect(dataDir string) {
	for path, mode := range f.modes(dataDir) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&^mode == 0 {
			continue // missing files are created, or reported as lost, elsewhere
		}
		if err := os.Chmod(path, info.Mode()&^(0o777&^mode)); err != nil {
			klog.ErrorS(err, "Other users of this machine may have more rights than they should", "path", path, "mode", info.Mode(), "allowed", mode)
		}
	}
}

// modes are the most that files and folders may have. What Files names is secret, unless its name says that it is a certificate.
func (f *Files) modes(dataDir string) map[string]os.FileMode {
	allowed := map[string]os.FileMode{dataDir: 0o755, filepath.Dir(f.CA): 0o700, filepath.Join(dataDir, "etcd"): 0o700}
	for fields, i := reflect.ValueOf(*f), 0; i < fields.NumField(); i++ {
		path := fields.Field(i).String()
		mode := os.FileMode(0o600)
		if filepath.Ext(path) == ".crt" || path == f.IdentityFile {
			mode = 0o644
		}
		allowed[path], allowed[nextPath(path)] = mode, mode // while an authority is rotated
	}
	for _, key := range f.ServiceAccountKeys() {
		if filepath.Ext(key) == ".key" { // the others are public
			allowed[key] = 0o600
		}
	}
	return allowed
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
