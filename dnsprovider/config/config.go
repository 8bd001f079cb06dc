// Package config makes DNS providers of the file of --dns-providers.
package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"federation/dnsprovider"
)

// Provider is one of the file, under its name.
type Provider struct {
	Name string
	dnsprovider.Provider
}

// kinds are the kinds of providers that the file of --dns-providers may name, each with what
// makes a provider for a zone of its section of the file.
var kinds = map[string]func(section json.RawMessage, zone string) (dnsprovider.Provider, error){
	"rfc2136":      kindOf(newRFC2136),
	"powerdns":     kindOf(newPowerDNS),
	"coredns":      kindOf(newCoreDNS),
	"route53":      kindOf(newRoute53),
	"clouddns":     kindOf(newCloudDNS),
	"azuredns":     kindOf(newAzureDNS),
	"cloudflare":   kindOf(newCloudflare),
	"webhook":      kindOf(newWebhook),
	"dnsendpoints": kindOf(newDNSEndpoints),
}

// kindOf decodes the section into a T. Fields that T does not have are refused.
func kindOf[T any](build func(section T, zone string) (dnsprovider.Provider, error)) func(json.RawMessage, string) (dnsprovider.Provider, error) {
	return func(section json.RawMessage, zone string) (dnsprovider.Provider, error) {
		var t T
		if err := decodeStrictly(section, &t); err != nil {
			return nil, err
		}
		return build(t, zone)
	}
}

// Read reads the file of --dns-providers. Errors name the file, the provider and the field.
func Read(file, zone string) ([]Provider, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--dns-providers %q: %w", file, err)
	}
	providers, err := parse(text, zone)
	if err != nil {
		return nil, fmt.Errorf("--dns-providers %q: %w", file, err)
	}
	return providers, nil
}

func parse(text []byte, zone string) ([]Provider, error) {
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
	var providers []Provider
	for i, entry := range file.Providers {
		p, err := newProvider(entry, zone)
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

// newProvider makes a provider of an entry: its name, and the section of its kind.
func newProvider(entry map[string]json.RawMessage, zone string) (p Provider, err error) {
	if err := json.Unmarshal(entry["name"], &p.Name); err != nil || len(validation.IsDNS1123Label(p.Name)) > 0 {
		return p, fmt.Errorf("name %s: must be there, of lower-case letters, digits and \"-\"", entry["name"])
	}
	delete(entry, "name")
	sections := slices.Sorted(maps.Keys(entry))
	if len(sections) != 1 || kinds[sections[0]] == nil {
		return p, fmt.Errorf("name %q: has %v beside its name: must have one of %v", p.Name, sections, slices.Sorted(maps.Keys(kinds)))
	}
	if p.Provider, err = kinds[sections[0]](entry[sections[0]], zone); err != nil {
		return p, fmt.Errorf("name %q: %s: %w", p.Name, sections[0], err)
	}
	return p, nil
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
