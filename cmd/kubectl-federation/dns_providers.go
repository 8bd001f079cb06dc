package main

import (
	"context"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// DNSProviders reads the states of the DNS providers, by name. None if they are not published, or the user may not read
// them.
func (f *Federation) DNSProviders(ctx context.Context) ([]v1beta1.DNSProvider, error) {
	m, err := f.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v1beta1.ReadDNSProviders(m.Data)
}

// providerState returns a provider's state: out of sync, or the reason of its message.
func providerState(p v1beta1.DNSProvider) string {
	if p.Published {
		return p.Reason
	}
	return "Behind," + p.Reason
}

func printProviders(out io.Writer, all []v1beta1.DNSProvider, now time.Time) {
	if len(all) == 0 {
		return
	}
	tell(out, "\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "DNS PROVIDER\tSTATUS\tSINCE\tMESSAGE\n")
	for _, p := range all {
		tell(w, "%s\t%s\t%s\t%s\n", p.Name, providerState(p), agoOrDash(&p.Since, now), strings.Join(strings.Fields(p.Message), " "))
	}
	_ = w.Flush() // nobody reads the error
}
