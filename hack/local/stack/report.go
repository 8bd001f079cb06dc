package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"federation/hack/local/uplink"
)

// writeEnv writes what scripts need to know, as lines that a shell can source.
func (s *stack) writeEnv(st *state, o upOptions) error {
	var b strings.Builder
	if !o.membersOnly {
		fmt.Fprintf(&b, "FEDERATION_KUBECONFIG=%s\n", quote(s.federationKubeconfig()))
		fmt.Fprintf(&b, "FEDERATION_NAME=%s\n", quote(st.FederationName))
		fmt.Fprintf(&b, "DNS_ADDRESS=%s\n", quote(st.dnsAddress()))
		fmt.Fprintf(&b, "DNS_ZONE=%s\n", quote(st.DNSZone))
	}
	fmt.Fprintf(&b, "MEMBERS=%s\n", quote(strings.Join(st.memberNames(), " ")))
	if st.Pull {
		fmt.Fprintf(&b, "PULL_FILTER=%s\n", s.filterTable())
	}
	if st.Real {
		fmt.Fprintf(&b, "INTERNET=%s\n", quote(s.inInternet()))
	}
	return writeFile(s.path("env"), b.String())
}

// quote makes one word of the value for a shell, and leaves alone what is one already.
func quote(value string) string {
	if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == "" && value != "" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// explain says how to use what runs.
func (s *stack) explain(st *state, o upOptions) {
	m, rootFlag, down := memberAt(0).name, "", "make down"
	if s.root != filepath.Join(filepath.Dir(s.bin), "local") { // make knows that one only
		rootFlag = " --root " + s.root
		down = s.bin + "/local down" + rootFlag
	}
	if !o.membersOnly {
		fmt.Printf(`
The federation:    export KUBECONFIG=%s PATH=%s:$PATH
                   kubectl get clusters
Its global names:  dig @127.0.0.1 -p %d %s SOA
`, s.federationKubeconfig(), s.bin, st.DNSPort, st.DNSZone)
	}
	if st.Pull {
		fmt.Printf("Connections to members that were tried, and dropped:  nft list table inet %s\n", s.filterTable())
	}
	if st.Real {
		fmt.Printf("A client outside:  %s COMMAND, for example dig or curl; its DNS server is %s\n", s.inInternet(), uplink.InternetAddress)
	}
	loss, back := "STOP", "kill -CONT"
	if st.Real { // a stopped member would be a lost control plane only
		loss, back = "KILL", "make up REAL=1"
	}
	fmt.Printf(`A member:          kubectl --kubeconfig %s get nodes
Lose a zone:       kill -%s $(cat %s)   and back: %s
For scripts:       . %s
All that runs:     %s/local status%s        logs in %s
End it:            %s
`, s.memberKubeconfig(m), loss, s.path("members", m, "pid"), back, s.path("env"), s.bin, rootFlag, s.path("logs"), down)
}

// status prints what runs. It is an error if something of the stack does not.
func (s *stack) status() error {
	if _, err := os.Stat(s.path("state.json")); err != nil {
		fmt.Println("nothing is up")
		return nil
	}
	st, err := s.loadState()
	if err != nil {
		return err
	}
	var programs []*program
	if st.Real {
		programs = append(programs, s.internetProgram(st))
	}
	if _, err := os.Stat(s.path("federation.pid")); err == nil {
		programs = append(programs, s.federationProgram(st, upOptions{}))
	}
	for i := range st.MemberPorts {
		programs = append(programs, s.memberProgram(st, i, upOptions{}))
		if st.Pull {
			programs = append(programs, (agent{s, memberAt(i).name}).program(""))
		}
	}
	var missing []string
	for _, p := range programs {
		is := describe(p)
		at := ""
		if len(p.ports) > 0 {
			at = fmt.Sprintf("https://127.0.0.1:%d", p.ports[0])
		}
		fmt.Printf("%-15s %-23s  %s\n", p.name, at, is)
		if !strings.HasPrefix(is, "runs") {
			missing = append(missing, p.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not running: %s; make up starts them", strings.Join(missing, ", "))
	}
	return nil
}

func describe(p *program) string {
	pids := findProcesses(p.same)
	switch {
	case len(pids) == 0:
		return "does not run"
	case stopped(pids[0]):
		return fmt.Sprintf("is stopped by a signal (process %d)", pids[0])
	default:
		return fmt.Sprintf("runs (process %d)", pids[0])
	}
}
