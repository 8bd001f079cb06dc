package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// confine makes this thread like a container with these capabilities, a read-only root file system of its own, and the
// node's network: it can only read /proc/sys, and has the node's at /node/sys/net. Then it executes the agent.
func confine(root string, capabilities []string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	const lockDir = "/run/federation-nodeagent"
	if err := os.MkdirAll(lockDir, 0o700); err != nil {
		return err
	}
	at := func(path string) string { return filepath.Join(root, path) }
	type mount struct {
		from, to string
		flags    uintptr
	}
	mounts := []mount{
		{"", "/", unix.MS_REC | unix.MS_PRIVATE},
		{root, root, unix.MS_BIND | unix.MS_REC},
		{"/proc", at("proc"), unix.MS_BIND},
		{"/proc/sys", at("proc/sys"), unix.MS_BIND},
		{"", at("proc/sys"), unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY},
		{"/proc/sys/net", at("node/sys/net"), unix.MS_BIND},
		{lockDir, at(lockDir), unix.MS_BIND},
		{"", root, unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY},
	}
	if _, err := os.Stat(at("usr")); err == nil { // an image that has iptables; its lock is the node's
		mounts = append(mounts, mount{"/usr", at("usr"), unix.MS_BIND}, mount{"/etc", at("etc"), unix.MS_BIND},
			mount{at("run/xtables.lock"), at("run/xtables.lock"), unix.MS_BIND}, mount{"", at("run/xtables.lock"), unix.MS_REMOUNT | unix.MS_BIND})
	}
	for _, m := range mounts {
		if err := unix.Mount(m.from, m.to, "", m.flags, ""); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.from, m.to, err)
		}
	}
	if err := unix.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := dropCapabilities(capabilities); err != nil {
		return err
	}
	if err := os.Setenv(asAgent, "yes"); err != nil {
		return err
	}
	return unix.Exec("/federation-nodeagent", os.Args, os.Environ())
}

// dropCapabilities drops all other capabilities of this thread, and of what it executes, for good.
func dropCapabilities(keep []string) error {
	numbers := map[string]int{"NET_ADMIN": unix.CAP_NET_ADMIN, "NET_RAW": unix.CAP_NET_RAW}
	var mask uint32
	for c := range unix.CAP_LAST_CAP + 1 {
		if slices.ContainsFunc(keep, func(name string) bool { n, ok := numbers[name]; return ok && n == c }) {
			mask |= 1 << c
		} else if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: mask, Permitted: mask}} // the kept ones have numbers below 32
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// confined becomes the agent in the root and with the capabilities that the environment names.
func confined() {
	err := confine(os.Getenv("CONFINED_IN"), strings.Fields(os.Getenv("CAPABILITIES")))
	fmt.Fprintln(os.Stderr, "confining:", err)
	os.Exit(2)
}
