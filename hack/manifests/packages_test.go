package manifests

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packaged makes packages of a version, of programs that only have their name, and returns them by name.
func packaged(t *testing.T, version string) map[string]string {
	t.Helper()
	programs, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"federation", "federation-dns", "federation-lb", "kubectl-federation", "LICENSE"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := exec.Command("../deb.sh", out, version, "amd64", programs).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "_")
		made[name] = file
	}
	return made
}

// TestDebianPackages installs them into a folder, upgrades them, removes them: two builds are equal; each has its program and units, which call it where it is; the
// flags are the site's, and survive an upgrade and a removal; nothing is enabled; there is a user; and a purge leaves the data.
func TestDebianPackages(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil || os.Getuid() != 0 {
		t.Skip("that takes dpkg, and root")
	}
	first, again, next := packaged(t, "v1.2.3"), packaged(t, "v1.2.3"), packaged(t, "v1.2.4")
	if names := slices.Sorted(maps.Keys(first)); !slices.Equal(names, []string{"federation", "federation-dns", "federation-lb", "kubectl-federation"}) {
		t.Fatal(names)
	}
	for name, file := range first {
		if !bytes.Equal(contentOf(t, file), contentOf(t, again[name])) {
			t.Errorf("two builds of %s differ", name)
		}
	}
	root := newRoot(t)
	dpkg := func(args ...string) {
		t.Helper()
		cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-architecture", "--log=/dev/null"}, args...)...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("dpkg %q: %v: %s", args, err, said)
		}
	}
	dpkg(append([]string{"--install"}, slices.Collect(maps.Values(first))...)...)
	units, err := filepath.Glob("*.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range units {
		command := ""
		for line := range strings.Lines(string(contentOf(t, filepath.Join(root, "usr/lib/systemd/system", unit)))) {
			if after, ok := strings.CutPrefix(line, "ExecStart="); ok {
				command = strings.Fields(after)[0]
			}
		}
		if got := string(contentOf(t, filepath.Join(root, command))); got != filepath.Base(command)+"\n" {
			t.Errorf("%s runs %q, in which is %q", unit, command, got)
		}
	}
	if enabled, _ := filepath.Glob(filepath.Join(root, "etc/systemd/system/*")); len(enabled) > 0 {
		t.Errorf("the installation enabled %q", enabled)
	}
	if users := string(contentOf(t, filepath.Join(root, "etc/passwd"))); !strings.Contains(users, "\nfederation:x:") || !strings.Contains(users, ":/var/lib/federation:/usr/sbin/nologin") {
		t.Errorf("users: %s", users)
	}
	flags, data := filepath.Join(root, "etc/default/federation"), filepath.Join(root, "var/lib/federation/pki/ca.key")
	write(t, flags, "FEDERATION_FLAGS=\"--name prod\"\n")
	write(t, data, "key")
	dpkg(append([]string{"--install"}, slices.Collect(maps.Values(next))...)...)
	dpkg("--remove", "federation")
	if got := string(contentOf(t, flags)); got != "FEDERATION_FLAGS=\"--name prod\"\n" {
		t.Errorf("after an upgrade and a removal the flags are %q", got)
	}
	dpkg("--purge", "federation", "federation-dns", "federation-lb", "kubectl-federation")
	if _, err := os.Stat(flags); err == nil {
		t.Error("a purge leaves the flags")
	}
	if contentOf(t, data); t.Failed() {
		t.Error("a purge must leave the data, in which the keys are")
	}
}

// newRoot returns a folder into which dpkg can install.
func newRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available", "var/lib/dpkg/info/format", "var/lib/dpkg/updates/.keep", "var/lib/dpkg/triggers/.keep", "etc/group", "etc/shadow", "etc/gshadow"} {
		write(t, filepath.Join(root, file), "")
	}
	write(t, filepath.Join(root, "var/lib/dpkg/info/format"), "1\n")
	write(t, filepath.Join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")
	return root
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	return content
}
