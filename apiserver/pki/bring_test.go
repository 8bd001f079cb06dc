package pki

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneFederationInTwoPlaces: what Create has made is brought to two data directories, which are then of one federation.
func TestOneFederationInTwoPlaces(t *testing.T) {
	home, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	made, err := Create(home, start)
	if err != nil {
		t.Fatal(err)
	}
	if files := snapshot(t, home); len(files) != 6 {
		t.Errorf("Create made %v, want authorities and keys only", changed(nil, files))
	}
	if _, err := Create(home, start); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("Create again: %v, want that it exists already", err)
	}
	from := filepath.Dir(made.CA)
	for _, dir := range []string{a, b} {
		if err := Import(from, dir); err != nil {
			t.Fatal(err)
		}
		ensure(t, dir, start)
		was := snapshot(t, dir)
		if err := Import(from, dir); err != nil {
			t.Fatal(err)
		}
		if again := changed(was, snapshot(t, dir)); len(again) > 0 {
			t.Errorf("Import again changes %v", again)
		}
	}
	one, _ := FilesIn(a).Identity()
	if other, _ := FilesIn(b).Identity(); one == "" || one != other {
		t.Errorf("identities %q and %q differ", one, other)
	}
}

// TestImportFollowsARotation: each step of one is brought, with what it takes away.
func TestImportFollowsARotation(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	made, err := Create(home, start)
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Dir(made.CA)
	for _, step := range append([]string{""}, Steps...) {
		if step != "" {
			if err := Rotate(home, step, start); err != nil {
				t.Fatal(step, err)
			}
		}
		if err := Import(from, dir); err != nil {
			t.Fatal(step, err)
		}
		is, want := snapshot(t, filepath.Join(dir, "pki")), snapshot(t, from)
		if len(is) != len(want) {
			t.Errorf("after %q there are %v, want %v", step, changed(nil, is), changed(nil, want))
		}
		for path, content := range want {
			if string(is[filepath.Join(dir, "pki", filepath.Base(path))]) != string(content) {
				t.Errorf("after %q %s differs", step, filepath.Base(path))
			}
		}
	}
}

// TestImportRefuses what is not whole, and what is another federation's, and leaves what there is.
func TestImportRefuses(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	made, err := Create(home, start)
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, start)
	was := snapshot(t, dir)
	if err := Import(filepath.Dir(made.CA), dir); err == nil || !strings.Contains(err.Error(), "another federation") {
		t.Errorf("Import over another federation: %v", err)
	}
	for _, path := range made.needed() {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		empty := t.TempDir()
		if err := Import(filepath.Dir(made.CA), empty); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Import without %s: %v", path, err)
		}
		if left := snapshot(t, empty); len(left) > 0 {
			t.Errorf("Import without %s leaves %v", path, changed(nil, left))
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := changed(was, snapshot(t, dir)); len(diff) > 0 {
		t.Errorf("what was refused has changed %v", diff)
	}
}
