package config

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"federation/dnsprovider"
	"federation/dnsprovider/azuredns"
	"federation/dnsprovider/clouddns"
	"federation/dnsprovider/cloudflare"
	"federation/dnsprovider/endpoint"
	"federation/dnsprovider/route53"
	"federation/dnsprovider/webhook"
)

// route53Section is hosted zones of Amazon Route 53. Credentials come from where the SDK looks.
type route53Section struct {
	ZoneID   string `json:"zoneID"`
	Region   string `json:"region"`
	Profile  string `json:"profile"`
	Endpoint string `json:"endpoint"`
}

func newRoute53(s route53Section, _ string) (dnsprovider.Provider, error) {
	if err := encryptedEndpoint(s.Endpoint); err != nil {
		return nil, err
	}
	return route53.New(context.Background(), route53.Options(s))
}

// cloudDNSSection is zones of Google Cloud DNS. Credentials come from where Google's client looks.
type cloudDNSSection struct {
	Project     string `json:"project"`
	ManagedZone string `json:"managedZone"`
	Endpoint    string `json:"endpoint"`
}

func newCloudDNS(s cloudDNSSection, _ string) (dnsprovider.Provider, error) {
	if err := encryptedEndpoint(s.Endpoint); err != nil {
		return nil, err
	}
	return clouddns.New(context.Background(), clouddns.Options(s))
}

// encryptedEndpoint refuses the URL of a cloud's API to which the cloud's credentials would go in the clear. There is none of which that is
// to be allowed.
func encryptedEndpoint(address string) error {
	if address == "" {
		return nil // the cloud's own
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("endpoint: %q must be https://HOST[:PORT]", address)
	}
	if encrypted("endpoint", address, true, false) != nil {
		return fmt.Errorf("endpoint: %q is not encrypted: must be https, or on loopback", u.Redacted())
	}
	return nil
}

// azureDNSSection is zones of Azure DNS. Credentials come from where the SDK looks.
type azureDNSSection struct {
	Subscription  string `json:"subscription"`
	ResourceGroup string `json:"resourceGroup"`
}

func newAzureDNS(s azureDNSSection, _ string) (dnsprovider.Provider, error) {
	return azuredns.New(azuredns.Options(s))
}

// cloudflareSection is zones of Cloudflare.
type cloudflareSection struct {
	TokenFile string `json:"tokenFile"`
	ZoneID    string `json:"zoneID"`
	BatchSize int    `json:"batchSize"`
	MinTTL    uint32 `json:"minTTL"`
	Endpoint  string `json:"endpoint"`
}

func newCloudflare(s cloudflareSection, _ string) (dnsprovider.Provider, error) {
	if err := encryptedEndpoint(s.Endpoint); err != nil {
		return nil, err
	}
	o := cloudflare.Options{ZoneID: s.ZoneID, BatchSize: s.BatchSize, MinTTL: s.MinTTL, Endpoint: s.Endpoint}
	if s.TokenFile != "" {
		o.Token = secretFile("tokenFile", s.TokenFile)
	}
	return cloudflare.New(o)
}

// webhookSection is a webhook provider of external-dns.
type webhookSection struct {
	URL    string `json:"url"`
	MinTTL uint32 `json:"minTTL"`
	// AllowInsecure lets records go over the network as they are.
	AllowInsecure bool `json:"allowInsecure"`
}

func newWebhook(s webhookSection, _ string) (dnsprovider.Provider, error) {
	if strings.Contains(s.URL, "://") {
		if err := encrypted("url", s.URL, false, s.AllowInsecure); err != nil {
			return nil, err
		}
	}
	return webhook.New(webhook.Options{URL: s.URL, MinTTL: s.MinTTL})
}

// dnsEndpointsSection is DNSEndpoint objects for an external-dns in some cluster.
type dnsEndpointsSection struct {
	KubeconfigFile string `json:"kubeconfigFile"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
}

func newDNSEndpoints(s dnsEndpointsSection, zone string) (dnsprovider.Provider, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigFile) // without a file: the cluster that we run in
	if err != nil {
		return nil, fmt.Errorf("kubeconfigFile %q: %w", s.KubeconfigFile, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfigFile %q: %w", s.KubeconfigFile, err)
	}
	return endpoint.New(endpoint.Options{Client: client, Namespace: s.Namespace, Name: s.Name, Zone: zone})
}
