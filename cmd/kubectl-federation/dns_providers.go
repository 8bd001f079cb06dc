package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// dnsProvider is the state of a DNS provider, as -o json and yaml print it.
type dnsProvider struct {
	Name string `json:"name"`
	// Published: it has all records, except those that the message names.
	Published bool   `json:"published"`
	Reason    string `json:"reason"`
	// Message is the last error, if it is not published.
	Message string `json:"message"`
	// Since is when it became published, or got behind.
	Since metav1.Time `json:"since"`
}

// dnsProviders reads the states of the DNS providers, by name. None if they are not published, or the user may not read
// them.
func (f *federation) dnsProviders(ctx context.Context) ([]dnsProvider, error) {
	m, err := f.core.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viewProviders(m.Data)
}

// viewProviders reads the conditions in the ConfigMap of the providers. The error names the key.
func viewProviders(data map[string]string) (all []dnsProvider, err error) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		var c metav1.Condition
		if err := json.Unmarshal([]byte(data[name]), &c); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap, name, err)
		}
		all = append(all, dnsProvider{Name: name, Published: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime})
	}
	return all, nil
}

// stateText returns the provider's state: out of sync, or the reason of its message.
func (p *dnsProvider) stateText() string {
	if p.Published {
		return p.Reason
	}
	return "Behind," + p.Reason
}

func printProviders(out io.Writer, all []dnsProvider, now time.Time) {
	if len(all) == 0 {
		return
	}
	tell(out, "\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "DNS PROVIDER\tSTATUS\tSINCE\tMESSAGE\n")
	for _, p := range all {
		tell(w, "%s\t%s\t%s\t%s\n", p.Name, p.stateText(), agoOrDash(&p.Since, now), strings.Join(strings.Fields(p.Message), " "))
	}
	_ = w.Flush() // nobody reads the error
}
