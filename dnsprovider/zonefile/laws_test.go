package zonefile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// A zone that is written down reads the same, whatever the order of its lines, the case of its names, and whether they are relative.
func TestParseReadsWhatIsWritten(t *testing.T) {
	chance := rand.New(rand.NewPCG(95, 1))
	data := map[dnsprovider.Type][]string{"A": {"192.0.2.1", "192.0.2.2"}, "AAAA": {"2001:db8::1"}, "TXT": {`"a;b"`, `"c\"d" "e"`},
		"MX":  {"10 mail.example.test.", "20 other.test."},
		"SRV": {"1 2 80 web.example.test."}, "CAA": {`0 issue "ca.test"`}, "SSHFP": {"4 2 123456789ABCDEF67890123456789ABCDEF67890123456789ABCDEF123456789"},
		"CNAME": {"web.example.test."}}
	for range 500 {
		var want, file []string
		for i := range chance.IntN(6) {
			name := fmt.Sprintf("n%d.example.test.", i)
			for t, values := range data {
				if alone := t == "CNAME"; chance.IntN(3) > 0 || alone != (i%3 == 0) {
					continue
				}
				for _, value := range values {
					want = append(want, fmt.Sprintf("%s %d IN %s %s", name, 15+i, t, value))
					written := []string{name, strings.TrimSuffix(name, ".example.test."), strings.ToUpper(name)}[chance.IntN(3)]
					file = append(file, fmt.Sprintf("%s %d %s%s %s ; said once", written, 15+i, []string{"", "IN "}[chance.IntN(2)], t, value))
				}
			}
		}
		chance.Shuffle(len(file), func(i, j int) { file[i], file[j] = file[j], file[i] })
		zone, err := Parse(strings.NewReader(strings.Join(file, "\n")+"\n"), "example.test", DefaultLimits)
		if err != nil {
			t.Fatalf("%v in\n%s", err, strings.Join(file, "\n"))
		}
		got := strings.Split(strings.TrimSpace(lines(zone)), "\n")
		if slices.Sort(want); len(want) > 0 && !slices.Equal(slices.Sorted(slices.Values(got)), want) || !slices.IsSortedFunc(zone.Sets, dnsprovider.Compare) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Data that is incomplete, or that no message could carry, is refused with the record that has it.
func TestParseRefusesData(t *testing.T) {
	for file, want := range map[string]string{
		"web 15 TXT " + strings.Repeat(`"`+strings.Repeat("x", 255)+`" `, 257): "record web.example.test. TXT",
		"web 15 SSHFP 4 2 123":                           "record web.example.test. SSHFP",
		"web 15 TLSA 3 1 1 zz":                           "record web.example.test. TLSA",
		"web 15 MX 10 " + strings.Repeat("abcdefg.", 32): "record web.example.test. MX",
	} {
		if _, err := Parse(strings.NewReader(file+"\n"), "example.test", DefaultLimits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s…: error %.200v, want one with %q", file, err, want)
		}
	}
	if _, err := Parse(strings.NewReader(""), "*.example.test", DefaultLimits); err == nil || !strings.Contains(err.Error(), "DNS zone") {
		t.Errorf("a zone of a name that cannot be: error %v", err)
	}
}

// A file may have just as many bytes and records as is allowed.
func TestParseTakesWhatIsAllowed(t *testing.T) {
	file := "a 15 A 192.0.2.1\nb 15 A 192.0.2.1\nc 15 A 192.0.2.1\n"
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Bytes: int64(len(file)), Records: 3}, ""},
		{Limits{Bytes: int64(len(file)) - 1, Records: 3}, fmt.Sprintf("zone file: more than %d bytes", len(file)-1)},
		{Limits{Bytes: int64(len(file)), Records: 2}, "zone file: more than 2 records"},
	} {
		zone, err := Parse(strings.NewReader(file), "example.test", c.limits)
		if got := fmt.Sprint(err); c.want == "" && (err != nil || len(zone.Sets) != 3) || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %d sets, error %v, want %q", c.limits, len(zone.Sets), err, c.want)
		}
	}
}
