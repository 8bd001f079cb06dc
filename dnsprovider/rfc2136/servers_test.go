package rfc2136

import (
	"fmt"
	"os/exec"
	"testing"

	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
	"federation/dnsprovider/servertest"
)

const (
	testZone   = "example.test."
	testSecret = "c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIHNlY3JldA=="
	zoneFile   = "@ 60 IN SOA ns admin 1 3600 600 86400 5\n@ 60 IN NS ns\nns 60 IN A 127.0.0.1\n"
)

// servers are the real ones that all tests are run against, each with an empty zone until the test ends.
var servers = map[string]func(*testing.T) (address string){"BIND": startBIND, "Knot": startKnot}

func bindConfig(dir string, port int) string {
	return fmt.Sprintf(`
options {
	directory "%s"; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory "%[1]s";
	listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; notify no;
};
controls { };
key "federation" { algorithm hmac-sha256; secret "%s"; };
key "reader" { algorithm hmac-sha256; secret "%[3]s"; };
zone "%s" {
	type primary; file "zone"; check-names ignore;
	allow-transfer { key federation; key reader; }; update-policy { grant federation zonesub ANY; };
};`, dir, port, testSecret, testZone)
}

func startBIND(t *testing.T) string {
	t.Helper()
	command, dir, port := servertest.Find(t, "named", "bind9"), servertest.Dir(t), servertest.FreePort(t)
	servertest.Write(t, dir, "zone", zoneFile)
	servertest.Run(t, exec.Command(command, "-g", "-n", "1", "-c", servertest.Write(t, dir, "config", bindConfig(dir, port))))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	servertest.AwaitSOA(t, address, testZone)
	return address
}

func startKnot(t *testing.T) string {
	t.Helper()
	address, _ := servertest.Knot{Zone: testZone, File: zoneFile, Keys: []servertest.KnotKey{
		{Name: "federation", Secret: testSecret, May: "transfer, update"}, {Name: "reader", Secret: testSecret, May: "transfer"},
	}}.Start(t)
	return address
}

// eachServer runs the test against each of the servers, with one of its own.
func eachServer(t *testing.T, test func(t *testing.T, address string)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// testKey returns the key that may do all, changed by the functions.
func testKey(change ...func(*Key)) Key {
	key := Key{Name: "federation", Algorithm: "hmac-sha256", Secret: func() (string, error) { return testSecret + "\n", nil }}
	for _, c := range change {
		c(&key)
	}
	return key
}

func provider(t *testing.T, address string, key Key) *Provider {
	t.Helper()
	p, err := New(Options{Server: address, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// zoneLines returns providertest.Sets below testZone.
func zoneLines(t testing.TB, lines string) []dnsprovider.RRSet {
	t.Helper()
	return providertest.Sets(t, testZone, lines)
}
