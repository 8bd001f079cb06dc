package main

import (
	"io"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

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
	w := newTable(out, "DNS PROVIDER\tSTATUS\tSINCE\tMESSAGE")
	for _, p := range all {
		tell(w, "%s\t%s\t%s\t%s\n", p.Name, providerState(p), agoOrDash(&p.Since, now), strings.Join(strings.Fields(p.Message), " "))
	}
	w.end()
}
