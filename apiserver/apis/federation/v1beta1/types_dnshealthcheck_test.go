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
		`{"type":"TCP","port":5432}`:        nil,
		`{"type":"HTTP"}`:                   nil,
		`{"type":"HTTP","periodSeconds":1}`: nil, // and the timeout that is left out is no longer
		`{"type":"HTTPS","host":"shop.example.com","path":"/healthz?all=1"}`: nil,
		`{"type":"HTTPS","insecureSkipVerify":true}`:                         nil,
		`{}`:              {"dns.healthCheck.type"},
		`{"type":"ICMP"}`: {`dns.healthCheck.type: Unsupported value: "ICMP": supported values: "HTTP", "HTTPS", "TCP"`},
		`{"type":"TCP"}`:  {"dns.healthCheck.port: Invalid value: 0: must be from 1 to 65535"},
		`{"type":"TCP","port":70000,"path":"/","host":"a"}`: {"dns.healthCheck.host", "dns.healthCheck.path", "dns.healthCheck.port: Invalid value: 70000"},
		`{"type":"HTTPS"}`:                                                               {"dns.healthCheck.host: Required"},
		`{"type":"HTTP","insecureSkipVerify":true}`:                                      {"dns.healthCheck.insecureSkipVerify"},
		`{"type":"HTTP","path":"http://other/","host":"a_b"}`:                            {"dns.healthCheck.host: Invalid value: \"a_b\"", `dns.healthCheck.path: Invalid value: "http://other/"`},
		`{"type":"HTTP","path":"/a b"}`:                                                  {"dns.healthCheck.path"},
		`{"type":"HTTP","path":"/` + strings.Repeat("a", 256) + `"}`:                     {"dns.healthCheck.path: Too long"},
		`{"type":"HTTP","periodSeconds":-1,"failureThreshold":11,"successThreshold":-1}`: {"dns.healthCheck.failureThreshold: Invalid value: 11: must be from 1 to 10", "dns.healthCheck.periodSeconds: Invalid value: -1: must be from 1 to 3600", "dns.healthCheck.successThreshold"},
		`{"type":"HTTP","periodSeconds":5,"timeoutSeconds":6}`:                           {"dns.healthCheck.timeoutSeconds: Invalid value: 6: must be from 1 to 5"},
	} {
		_, errs := ParseDNSSettings(fmt.Sprintf(`{"healthCheck":%s}`, text), field.NewPath("dns"))
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
