package main

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMemberNames(t *testing.T) {
	var got []string
	for i := range 10 {
		m := memberAt(i)
		got = append(got, m.name+"="+m.region+"/"+m.zone)
	}
	want := "east-a=east/a east-b=east/b west-a=west/a west-b=west/b north-a=north/a north-b=north/b " +
		"south-a=south/a south-b=south/b east-c=east/c east-d=east/d"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if got := strings.Join(memberAt(2).lbCIDRs, " "); got != "203.0.113.0/24 198.18.32.0/20" {
		t.Errorf("networks of the third member: %s", got)
	}
}

// No two members share a name or an address.
func TestMembersAreApart(t *testing.T) {
	benchmarks := netip.MustParsePrefix("198.18.0.0/15")
	names, networks := map[string]bool{}, []netip.Prefix{}
	for i := range maxMembers {
		m := memberAt(i)
		if names[m.name] {
			t.Errorf("%s comes twice", m.name)
		}
		names[m.name] = true
		for _, cidr := range append([]string{m.serviceCIDR, m.podCIDR}, m.lbCIDRs...) {
			p := netip.MustParsePrefix(cidr)
			if p != p.Masked() {
				t.Errorf("%s: %s is not a network", m.name, cidr)
			}
			if slices.ContainsFunc(networks, p.Overlaps) {
				t.Errorf("%s: %s overlaps with another network", m.name, cidr)
			}
			networks = append(networks, p)
		}
		if own := netip.MustParsePrefix(m.lbCIDRs[len(m.lbCIDRs)-1]); !benchmarks.Contains(own.Addr()) {
			t.Errorf("%s: %s is not in %s", m.name, own, benchmarks)
		}
	}
}

func TestWhoseProcess(t *testing.T) {
	const root = "/src/_output/local"
	east := &program{args: []string{"/src/_output/bin/member", "--name=east-a", "--data-dir=" + root + "/members/east-a"}}
	tests := []struct {
		name       string
		argv       string
		ours, same bool
	}{
		{"the member", "/src/_output/bin/member --name=east-a --data-dir=/src/_output/local/members/east-a --port=1", true, true},
		{"the member, flags in two words", "member --data-dir /src/_output/local/members/east-a", true, true},
		{"another member", "/src/_output/bin/member --data-dir=/src/_output/local/members/east-b", true, false},
		{"the federation", "federation serve --data-dir=/src/_output/local/federation", true, false},
		{"a part of the federation", "federation-dns --kubeconfig /src/_output/local/federation/admin.kubeconfig", true, false},
		{"the member's agent", "federation-agent --cluster=east-a --cert-dir=/src/_output/local/members/east-a/agent/certificate", true, false},
		{"another checkout's member", "/else/_output/bin/member --data-dir=/else/_output/local/members/east-a", false, false},
		{"a root with the same beginning", "member --data-dir=/src/_output/local2/members/east-a", false, false},
		{"kubectl on our kubeconfig", "kubectl --kubeconfig=/src/_output/local/members/east-a/kubeconfig get pods", false, false},
		{"a log reader", "tail -f /src/_output/local/logs/east-a.log", false, false},
		{"a recycled pid", "sleep 100", false, false},
		{"a process that is gone", "", false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			argv := strings.Fields(test.argv)
			if got := ours(argv, root); got != test.ours {
				t.Errorf("ours = %v", got)
			}
			if got := east.same(argv); got != test.same {
				t.Errorf("same = %v", got)
			}
		})
	}
}

// TestWhoseAgent: an agent is known again by where it has its certificate, whatever account it was started with.
func TestWhoseAgent(t *testing.T) {
	s := &stack{root: "/src/_output/local", bin: "/src/_output/bin"}
	for name, want := range map[string]bool{"east-a": true, "east-b": false} {
		if got := (agent{s, "east-a"}).program("").same(agent{s, name}.program("federation-1234").args); got != want {
			t.Errorf("the agent of %s is taken for that of east-a: %t", name, got)
		}
	}
}

// waits is a script that forks nothing: between fork and exec a child has its parent's command line.
const waits = "read forever"

// asMember starts a process whose command line is a member's and which ignores SIGTERM if told to.
func asMember(t *testing.T, root, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script, "x")
	cmd.Args = []string{"member", "-c", script, "--data-dir=" + root + "/members/east-a"}
	cmd.Path = "/bin/sh"
	if _, err := cmd.StdinPipe(); err != nil { // open until the process ends
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }() // reap it: a zombie has no command line
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	for end := time.Now().Add(5 * time.Second); commandLine(cmd.Process.Pid) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // the kernel shows it a moment after exec
			t.Fatal("the process has no command line")
		}
	}
	return cmd
}

func TestDownEndsExactlyItsOwn(t *testing.T) {
	s, err := newStack(filepath.Join(t.TempDir(), "local"), "bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.path("members"), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := func(argv []string) bool { return ours(argv, s.root) }
	asMember(t, s.root, waits)
	frozen := asMember(t, s.root, waits)
	stranger := asMember(t, s.root+"-other", waits)
	if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if got := findProcesses(mine); len(got) != 2 {
		t.Fatalf("found %v, want the two that are ours", got)
	}
	if err := s.down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := findProcesses(mine); len(got) != 0 {
		t.Errorf("%v still run", got)
	}
	if commandLine(stranger.Process.Pid) == nil {
		t.Error("down ended a process of another stack")
	}
	if _, err := os.Stat(s.root); !os.IsNotExist(err) {
		t.Errorf("%s is left over: %v", s.root, err)
	}
	if err := s.down(t.Context()); err != nil {
		t.Errorf("down on nothing: %v", err)
	}
}

func TestEndKillsWhatIgnoresTERM(t *testing.T) {
	root := t.TempDir()
	p := asMember(t, root, "trap '' TERM; "+waits)
	time.Sleep(100 * time.Millisecond) // until the trap is set
	mine := func(argv []string) bool { return ours(argv, root) }
	if err := end(p.Process.Pid, mine, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if commandLine(p.Process.Pid) != nil {
		t.Error("it still runs")
	}
}

func TestEndLeavesARecycledPidAlone(t *testing.T) {
	p := asMember(t, t.TempDir(), waits)
	nobody := func([]string) bool { return false }
	if err := end(p.Process.Pid, nobody, time.Second); err != nil {
		t.Fatal(err)
	}
	if commandLine(p.Process.Pid) == nil {
		t.Error("a process that is not ours was ended")
	}
}

func TestStateKeepsWhatWasChosen(t *testing.T) {
	s, err := newStack(t.TempDir(), "bin")
	if err != nil {
		t.Fatal(err)
	}
	first := &state{}
	if err := first.choose(upOptions{clusters: 2, federationName: "fed", dnsZone: "example.test"}); err != nil {
		t.Fatal(err)
	}
	if err := s.saveState(first); err != nil {
		t.Fatal(err)
	}
	again, err := s.loadState()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.choose(upOptions{clusters: 3, federationName: "other", dnsZone: "other.test"}); err != nil {
		t.Fatal(err)
	}
	if again.FederationName != "fed" || again.DNSZone != "example.test" || again.FederationPort != first.FederationPort ||
		len(again.MemberPorts) != 3 || !slices.Equal(again.MemberPorts[:2], first.MemberPorts) {
		t.Errorf("first %+v\nthen  %+v", first, again)
	}
}

func TestPortInUseIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if free(port) {
		t.Errorf("%d is in use", port)
	}
	l.Close()
	if !soonFree(port, 5*time.Second) {
		t.Errorf("%d is not in use any more", port)
	}
}

// A shell that sources env has the values, whatever they hold.
func TestEnvCanBeSourced(t *testing.T) {
	s, err := newStack(filepath.Join(t.TempDir(), "it's a path"), "bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		t.Fatal(err)
	}
	st := &state{FederationName: "fed", DNSZone: "example.test", DNSPort: 5353, MemberPorts: []int{1, 2, 3}}
	if err := s.writeEnv(st, upOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("/bin/sh", "-c",
		`. "$0" && echo "$FEDERATION_KUBECONFIG|$FEDERATION_NAME|$DNS_ADDRESS|$DNS_ZONE|$MEMBERS"`, s.path("env")).CombinedOutput()
	want := s.federationKubeconfig() + "|fed|127.0.0.1:5353|example.test|east-a east-b west-a\n"
	if err != nil || string(out) != want {
		t.Errorf("got  %swant %s%v", out, want, err)
	}
}
