package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	explainplan "federation/controllers/explain/plan"
	"federation/controllers/servicedns"
	"federation/controllers/servicedns/plan"
)

// twoProviders returns a ConfigMap's data with a healthy provider, and one that has been out of sync for 5 minutes.
func twoProviders(t *testing.T) map[string]string {
	t.Helper()
	data := map[string]string{}
	for name, c := range map[string]metav1.Condition{
		"built-in": {Status: metav1.ConditionTrue, Reason: servicedns.ReasonPublished, Message: "the zone example.com. has all records", LastTransitionTime: metav1.NewTime(seenAt.Add(-time.Hour))},
		"office":   {Status: metav1.ConditionFalse, Reason: servicedns.ReasonFailing, Message: "reading the zone: dial tcp 192.0.2.53:53: connect: connection refused", LastTransitionTime: metav1.NewTime(seenAt.Add(-5 * time.Minute))},
	} {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		data[name] = string(text)
	}
	return data
}

func TestProvidersOnAScreen(t *testing.T) {
	providers, err := v1beta1.ReadDNSProviders(twoProviders(t))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printProviders(&out, providers, seenAt)
	want := `
DNS PROVIDER   STATUS           SINCE   MESSAGE
built-in       Published        60m     the zone example.com. has all records
office         Behind,Failing   5m      reading the zone: dial tcp 192.0.2.53:53: connect: connection refused
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	in := dnsExample()
	view := explainplan.ViewNames(in, plan.Records(in), func(plan.Object) bool { return true })
	view.Providers = providers
	text, err := json.Marshal(view)
	if err != nil || !strings.Contains(string(text), `"providers":[{"name":"built-in","published":true,"reason":"Published",`) {
		t.Errorf("%s, %v", text, err)
	}
	out.Reset()
	printDNS(&out, view, seenAt)
	if !strings.Contains(out.String(), "office         Behind,Failing   5m") {
		t.Errorf("no word of the provider that is behind:\n%s", out.String())
	}
	if _, err := v1beta1.ReadDNSProviders(map[string]string{"office": "{"}); err == nil || !strings.Contains(err.Error(), "federation-dns-providers: office") {
		t.Errorf("error %v", err)
	}
}

// Not all is well while a provider is behind.
func TestAProviderThatIsBehindIsNotWell(t *testing.T) {
	s := statusOf(t, nil, "True 1 cluster is as desired")
	if !s.Healthy {
		t.Fatal("not well without it")
	}
	var err error
	if s.DNSProviders, err = v1beta1.ReadDNSProviders(twoProviders(t)); err != nil {
		t.Fatal(err)
	}
	if s.Summarize(); s.Healthy {
		t.Error("well, though a provider is behind")
	}
}
