package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// server is one of the programs that are compared.
type server struct {
	name string
	// program is found in the PATH or in /usr/sbin.
	program string
	// config is written to the file "conf"; {dir}, {port}, {zone} and {threads} stand for a directory of its
	// own, where it listens, the zone's file, and how many threads it may have for each network.
	config string
	args   []string
	// updates tells that it takes dynamic updates (RFC 2136).
	updates bool
}

var servers = []server{
	{name: "federation-dns", program: "federation-dns", args: []string{"--zone", zoneName, "--zone-file", "{zone}", "--listen", "127.0.0.1:{port}",
		"--threads", "{threads}", "--rate-limit", "200000000"}},
	{name: "Knot", program: "knotd", args: []string{"-c", "{dir}/conf"}, updates: true, config: `
server:
  rundir: "{dir}"
  listen: 127.0.0.1@{port}
  udp-workers: {threads}
  tcp-workers: {threads}
  background-workers: {threads}
database:
  storage: "{dir}"
acl:
  - id: local
    address: 127.0.0.0/8
    action: update
template:
  - id: default
    storage: "{dir}"
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: ` + zoneName + `
    file: "{zone}"
    acl: local
`},
	{name: "NSD", program: "nsd", args: []string{"-d", "-c", "{dir}/conf"}, config: `
server:
  ip-address: 127.0.0.1
  port: {port}
  server-count: {threads}
  reuseport: yes
  username: ""
  zonesdir: "{dir}"
  database: ""
  pidfile: "{dir}/pid"
  xfrdfile: "{dir}/xfrd"
  xfrdir: "{dir}"
  zonelistfile: "{dir}/zonelist"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: ` + zoneName + `
  zonefile: "{zone}"
`},
	{name: "BIND", program: "named", args: []string{"-f", "-n", "{threads}", "-c", "{dir}/conf"}, updates: true, config: `
options {
  directory "{dir}"; pid-file none; session-keyfile "{dir}/session.key"; managed-keys-directory "{dir}";
  listen-on port {port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; minimal-responses yes; dnssec-validation no; empty-zones-enable no; notify no;
};
controls { };
zone "` + zoneName + `" { type primary; file "{zone}"; allow-update { 127.0.0.0/8; }; };
`},
	{name: "CoreDNS", program: "coredns", args: []string{"-conf", "{dir}/conf"}, config: zoneName + `:{port} {
  bind 127.0.0.1
  file {zone}
}
`},
}

// command writes the configuration, and returns how to start the server.
func (s server) command(dir, zoneFile string, port, threads int) ([]string, error) {
	program, err := exec.LookPath(s.program)
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/" + s.program); err != nil {
			return nil, fmt.Errorf("%s is not installed: no %s", s.name, s.program)
		}
	}
	fill := strings.NewReplacer("{dir}", dir, "{zone}", zoneFile, "{port}", fmt.Sprint(port), "{threads}", fmt.Sprint(threads)).Replace
	command := []string{program}
	for _, a := range s.args {
		command = append(command, fill(a))
	}
	return command, os.WriteFile(filepath.Join(dir, "conf"), []byte(fill(s.config)), 0o644)
}
