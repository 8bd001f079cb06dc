package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

type upOptions struct {
	clusters, nodes         int
	membersOnly, real, pull bool
	serviceProxy            string
	federationName, dnsZone string
	federationFlags         []string
	timeout                 time.Duration
}

// up starts what does not run and returns when all is ready.
func (s *stack) up(ctx context.Context, o upOptions) error {
	if o.clusters < 1 || o.clusters > maxMembers {
		return fmt.Errorf("--clusters=%d: must be from 1 to %d", o.clusters, maxMembers)
	}
	if o.nodes < 1 || o.nodes > 250 {
		return fmt.Errorf("--nodes=%d: must be from 1 to 250", o.nodes)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not ready after %s", o.timeout))
	defer cancel()
	st, err := s.prepare(o)
	if err != nil {
		return err
	}
	if err := s.roomForNodes(st, o); err != nil {
		return err
	}
	errs := s.startAll(ctx, st, o)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\nwhat runs is left running: make up tries again, make down ends it", err)
	}
	if err := s.writeEnv(st, o); err != nil {
		return err
	}
	s.say("ready")
	s.explain(st, o)
	return nil
}

// prepare makes the directories and settles names and ports.
func (s *stack) prepare(o upOptions) (*state, error) {
	for _, program := range s.programs(o) {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("%s is not built: run make build", program)
		}
	}
	if err := os.MkdirAll(s.path("logs"), 0o700); err != nil {
		return nil, err
	}
	if err := s.lock(); err != nil {
		return nil, err
	}
	st, err := s.loadState()
	if err != nil {
		return nil, err
	}
	if err := st.choose(o); err != nil {
		return nil, err
	}
	if n := len(st.MemberPorts); n > o.clusters {
		s.say("%d member clusters are there already: they stay", n)
	}
	for i := range st.MemberPorts {
		if err := os.MkdirAll(s.path("members", memberAt(i).name), 0o700); err != nil {
			return nil, err
		}
	}
	return st, s.saveState(st)
}

func (s *stack) programs(o upOptions) []string {
	all := []string{filepath.Join(s.bin, "member")}
	if o.real {
		for _, name := range []string{"internet", "membernode", "kubelet", "federation-nodeagent", "federation-lb", "images/pod.tar"} {
			all = append(all, filepath.Join(s.bin, name))
		}
	}
	if !o.membersOnly {
		all = append(all, filepath.Join(s.bin, "federation"), filepath.Join(s.bin, "kubectl-federation"))
	}
	if o.pull {
		all = append(all, filepath.Join(s.bin, "federation-agent"))
	}
	return all
}

// startAll starts the members and the federation at once, real nodes after the federation, and joins each member as soon as both are ready.
func (s *stack) startAll(ctx context.Context, st *state, o upOptions) []error {
	if st.Real {
		if err := s.startInternet(ctx, st); err != nil {
			return []error{err}
		}
	}
	if st.Pull {
		if err := s.cutFederationOff(st); err != nil {
			return []error{fmt.Errorf("members in pull mode are behind a packet filter: %w", err)}
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, len(st.MemberPorts)+1)
	var federation *running
	federationReady := make(chan struct{}) // closed either way
	if o.membersOnly {
		close(federationReady)
	} else {
		wg.Go(func() {
			defer close(federationReady)
			federation, errs[len(errs)-1] = s.startFederation(ctx, st, o)
		})
	}
	for i := range st.MemberPorts {
		wg.Go(func() {
			if st.Real {
				<-federationReady // its nodes are to know whose mark they believe
			}
			errs[i] = s.startMember(ctx, st, i, o)
			<-federationReady
			if errs[i] == nil && federation != nil {
				errs[i] = s.join(ctx, st, memberAt(i).name)
			}
		})
	}
	wg.Wait()
	if federation == nil || errors.Join(errs...) != nil {
		return errs
	}
	return []error{s.waitFederated(ctx, st, federation)}
}

func (s *stack) startMember(ctx context.Context, st *state, i int, o upOptions) error {
	r, did, err := s.memberProgram(st, i, o).ensure()
	if err != nil {
		return err
	}
	nodes := o.nodes
	if r.exited == nil {
		nodes = 1 // it runs with as many as it was started with
	}
	m := memberAt(i)
	s.say("%-10s %s (process %d)", m.name, did, r.pid)
	if err := r.wait(ctx, memberReady(s.memberKubeconfig(m.name), nodes)); err != nil {
		return err
	}
	s.say("%-10s ready: region %s, zone %s, https://127.0.0.1:%d", m.name, m.region, m.zone, st.MemberPorts[i])
	return nil
}

func (s *stack) startFederation(ctx context.Context, st *state, o upOptions) (*running, error) {
	r, did, err := s.federationProgram(st, o).ensure()
	if err != nil {
		return nil, err
	}
	s.say("%-10s %s (process %d)", r.name, did, r.pid)
	if err := r.wait(ctx, apiReady(s.federationKubeconfig())); err != nil {
		return nil, err
	}
	s.say("%-10s API ready: https://127.0.0.1:%d", r.name, st.FederationPort)
	return r, nil
}

// joinAttempts is how often a member is tried.
const joinAttempts = 3

// join joins a member; joining one that is joined changes nothing. A machine that is busy with all that starts can let a request time out,
// so what fails is tried again.
func (s *stack) join(ctx context.Context, st *state, name string) error {
	args := []string{"join", name, "--member-kubeconfig", s.memberKubeconfig(name), "--kubeconfig", s.federationKubeconfig(), "--pod-logs"}
	if st.Pull {
		args = append(args, "--pull")
	}
	for attempt := 1; ; attempt++ {
		out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-federation"), args...).CombinedOutput()
		if err == nil {
			s.say("%-10s joined", name)
			if st.Pull {
				return (agent{s, name}).start(ctx)
			}
			return nil
		}
		err = fmt.Errorf("%s: join: %w\n  | %s", name, err, strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n  | "))
		if attempt == joinAttempts || ctx.Err() != nil {
			return err
		}
		s.say("%v; once more", err)
	}
}

func (s *stack) waitFederated(ctx context.Context, st *state, federation *running) error {
	if err := federation.wait(ctx, clustersReady(s.federationKubeconfig(), st.memberNames())); err != nil {
		return err
	}
	s.say("all %d clusters are ready in the federation", len(st.MemberPorts))
	if err := federation.wait(ctx, dnsReady(st.dnsAddress(), st.DNSZone)); err != nil {
		return err
	}
	s.say("DNS answers for %s", st.DNSZone)
	return nil
}

func (s *stack) memberProgram(st *state, i int, o upOptions) *program {
	m, port := memberAt(i), st.MemberPorts[i]
	dir := s.path("members", m.name)
	p := &program{
		name: m.name,
		args: []string{filepath.Join(s.bin, "member"), "--name=" + m.name, "--data-dir=" + dir,
			"--port=" + strconv.Itoa(port), "--region=" + m.region, "--zone=" + m.zone, "--nodes=" + strconv.Itoa(o.nodes),
			"--lb-cidr=" + strings.Join(m.lbCIDRs, ","), "--service-cidr=" + m.serviceCIDR, "--pod-cidr=" + m.podCIDR},
		pidFile: filepath.Join(dir, "pid"),
		logFile: s.path("logs", m.name+".log"),
		ports:   []int{port},
	}
	if st.Real {
		p.args = append(p.args, s.realFlags(i, o)...)
	}
	return p
}

func (s *stack) federationProgram(st *state, o upOptions) *program {
	p := &program{
		name: "federation",
		args: append([]string{filepath.Join(s.bin, "federation"), "serve", "--data-dir=" + s.path("federation"),
			"--name=" + st.FederationName, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(st.FederationPort),
			"--dns-zone=" + st.DNSZone, "--dns-bind-address=" + st.dnsAddress(), "--dns-rate-limit=1000", // all clients are one network here
			"--failback-hold-down=0", "--failback-stable-period=3s"}, o.federationFlags...), // minutes, the defaults, would be long to look at
		pidFile: s.path("federation.pid"),
		logFile: s.path("logs", "federation.log"),
		ports:   []int{st.FederationPort, st.DNSPort},
	}
	if st.Pull {
		p.group = cutOffGroup
	}
	return p
}

func (s *stack) memberKubeconfig(name string) string { return s.path("members", name, "kubeconfig") }

func (s *stack) federationKubeconfig() string { return s.path("federation", "admin.kubeconfig") }

func (st *state) apiAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(st.FederationPort))
}

func (st *state) dnsAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(st.DNSPort))
}

func (st *state) memberNames() (names []string) {
	for i := range st.MemberPorts {
		names = append(names, memberAt(i).name)
	}
	return names
}
