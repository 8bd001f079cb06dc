package authoritative

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/servertest"
)

// startBIND runs a real BIND with the zone on a free port of loopback until the test ends.
func startBIND(t *testing.T, zoneFile string) string {
	t.Helper()
	named := servertest.Find(t, "named", "bind9")
	dir, port := servertest.Dir(t), servertest.FreePort(t)
	servertest.Write(t, dir, "zone", zoneFile)
	config := servertest.Write(t, dir, "named.conf", fmt.Sprintf(`
options {
	directory "%s"; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory "%[1]s";
	listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; minimal-responses yes; minimal-any yes; dnssec-validation no; empty-zones-enable no; notify no; zero-no-soa-ttl no;
};
controls { };
zone "%s" { type primary; file "zone"; check-names ignore; };`, dir, port, testZone))
	servertest.Run(t, exec.Command(named, "-g", "-n", "1", "-c", config))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	servertest.AwaitSOA(t, address, testZone)
	return address
}

// randomName has up to four labels of a small alphabet below the zone, so that names meet.
func randomName(r *rand.Rand) string {
	var labels []string
	for range 1 + r.IntN(4) {
		labels = append(labels, []string{"a", "b", "c", "web", "x-1", "_t"}[r.IntN(6)])
	}
	return strings.Join(labels, ".") + "." + testZone
}

func randomSets(t *testing.T, r *rand.Rand) (sets []dnsprovider.RRSet) {
	t.Helper()
	names := map[string]bool{}
	for len(names) < 150 {
		name := randomName(r)
		if names[name] {
			continue
		}
		names[name] = true
		add := func(typ dnsprovider.Type, rdata ...string) {
			set, err := dnsprovider.New(name, typ, uint32(r.IntN(300)), rdata...)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, set)
		}
		switch r.IntN(6) {
		case 0, 1:
			add(dnsprovider.CNAME, []string{randomName(r), randomName(r), randomName(r), "lb.cloud.test."}[r.IntN(4)])
		case 2:
			add(dnsprovider.A, "192.0.2.1", "192.0.2.2", "192.0.2.3")
			add(dnsprovider.AAAA, "2001:db8::1")
		case 3:
			add("TXT", `"some text" "and more"`)
			add("MX", "10 mail.example.test.")
		default:
			add(dnsprovider.A, fmt.Sprintf("192.0.2.%d", r.IntN(256)))
		}
	}
	return sets
}

// randomQuery asks for an existing name, a possible one, or one outside the zone, in random case.
func randomQuery(r *rand.Rand, sets []dnsprovider.RRSet) *dns.Msg {
	name := randomName(r)
	switch r.IntN(10) {
	case 0, 1, 2, 3, 4:
		name = sets[r.IntN(len(sets))].Name
	case 5:
		name = testZone
	case 6:
		name = []string{"test.", ".", "notexample.test.", "ns." + testZone, `a\.b.` + testZone, `\000.` + testZone}[r.IntN(6)]
	}
	spelled := []byte(name)
	for i := range spelled {
		if r.IntN(2) == 0 && spelled[i] >= 'a' && spelled[i] <= 'z' {
			spelled[i] -= 'a' - 'A'
		}
	}
	types := []uint16{dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeTXT, dns.TypeMX, dns.TypeNS, dns.TypeSOA, dns.TypeANY, dns.TypeSRV, 65280}
	m := new(dns.Msg).SetQuestion(string(spelled), types[r.IntN(len(types))])
	m.RecursionDesired = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		m.SetEdns0(1232, r.IntN(2) == 0)
		if r.IntN(20) == 0 {
			m.IsEdns0().SetVersion(1)
		}
	}
	return m
}

// TestAnswersAsBINDDoes asks both servers the same: code, flags, question, answer, authority, EDNS.
func TestAnswersAsBINDDoes(t *testing.T) {
	compare(t, rand.New(rand.NewPCG(5, 6)), "BIND", startBIND)
}

// compare asks two servers of one random zone the same. What RFCs leave open is listed at said.
func compare(t *testing.T, r *rand.Rand, name string, other func(*testing.T, string) string) {
	t.Helper()
	sets := randomSets(t, r)
	s := start(t, Options{RateLimit: -1})
	fill(t, s, sets)
	lines := []string{ask(t, s, "udp", testZone, dns.TypeSOA).Answer[0].String(), ask(t, s, "udp", testZone, dns.TypeNS).Answer[0].String(),
		ask(t, s, "udp", "ns."+testZone, dns.TypeA).Answer[0].String()}
	for _, set := range sets {
		lines = append(lines, set.String())
	}
	address := other(t, strings.Join(lines, "\n")+"\n")
	different, seen := 0, map[int]int{}
	for range 3000 {
		query := randomQuery(r, sets)
		client := dns.Client{Net: []string{"udp", "udp", "tcp"}[r.IntN(3)], Timeout: 5 * time.Second}
		theirs, _, err := client.Exchange(query, address)
		if err != nil {
			t.Fatal(err)
		}
		ours, _, err := client.Exchange(query, s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		seen[ours.Rcode]++
		if a, b := said(ours), said(theirs); a != b && different < 10 {
			different++
			t.Errorf("%v over %s: we say\n%s\n%s says\n%s", query.Question, client.Net, a, name, b)
		}
	}
	t.Logf("codes: %v", seen)
	for _, code := range []int{dns.RcodeSuccess, dns.RcodeNameError, dns.RcodeRefused, dns.RcodeBadVers} {
		if seen[code] == 0 {
			t.Errorf("no query got code %d: the comparison has a gap", code)
		}
	}
}

// said returns what two servers of one zone must say alike. Left out is what RFCs leave to the server:
//   - of an answer to ANY all but whether there is one (RFC 8482, section 4);
//   - the case of letters, as BIND and Knot spell names as the zone does and we as the client does (RFC 4343, section 4);
//   - the order of records (RFC 2181, section 5);
//   - the additional section, but for OPT, and in that the size and the options (RFC 1034, section 4.3.2 step 6; RFC 6891, section 6.2.3).
func said(m *dns.Msg) string {
	text := func(rrs []dns.RR) (out []string) {
		for _, rr := range rrs {
			out = append(out, strings.ToLower(rr.String()))
		}
		slices.Sort(out)
		return out
	}
	answer := text(m.Answer)
	if len(m.Question) == 1 && m.Question[0].Qtype == dns.TypeANY && len(answer) > 0 {
		answer = []string{"something"}
	}
	opt := "no EDNS"
	if o := m.IsEdns0(); o != nil {
		opt = fmt.Sprintf("EDNS %d do %t", o.Version(), o.Do())
	}
	return fmt.Sprintf("%s aa %t tc %t rd %t ra %t ad %t %s %v\n%s\n/%s", dns.RcodeToString[m.Rcode], m.Authoritative, m.Truncated,
		m.RecursionDesired, m.RecursionAvailable, m.AuthenticatedData, opt, m.Question, strings.Join(answer, "\n"), strings.Join(text(m.Ns), "\n"))
}

// TestZoneIsWhatNamedCheckzoneAccepts lets BIND's own checker look at what a resolver would see.
func TestZoneIsWhatNamedCheckzoneAccepts(t *testing.T) {
	checker := servertest.Find(t, "named-checkzone", "bind9-utils")
	s := start(t, Options{})
	fill(t, s, zoneLines(t, sample))
	var file strings.Builder
	for _, q := range []struct {
		name string
		t    uint16
	}{{testZone, dns.TypeSOA}, {testZone, dns.TypeNS}, {"ns." + testZone, dns.TypeA}} {
		fmt.Fprintln(&file, ask(t, s, "udp", q.name, q.t).Answer[0])
	}
	sets, err := s.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		fmt.Fprintln(&file, set)
	}
	name := servertest.Write(t, t.TempDir(), "zone", file.String())
	if out, err := exec.Command(checker, "-i", "local", testZone, name).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
