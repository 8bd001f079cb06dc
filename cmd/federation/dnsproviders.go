package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"federation/controllers/servicedns"
	"federation/dnsprovider"
)

// dnsProviderKinds are the kinds of providers that the file of --dns-providers may name, each with what
// makes a provider for a zone of its section of the file.
var dnsProviderKinds = map[string]func(section json.RawMessage, zone string) (dnsprovider.Provider, error){
	"rfc2136":      dnsProviderKind(newRFC2136),
	"powerdns":     dnsProviderKind(newPowerDNS),
	"coredns":      dnsProviderKind(newCoreDNS),
	"route53":      dnsProviderKind(newRoute53),
	"clouddns":     dnsProviderKind(newCloudDNS),
	"azuredns":     dnsProviderKind(newAzureDNS),
	"cloudflare":   dnsProviderKind(newCloudflare),
	"webhook":      dnsProviderKind(newWebhook),
	"dnsendpoints": dnsProviderKind(newDNSEndpoints),
}

// dnsProviderKind decodes the section into a T. Fields that T does not have are refused.
func dnsProviderKind[T any](build func(section T, zone string) (dnsprovider.Provider, error)) func(json.RawMessage, string) (dnsprovider.Provider, error) {
	return func(section json.RawMessage, zone string) (dnsprovider.Provider, error) {
		var t T
		if err := decodeStrictly(section, &t); err != nil {
			return nil, err
		}
		return build(t, zone)
	}
}

// dnsProviders reads the file of --dns-providers. Errors name the file, the provider and the field.
func dnsProviders(file, zone string) ([]servicedns.NamedProvider, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--dns-providers %q: %w", file, err)
	}
	providers, err := parseDNSProviders(text, zone)
	if err != nil {
		return nil, fmt.Errorf("--dns-providers %q: %w", file, err)
	}
	return providers, nil
}

func parseDNSProviders(text []byte, zone string) ([]servicedns.NamedProvider, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var file struct {
		Providers []map[string]json.RawMessage `json:"providers"`
	}
	if err := decodeStrictly(asJSON, &file); err != nil {
		return nil, err
	}
	names := map[string]bool{"built-in": true}
	var providers []servicedns.NamedProvider
	for i, entry := range file.Providers {
		p, err := dnsProvider(entry, zone)
		if err != nil {
			return nil, fmt.Errorf("providers[%d]: %w", i, err)
		}
		if names[p.Name] {
			return nil, fmt.Errorf("providers[%d]: name %q: must be another than the others' and than built-in", i, p.Name)
		}
		names[p.Name] = true
		providers = append(providers, p)
	}
	return providers, nil
}

// dnsProvider makes a provider of an entry: its name, and the section of its kind.
func dnsProvider(entry map[string]json.RawMessage, zone string) (p servicedns.NamedProvider, err error) {
	if err := json.Unmarshal(entry["name"], &p.Name); err != nil || len(validation.IsDNS1123Label(p.Name)) > 0 {
		return p, fmt.Errorf("name %s: must be there, of lower-case letters, digits and \"-\"", entry["name"])
	}
	delete(entry, "name")
	kinds := slices.Sorted(maps.Keys(entry))
	if len(kinds) != 1 || dnsProviderKinds[kinds[0]] == nil {
		return p, fmt.Errorf("name %q: has %v beside its name: must have one of %v", p.Name, kinds, slices.Sorted(maps.Keys(dnsProviderKinds)))
	}
	if p.Provider, err = dnsProviderKinds[kinds[0]](entry[kinds[0]], zone); err != nil {
		return p, fmt.Errorf("name %q: %s: %w", p.Name, kinds[0], err)
	}
	return p, nil
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
