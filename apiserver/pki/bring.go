package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// needed returns the paths of what all apiservers of a federation share, and what cannot be made again: authorities, and the keys of tokens and Secrets.
func (f *Files) needed() []string {
	return []string{f.CA, f.CAKey, f.FrontProxyCA, f.FrontProxyCAKey, f.ServiceAccountKey, f.Encryption}
}

// optional returns the paths of what they share beside that once keys are changed, and patterns of such paths.
func (f *Files) optional() []string {
	in := func(pattern string) string { return filepath.Join(filepath.Dir(f.CA), pattern) }
	return []string{f.IdentityFile, nextPath(f.CA), nextPath(f.CAKey), nextPath(f.FrontProxyCA), nextPath(f.FrontProxyCAKey), in("service-account-*.key"), in("service-account-*.pub")}
}

// Create makes the authorities and keys of a new federation below dataDir, in pki, and nothing else. It fails if there are any.
func Create(dataDir string, now time.Time) (*Files, error) {
	f := FilesIn(dataDir)
	if Exists(dataDir) {
		return nil, fmt.Errorf("%s exists already, with the keys of a federation", filepath.Dir(f.CA))
	}
	if err := os.MkdirAll(filepath.Dir(f.CA), 0o700); err != nil {
		return nil, err
	}
	_, err := f.ensureShared(true, now)
	return f, err
}

// Import copies the authorities and keys of a federation from a folder, as a mounted Secret, into the pki of dataDir, where those that differ are
// replaced: after a step of Rotate, say. It changes nothing if one of them is missing, or if dataDir has those of another federation.
func Import(from, dataDir string) error {
	f := FilesIn(dataDir)
	source := *f
	move := func(path string) string { return filepath.Join(from, filepath.Base(path)) }
	contents := map[string][]byte{}
	for _, path := range f.needed() {
		content, err := os.ReadFile(move(path))
		if err != nil {
			return lostError(err)
		}
		contents[path] = content
	}
	for _, pattern := range f.optional() {
		found, _ := filepath.Glob(move(pattern)) // the patterns are good ones
		for _, path := range found {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			contents[filepath.Join(filepath.Dir(f.CA), filepath.Base(path))] = content
		}
	}
	source.CA, source.IdentityFile = move(f.CA), move(f.IdentityFile)
	if err := sameFederation(&source, f); err != nil {
		return err
	}
	return f.replaceShared(contents)
}

// sameFederation fails if there are keys at a place already, and they are not of the federation whose keys are to come there.
func sameFederation(source, f *Files) error {
	if !exists(f.CA) {
		return nil
	}
	is, err := f.Identity()
	if err != nil {
		return err
	}
	comes, err := source.Identity()
	if err == nil && is != comes {
		err = fmt.Errorf("%s is the authority of another federation than %s: nothing was changed", source.CA, f.CA)
	}
	return err
}

// replaceShared writes the files that differ, and removes those of a rotation that has gone on.
func (f *Files) replaceShared(contents map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(f.CA), 0o700); err != nil {
		return err
	}
	var errs []error
	for path, content := range contents {
		if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, content) {
			continue
		}
		errs = append(errs, write(path, content))
	}
	for _, pattern := range f.optional() {
		found, _ := filepath.Glob(pattern)
		for _, path := range slices.DeleteFunc(found, func(path string) bool { return contents[path] != nil }) {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
