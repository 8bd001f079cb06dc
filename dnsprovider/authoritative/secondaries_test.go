package authoritative

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider/servertest"
)

// secondaries are the real servers that follow ours: what starts them, and the Debian package.
var secondaries = map[string]struct {
	command, pkg string
	config       func(dir string, port int, primary netip.AddrPort) string
	args         []string
}{
	"BIND": {"named", "bind9", bindSecondary, []string{"-g", "-n", "1", "-c"}},
	"Knot": {"knotd", "knot", knotSecondary, []string{"-c"}},
	"NSD":  {"nsd", "nsd", nsdSecondary, []string{"-d", "-c"}},
}

func bindSecondary(dir string, port int, primary netip.AddrPort) string {
	return fmt.Sprintf(`
options {
	directory "%s"; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory "%[1]s";
	listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; notify no; minimal-responses yes;
};
controls { };
key "transfer" { algorithm hmac-sha256; secret "%s"; };
zone "%s" { type secondary; file "zone"; primaries { %s port %d key transfer; }; allow-notify { key transfer; }; };`,
		dir, port, testSecret, testZone, primary.Addr(), primary.Port())
}

func knotSecondary(dir string, port int, primary netip.AddrPort) string {
	return fmt.Sprintf(`
server:
    listen: 127.0.0.1@%d
    rundir: "%s"
    background-workers: 1
    udp-workers: 1
    tcp-workers: 1
log:
  - target: stderr
    any: info
database:
    storage: "%[2]s"
key:
  - id: transfer
    algorithm: hmac-sha256
    secret: %[3]s
remote:
  - id: primary
    address: %[4]s@%[5]d
    key: transfer
acl:
  - id: notify
    key: transfer
    action: notify
zone:
  - domain: %[6]s
    storage: "%[2]s"
    master: primary
    acl: notify
`, port, dir, testSecret, primary.Addr(), primary.Port(), testZone)
}

func nsdSecondary(dir string, port int, primary netip.AddrPort) string {
	return fmt.Sprintf(`
server:
	ip-address: 127.0.0.1@%d
	username: ""
	chroot: ""
	zonesdir: "%s"
	pidfile: "%[2]s/pid"
	xfrdfile: "%[2]s/xfrd"
	xfrdir: "%[2]s"
	zonelistfile: "%[2]s/zones"
	cookie-secret-file: "%[2]s/cookies"
	server-count: 1
	xfrd-reload-timeout: 0
remote-control:
	control-enable: no
key:
	name: transfer
	algorithm: hmac-sha256
	secret: "%[3]s"
zone:
	name: %[6]s
	zonefile: zone
	request-xfr: %[4]s@%[5]d transfer
	allow-notify: 127.0.0.1 transfer
`, port, dir, testSecret, primary.Addr(), primary.Port(), testZone)
}

// startSecondary runs a real server that follows primary until the test ends. It returns what that writes.
func startSecondary(t *testing.T, name string, port int, primary netip.AddrPort) *servertest.Log {
	t.Helper()
	s := secondaries[name]
	command, dir := servertest.Find(t, s.command, s.pkg), servertest.Dir(t)
	config := servertest.Write(t, dir, "config", s.config(dir, port, primary))
	return servertest.Run(t, exec.Command(command, append(s.args, config)...))
}

// TestRealServersFollow changes the zone, and waits until each of the secondaries has it.
func TestRealServersFollow(t *testing.T) {
	for name := range secondaries {
		t.Run(name, func(t *testing.T) {
			port := servertest.FreePort(t)
			at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
			primary := startPrimary(t, Options{Transfers: Transfers{Notify: []netip.AddrPort{at}}})
			fill(t, primary, append(manyNames(t, 2000), zoneLines(t, sample)...))
			startSecondary(t, name, port, primary.Addr())
			for i := range 10 {
				address := fmt.Sprintf("198.51.100.%d", i)
				sets, err := primary.Records(context.Background(), testZone)
				if err != nil {
					t.Fatal(err)
				}
				became := zoneLines(t, "moving A "+address)
				for _, set := range sets {
					if set.Name != "moving."+testZone {
						became = append(became, set)
					}
				}
				become(t, primary, became[:len(became)-i], nil)
				followed(t, at.String(), "moving."+testZone, address)
			}
			same(t, primary, at.String())
		})
	}
}

func followed(t *testing.T, server, name, address string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		reply, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), server)
		if err == nil && len(reply.Answer) == 1 && strings.HasSuffix(reply.Answer[0].String(), "\t"+address) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not %s after 20 s: %v, %v", name, address, reply, err)
		}
	}
}

// same asks both servers for all that is in the zone.
func same(t *testing.T, primary *Server, secondary string) {
	t.Helper()
	sets, err := primary.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		q := new(dns.Msg).SetQuestion(set.Name, dns.StringToType[string(set.Type)])
		theirs, err := dns.Exchange(q, secondary)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := dns.Exchange(q, primary.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if lines(ours.Answer) != lines(theirs.Answer) {
			t.Fatalf("%s %s: the secondary says\n%s\nwe say\n%s", set.Name, set.Type, lines(theirs.Answer), lines(ours.Answer))
		}
	}
}
