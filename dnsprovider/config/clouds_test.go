package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodClouds = `
providers:
- name: aws
  route53: {zoneID: Z1, region: eu-central-1, endpoint: "http://127.0.0.1:1"}
- name: google
  clouddns: {project: p, managedZone: example, endpoint: "http://127.0.0.1:1"}
- name: azure
  azuredns: {subscription: s, resourceGroup: g}
- name: cloudflare
  cloudflare: {tokenFile: DIR/cloudflare-token, zoneID: z, batchSize: 3500, minTTL: 30, endpoint: "http://127.0.0.1:1"}
- name: sidecar
  webhook: {url: "http://127.0.0.1:1", minTTL: 60}
- name: objects
  dnsendpoints: {kubeconfigFile: DIR/dns-cluster.kubeconfig, namespace: external-dns, name: federation}
`

// cloudDir has what the good clouds read, and an environment without anything else.
func cloudDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cloudflare-token":       "secret\n",
		"google":                 `{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}`,
		"dns-cluster.kubeconfig": `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}], "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(dir, "google"))
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "none"))
	return dir
}

func TestCloudsAreMade(t *testing.T) {
	providers, err := parse([]byte(strings.ReplaceAll(goodClouds, "DIR", cloudDir(t))), "example.com.")
	if err != nil || len(providers) != 6 {
		t.Errorf("%d providers, %v, want 6", len(providers), err)
	}
}

// TestCloudsOfTheGuide: the example in docs/dns.md can be used.
func TestCloudsOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/dns.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "### Clouds and external-dns")
	_, example, _ := strings.Cut(section, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	providers, err := parse([]byte(strings.ReplaceAll(example, "/etc/federation", cloudDir(t))), "example.com")
	if err != nil || len(providers) != 3 {
		t.Errorf("%d providers, %v, want 3", len(providers), err)
	}
}

func TestCloudsThatAreNotWholeAreRefused(t *testing.T) {
	dir := cloudDir(t)
	for section, want := range map[string]string{
		`clouddns: {}`:                                                                "project",
		`azuredns: {subscription: s}`:                                                 `resource group ""`,
		`cloudflare: {}`:                                                              "CLOUDFLARE_API_TOKEN",
		`cloudflare: {token: secret}`:                                                 `unknown field "token"`,
		`webhook: {url: "127.0.0.1:8888"}`:                                            "http://HOST:PORT",
		`webhook: {url: "http://192.0.2.1:8888"}`:                                     "must be https, or on loopback",
		`dnsendpoints: {kubeconfigFile: DIR/none}`:                                    "kubeconfigFile",
		`dnsendpoints: {kubeconfigFile: DIR/dns-cluster.kubeconfig}`:                  "of DNSEndpoints",
		`route53: {region: eu-central-1, endpoint: "http://route53.example.com"}`:     `endpoint: "http://route53.example.com" is not encrypted: must be https, or on loopback`,
		`clouddns: {project: p, endpoint: "HTTP://192.0.2.1/dns"}`:                    "is not encrypted",
		`cloudflare: {tokenFile: DIR/cloudflare-token, endpoint: "http://192.0.2.1"}`: "is not encrypted",
		`cloudflare: {tokenFile: DIR/cloudflare-token, endpoint: "192.0.2.1"}`:        "must be https://HOST[:PORT]",
		`route53: {zone: Z1}`:                                                         `unknown field "zone"`,
	} {
		text := "providers:\n- name: a\n  " + strings.ReplaceAll(section, "DIR", dir)
		if _, err := parse([]byte(text), "example.com."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", section, err, want)
		}
	}
}
