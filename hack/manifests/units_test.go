package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each unit of systemd is a good one, runs nothing as root, and is in a sandbox that systemd itself finds tight.
func TestUnits(t *testing.T) {
	units, err := filepath.Glob("*.service")
	if err != nil || len(units) != 5 {
		t.Fatalf("%q, %v", units, err)
	}
	for _, unit := range units {
		t.Run(unit, func(t *testing.T) {
			content, err := os.ReadFile(unit)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(content), "\n")
			if !slices.Contains(lines, "User=federation") && !slices.Contains(lines, "DynamicUser=yes") {
				t.Error("it runs as root")
			}
			for _, needed := range []string{"Restart=always", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateDevices=yes", "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service"} {
				if !slices.Contains(lines, needed) {
					t.Errorf("it has no %s", needed)
				}
			}
			checkFlags(t, string(content))
			analyze(t, unit, string(content))
		})
	}
}

// checkFlags finds each flag of a unit's command in the reference of the program.
func checkFlags(t *testing.T, unit string) {
	command := strings.Fields(regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)[1])
	reference, err := os.ReadFile("../../docs/reference/" + filepath.Base(command[0]) + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range command[1:] {
		if strings.HasPrefix(word, "--") && !strings.Contains(string(reference), word+" ") {
			t.Errorf("%s has no flag %s", command[0], word)
		}
	}
}

// analyze has systemd look at a unit whose programs are there. An exposure of 2.5 of 10 is what it calls OK.
func analyze(t *testing.T, unit, content string) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed (Debian package systemd)")
	}
	dir := t.TempDir()
	for _, program := range []string{"federation", "federation-dns", "federation-lb"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, unit)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "/usr/local/bin/", dir+"/")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", path}, {"security", "--offline=true", "--threshold=25", "--no-pager", path}} {
		if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || args[0] == "verify" && strings.Contains(string(out), unit) {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
