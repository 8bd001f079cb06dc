package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"federation/hack/local/cgroup"
	"federation/hack/local/uplink"
)

// mounts makes the files of this node what they are for its programs; nobody outside sees it.
func (o *options) mounts() error {
	if err := syscall.Sethostname([]byte(o.name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	fds := map[string]string{"/run/node": o.dataDir, "/run/bin": o.bin, "/run/images": o.images}
	opened := map[string]*os.File{}
	for at, dir := range fds { // before their paths are covered
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		opened[at] = f
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"tmpfs", "/run"}, {"tmpfs", "/var/lib"}, {"tmpfs", "/var/log"}} {
		if err := syscall.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("%s: %w", m.at, err)
		}
	}
	for at, f := range opened {
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "") // among this node's own: kubelet's mounts reach pods
}

func (o *options) network() error { return uplink.Set(o.address, o.gateway) }

// cgroups makes the cgroup of the pods anew: to kubelet what an earlier life left would be containers, of each of which it
// waits some seconds to hear. In version 1 it must be there in every hierarchy before kubelet is, and the
// processors and memory that it may use be written.
func (o *options) cgroups() error {
	roots := []string{"/sys/fs/cgroup"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		if roots, err = filepath.Glob("/sys/fs/cgroup/*"); err != nil {
			return err
		}
	}
	for _, root := range roots {
		dir := filepath.Join(root, o.cgroup)
		if err := cgroup.Remove(dir); err != nil {
			return fmt.Errorf("--cgroup %q: %w", o.cgroup, err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("--cgroup %q: %w", o.cgroup, err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				continue // another hierarchy
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.TrimSpace(string(all))), 0); err != nil {
				return fmt.Errorf("--cgroup %q: %w", o.cgroup, err)
			}
		}
	}
	return nil
}
