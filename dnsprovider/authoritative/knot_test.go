package authoritative

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// startKnot runs a real Knot with the zone on a free port of loopback until the test ends.
func startKnot(t *testing.T, zoneFile string) string {
	t.Helper()
	knotd, err := exec.LookPath("knotd")
	if err != nil {
		if knotd = "/usr/sbin/knotd"; exec.Command(knotd, "-V").Run() != nil {
			t.Skip("knotd is not installed (Debian: knot): no comparison with it")
		}
	}
	dir, port := t.TempDir(), freePort(t)
	write(t, filepath.Join(dir, "zone"), zoneFile)
	write(t, filepath.Join(dir, "knot.conf"), fmt.Sprintf(`
server:
  rundir: "%[1]s"
  listen: 127.0.0.1@%[2]d
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "%[1]s"
zone:
  - domain: %[3]s
    storage: "%[1]s"
    file: "zone"
    zonefile-sync: -1
    journal-content: none
`, dir, port, testZone))
	cmd := exec.Command(knotd, "-c", filepath.Join(dir, "knot.conf"))
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("knotd wrote:\n%s", log.String())
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if reply, err := dns.Exchange(new(dns.Msg).SetQuestion(testZone, dns.TypeSOA), address); err == nil && reply.Rcode == dns.RcodeSuccess {
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("knotd did not answer within 10 s")
		}
	}
}

// TestAnswersAsKnotDoes asks both servers the same.
func TestAnswersAsKnotDoes(t *testing.T) {
	compare(t, rand.New(rand.NewPCG(9, 10)), "Knot", startKnot)
}
