package authoritative

import (
	"math/rand/v2"
	"testing"

	"federation/dnsprovider/servertest"
)

// startKnot runs a real Knot with the zone until the test ends.
func startKnot(t *testing.T, zoneFile string) string {
	t.Helper()
	address, _ := servertest.Knot{Zone: testZone, File: zoneFile}.Start(t)
	return address
}

// TestAnswersAsKnotDoes asks both servers the same.
func TestAnswersAsKnotDoes(t *testing.T) {
	compare(t, rand.New(rand.NewPCG(9, 10)), "Knot", startKnot)
}
