package zonefile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

const sample = `$ORIGIN example.test.
$TTL 300
@	IN SOA ns hostmaster ( 7 60 10 604800 5 ) ; the apex
	NS ns
	NS ns.Elsewhere.test.
	MX 10 mail
ns	A 192.0.2.53
Web 15 A 192.0.2.2
web 15 A 192.0.2.1
web 15 AAAA 2001:DB8:0::1
www 30 CNAME Web
text TXT "a;b" "c\"d"
$GENERATE 1-3 host-$ 60 A 192.0.2.$
`

// lines gives a zone as a file again.
func lines(z Zone) string {
	var b strings.Builder
	if z.SOA.Name != "" {
		fmt.Fprintln(&b, z.SOA)
	}
	if z.NS.Name != "" {
		fmt.Fprintln(&b, z.NS)
	}
	for _, set := range z.Sets {
		fmt.Fprintln(&b, set)
	}
	return b.String()
}

func TestParseZoneFile(t *testing.T) {
	zone, err := Parse(strings.NewReader(sample), "Example.test", DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	want := `example.test. 300 IN SOA ns.example.test. hostmaster.example.test. 7 60 10 604800 5
example.test. 300 IN NS ns.Elsewhere.test.
example.test. 300 IN NS ns.example.test.
example.test. 300 IN MX 10 mail.example.test.
host-1.example.test. 60 IN A 192.0.2.1
host-2.example.test. 60 IN A 192.0.2.2
host-3.example.test. 60 IN A 192.0.2.3
ns.example.test. 300 IN A 192.0.2.53
text.example.test. 300 IN TXT "a;b" "c\"d"
web.example.test. 15 IN A 192.0.2.1
web.example.test. 15 IN A 192.0.2.2
web.example.test. 15 IN AAAA 2001:db8::1
www.example.test. 30 IN CNAME web.example.test.
`
	if got := lines(zone); got != want {
		t.Errorf("the zone is\n%s, want\n%s", got, want)
	}
}

func TestAZoneNeedsNoApex(t *testing.T) {
	zone, err := Parse(strings.NewReader("web 15 A 192.0.2.1\n"), "example.test", DefaultLimits)
	if err != nil || zone.SOA.Name != "" || zone.NS.Name != "" || len(zone.Sets) != 1 {
		t.Errorf("%+v, %v, want one set and no apex", zone, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"web 15 A 192.0.2.300":                           "line: 1",
		"web 15 A 192.0.2.1\nweb A A A":                  "line: 2",
		"$INCLUDE /etc/hostname":                         "$INCLUDE",
		"$GENERATE 1-99999999 a$ A 192.0.2.1":            "$GENERATE",
		"web.other. 15 A 192.0.2.1":                      "must be in the zone example.test.",
		"web 15 CH TXT a":                                "must be IN",
		"* 15 A 192.0.2.1":                               "letters",
		"web 15 A 192.0.2.1\nweb 16 A 192.0.2.2":         "must be 15",
		"web 15 A 192.0.2.1\nweb 15 CNAME b":             "a CNAME must be alone",
		"web 15 CNAME a\nweb 15 CNAME b":                 "exactly one",
		"@ 15 CNAME a.other.":                            "a CNAME must be alone",
		"sub 15 NS ns.other.":                            "no delegations",
		"sub 15 DS 1 13 2 00":                            "no delegations",
		"sub 15 DNAME a.other.":                          "no DNAMEs",
		"sub 15 SOA a b 1 2 3 4 5":                       "must be at example.test.",
		"@ 15 SOA a b 1 2 3 4 5\n@ 15 SOA a b 2 2 3 4 5": "must be one",
		"web 15 NSEC a A":                                "signs by itself",
		"web 15 TYPE65280 \\# 1 00":                      "a type that has a name",
		"web 2147483648 A 192.0.2.1":                     "TTL",
	} {
		_, err := Parse(strings.NewReader(file+"\n"), "example.test.", DefaultLimits)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", file, err, want)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	file := "$GENERATE 1-100 a$ 15 A 192.0.2.1\n"
	if _, err := Parse(strings.NewReader(file), "example.test", Limits{Bytes: 100, Records: 99}); err == nil || !strings.Contains(err.Error(), "99 records") {
		t.Errorf("100 records where 99 are allowed: error %v", err)
	}
	if _, err := Parse(strings.NewReader(file), "example.test", Limits{Bytes: 10, Records: 100}); err == nil || !strings.Contains(err.Error(), "10 bytes") {
		t.Errorf("more bytes than are allowed: error %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := Parse(iotest.ErrReader(broken), "example.test", DefaultLimits); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader", err)
	}
}

// FuzzParse: no file breaks the parser, and what was read reads the same again.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("a SRV 1 2 3 b\n$TTL 1h\n@ CAA 0 issue \"x\"\n\\097 TXT \\000\\255\n")
	f.Add("a 1 HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1\na LOC 51 30 12.748 N 0 7 39.611 W 0.00m 0.00m 0.00m 0.00m\n")
	f.Fuzz(func(t *testing.T, file string) {
		limits := Limits{Bytes: 1 << 16, Records: 1000}
		zone, err := Parse(strings.NewReader(file), "example.test.", limits)
		if err != nil {
			return
		}
		again, err := Parse(strings.NewReader(lines(zone)), zone.Name, DefaultLimits)
		if err != nil || lines(again) != lines(zone) {
			t.Fatalf("read again:\n%s%v, want\n%s", lines(again), err, lines(zone))
		}
	})
}
