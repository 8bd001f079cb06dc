package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

// state is what is chosen at the first up and kept from then on.
type state struct {
	FederationName string `json:"federationName"`
	DNSZone        string `json:"dnsZone"`
	FederationPort int    `json:"federationPort"`
	DNSPort        int    `json:"dnsPort"`
	// MemberPorts are those of the members' APIs, in the order of memberAt.
	MemberPorts []int `json:"memberPorts"`
	// Real: nodes and pods are real, not simulated.
	Real bool `json:"real,omitempty"`
	// Pull: members connect to the federation, which cannot connect to them.
	Pull bool `json:"pull,omitempty"`
}

func (s *stack) loadState() (*state, error) {
	st := &state{}
	b, err := os.ReadFile(s.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, st); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; make down removes it", s.path("state.json"), err)
	}
	if n := len(st.MemberPorts); n > maxMembers {
		return nil, fmt.Errorf("%s: memberPorts has %d entries, at most %d are allowed", s.path("state.json"), n, maxMembers)
	}
	return st, nil
}

// choose fills in what is not chosen yet: names, and ports that are free now.
func (st *state) choose(o upOptions) error {
	if st.FederationName == "" {
		st.FederationName, st.DNSZone, st.Real, st.Pull = o.federationName, o.dnsZone, o.real, o.pull
	}
	if o.pull && !st.Pull {
		return errors.New("--pull: the federation connects to the members that are up: make down takes them away")
	}
	if o.real && !st.Real {
		return errors.New("--real: what is up has simulated nodes: make down takes it away")
	}
	missing := max(0, o.clusters-len(st.MemberPorts))
	if st.FederationPort == 0 {
		missing += 2
	}
	ports, err := freePorts(missing)
	if err != nil {
		return err
	}
	if st.FederationPort == 0 {
		st.FederationPort, st.DNSPort, ports = ports[0], ports[1], ports[2:]
	}
	st.MemberPorts = append(st.MemberPorts, ports...)
	return nil
}

func (s *stack) saveState(st *state) error {
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(s.path("state.json"), string(b)+"\n")
}

// writeFile replaces a file in one step: whoever reads it sees all of the old or all of the new.
func writeFile(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// freePorts finds n different ports that nobody listens on. They lie below the range from which the
// kernel takes ports for outgoing connections, so they are still free at a restart; the search begins
// at random, so that two stacks that come up at once do not choose the same.
func freePorts(n int) ([]int, error) {
	const low, high = 20000, 32000
	var ports []int
	start := rand.IntN(high - low)
	for i := 0; len(ports) < n; i++ {
		if i == high-low {
			return nil, fmt.Errorf("found only %d of %d free ports on 127.0.0.1 from %d to %d", len(ports), n, low, high)
		}
		if port := low + (start+i)%(high-low); free(port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// free reports whether both TCP and UDP (for DNS) can listen on the port.
func free(port int) bool {
	at := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", at)
	if err != nil {
		return false
	}
	defer func() { _ = l.Close() }()
	p, err := net.ListenPacket("udp", at)
	if err != nil {
		return false
	}
	return p.Close() == nil
}

// soonFree waits for a port: a process that was just killed takes a moment to let go of its own.
func soonFree(port int, patience time.Duration) bool {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if free(port) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
