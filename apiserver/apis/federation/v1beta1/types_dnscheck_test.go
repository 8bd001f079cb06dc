package v1beta1

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDNSChecksAreChecked(t *testing.T) {
	for text, want := range map[string][]string{
		`{"type":"TCP","port":5432}`:          nil,
		`{"type":"HTTP"}`:                     nil,
		`{"type":"HTTP","intervalSeconds":1}`: nil, // and the timeout that is left out is no longer
		`{"type":"HTTPS","host":"shop.example.com","path":"/healthz?all=1"}`: nil,
		`{"type":"HTTPS","insecureSkipVerify":true}`:                         nil,
		`{}`:              {"dns.check.type"},
		`{"type":"ICMP"}`: {`dns.check.type: Unsupported value: "ICMP": supported values: "HTTP", "HTTPS", "TCP"`},
		`{"type":"TCP"}`:  {"dns.check.port: Invalid value: 0: must be from 1 to 65535"},
		`{"type":"TCP","port":70000,"path":"/","host":"a"}`: {"dns.check.host", "dns.check.path", "dns.check.port: Invalid value: 70000"},
		`{"type":"HTTPS"}`:                                                  {"dns.check.host: Required"},
		`{"type":"HTTP","insecureSkipVerify":true}`:                         {"dns.check.insecureSkipVerify"},
		`{"type":"HTTP","path":"http://other/","host":"a_b"}`:               {"dns.check.host: Invalid value: \"a_b\"", `dns.check.path: Invalid value: "http://other/"`},
		`{"type":"HTTP","path":"/a b"}`:                                     {"dns.check.path"},
		`{"type":"HTTP","path":"/` + strings.Repeat("a", 256) + `"}`:        {"dns.check.path: Too long"},
		`{"type":"HTTP","intervalSeconds":-1,"failures":11,"successes":-1}`: {"dns.check.failures: Invalid value: 11: must be from 1 to 10", "dns.check.intervalSeconds: Invalid value: -1: must be from 1 to 3600", "dns.check.successes"},
		`{"type":"HTTP","intervalSeconds":5,"timeoutSeconds":6}`:            {"dns.check.timeoutSeconds: Invalid value: 6: must be from 1 to 5"},
	} {
		_, errs := ParseDNSSettings(fmt.Sprintf(`{"check":%s}`, text), field.NewPath("dns"))
		var got []string
		for _, err := range errs {
			got = append(got, err.Error())
		}
		slices.Sort(got)
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s:\n%q, want\n%q", text, got, want)
		}
	}
}
