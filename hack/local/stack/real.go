package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"federation/hack/local/cgroup"
)

// internetProgram is the network that real nodes are plugged into.
func (s *stack) internetProgram(st *state) *program {
	return &program{
		name:    "internet",
		args:    []string{filepath.Join(s.bin, "internet"), "--data-dir=" + s.path("internet"), "--dns=" + st.dnsAddress(), "--api=" + st.apiAddress()},
		pidFile: s.path("internet.pid"),
		logFile: s.path("logs", "internet.log"),
	}
}

// inotifyPerMember and inotifyPerNode are how many inotify instances a member and the programs of a node have open, and a
// few more.
const (
	inotifyPerMember = 12
	inotifyPerNode   = 8
)

// roomForNodes opens as many inotify instances as the members that are to be started will want, and fails if the kernel
// does not give this user so many more: a kubelet that gets none ends, and only its log says why.
func (s *stack) roomForNodes(st *state, o upOptions) error {
	want := 0
	for i := range st.MemberPorts {
		if st.Real && len(findProcesses(s.memberProgram(st, i, o).same)) == 0 {
			want += inotifyPerMember + o.nodes*inotifyPerNode
		}
	}
	for n := range want {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("clusters with real nodes want %d inotify instances, and the kernel gives this user %d more: %w; raise the limit, for example with\n"+
				"  sysctl -w fs.inotify.max_user_instances=1024", want, n, err)
		}
		defer func() { _ = unix.Close(fd) }() // all at the end: they count together
	}
	return nil
}

// startInternet returns when nodes can be plugged in.
func (s *stack) startInternet(ctx context.Context, st *state) error {
	if err := os.MkdirAll(s.path("internet"), 0o700); err != nil {
		return err
	}
	p := s.internetProgram(st)
	if len(findProcesses(p.same)) == 0 {
		for i := range st.MemberPorts {
			if len(findProcesses(s.memberProgram(st, i, upOptions{}).same)) > 0 {
				return fmt.Errorf("the internet ended, and %s is still plugged into the old one: make down, then make up", memberAt(i).name)
			}
		}
	}
	r, did, err := p.ensure()
	if err != nil {
		return err
	}
	s.say("%-10s %s (process %d)", r.name, did, r.pid)
	return r.wait(ctx, func(context.Context) error {
		pid, err := os.ReadFile(s.path("internet", "pid"))
		if err == nil && strings.TrimSpace(string(pid)) != strconv.Itoa(r.pid) {
			err = errors.New("not up yet")
		}
		return err
	})
}

// inInternet is the beginning of a command that is to run as a client outside of all clusters.
func (s *stack) inInternet() string {
	pid, _ := os.ReadFile(s.path("internet", "pid"))
	return "nsenter --net=/proc/" + strings.TrimSpace(string(pid)) + "/ns/net"
}

// realFlags are what a member needs for real nodes.
func (s *stack) realFlags(i int, o upOptions) []string {
	uid := ""
	if _, c, err := client(s.federationKubeconfig()); err == nil {
		uid, _ = federationUID(context.Background(), c) // without a federation there are only members
	}
	return []string{"--federation-uid=" + uid, "--internet=" + s.path("internet", "pid"), "--number=" + strconv.Itoa(i), "--bin=" + s.bin,
		"--images=" + filepath.Join(s.bin, "images"), "--cgroup=" + s.cgroup(), "--service-proxy=" + o.serviceProxy}
}

// cgroup begins the names of the cgroups of this stack's nodes, and of no other's.
func (s *stack) cgroup() string {
	return "/federation-" + s.id()
}

// removeCgroups removes the cgroups, of such a name, that real nodes, which have ended, leave behind. Their last processes may be ending yet.
func removeCgroups(name string) error {
	var left error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		roots, _ := filepath.Glob("/sys/fs/cgroup" + name + "-*")
		more, _ := filepath.Glob("/sys/fs/cgroup/*" + name + "-*")
		left = nil
		for _, root := range append(roots, more...) {
			left = errors.Join(left, cgroup.Remove(root))
		}
		if left == nil {
			return nil
		}
	}
	return left
}
