package v1beta1

import (
	"encoding/json"
	"testing"
)

// FuzzDNSSettings checks that any value is rejected, or is bounded and survives a round trip.
func FuzzDNSSettings(f *testing.F) {
	for _, value := range []string{
		`{}`, `{"ttlSeconds":30,"strategy":"Nearest","hosts":["www.example.com"]}`, `{"clusters":{"a":{"weight":0,"priority":1},"*":{"weight":100}}}`,
		`{"healthCheck":{"protocol":"HTTP","port":8080,"path":"/ready","host":"x","timeoutSeconds":2}}`, `{"hosts":["a","a"]}`, `{"ttlSeconds":-1}`, `{"hosts":["*.example.com"],"x":1}`,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s, errs := ParseDNSSettings(value, root)
		checkErrors(t, s != nil, errs)
		if s == nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, errs := ParseDNSSettings(string(again), root); len(errs) > 0 {
			t.Errorf("%s is taken, but not as it was read: %s: %v", value, again, errs)
		}
		if len(s.Hosts) > maxDNSHosts {
			t.Errorf("%d hosts are taken", len(s.Hosts))
		}
		for _, host := range s.Hosts {
			if host == "" || len(host) > maxDNSName {
				t.Errorf("host %q is taken", host)
			}
		}
		for name := range s.Clusters {
			if c := s.ForCluster(name); c.Weight != nil && *c.Weight < 0 || c.Priority < 0 {
				t.Errorf("%s: %+v is taken", name, c)
			}
		}
	})
}

// FuzzServiceIngresses checks that a parsed value survives a round trip.
func FuzzServiceIngresses(f *testing.F) {
	for _, value := range []string{
		``, `{}`, `{"items":{"east-a":{"items":[{"ip":"192.0.2.1"},{"hostname":"lb.example.com"}]},"west-a":{"items":null}}}`, `{"items":[]}`, `[`, `{"items":{"a":null}}`,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s := ParseServiceIngresses(value)
		text := s.String()
		if again := ParseServiceIngresses(text).String(); again != text {
			t.Errorf("%s is read as %s, and that as %s", value, text, again)
		}
	})
}

// FuzzPlacement checks that a parsed value survives a round trip.
func FuzzPlacement(f *testing.F) {
	for _, value := range []string{
		`pending`, `{"clusters":{"a":3},"overflow":{"b":1},"unschedulable":2,"policy":"p","home":{"a":1},"inputs":"x//y","notes":["n"]}`, `{"clusters":{},"everywhere":true}`,
		`{"clusters":{"a":-1}}`, `null`, `{"history":[{"at":"2026-01-01T00:00:00Z","cause":"created"}]}`,
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		p := ParsePlacement(value)
		if p == nil {
			return
		}
		text := p.String()
		if again := ParsePlacement(text); again == nil || again.String() != text {
			t.Errorf("%s is read as %s, and that as %s", value, text, again)
		}
	})
}
