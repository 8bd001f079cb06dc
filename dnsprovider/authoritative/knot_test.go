package authoritative

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"federation/dnsprovider/servertest"
)

// startKnot runs a real Knot with the zone on a free port of loopback until the test ends.
func startKnot(t *testing.T, zoneFile string) string {
	t.Helper()
	knotd := servertest.Find(t, "knotd", "knot")
	dir, port := servertest.Dir(t), servertest.FreePort(t)
	servertest.Write(t, dir, "zone", zoneFile)
	config := servertest.Write(t, dir, "knot.conf", fmt.Sprintf(`
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
	servertest.Run(t, exec.Command(knotd, "-c", config))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	servertest.AwaitSOA(t, address, testZone)
	return address
}

// TestAnswersAsKnotDoes asks both servers the same.
func TestAnswersAsKnotDoes(t *testing.T) {
	compare(t, rand.New(rand.NewPCG(9, 10)), "Knot", startKnot)
}
