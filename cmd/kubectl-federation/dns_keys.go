package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miekg/dns"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys"
	"federation/dnsprovider"
)

// keysCommand shows the keys that sign the zone: "dns ds" and "dns keys".
type keysCommand struct {
	target
	genericiooptions.IOStreams
	output output
}

func newDNSDS(streams genericiooptions.IOStreams) *cobra.Command {
	o := &keysCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "ds [ZONE]",
		Short: "Print the DS records that the parent zone must have",
		Long: `Print the DS records that the parent zone needs for the federation's signed zone, as lines of a zone
file. Give them to whom the zone is delegated by, in the place of those that it has.`,
		Example: `  kubectl federation dns ds`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, printDS) },
	}
	o.addFlags(c)
	o.output.addFlag(c)
	return c
}

func newDNSKeys(streams genericiooptions.IOStreams) *cobra.Command {
	o := &keysCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "keys [ZONE]",
		Short: "Show the keys that sign the zone, and what a roll waits for",
		Long: `Show the keys that sign the federation's zone (DNSSEC), and what comes next.

Published keys are in the zone so that caches learn them, the Active one signs, and Retired ones stay until no
cache and no parent zone needs them.`,
		Example: `  kubectl federation dns keys

  # Put a new key in the place of the one that signs
  kubectl -n ` + v1beta1.FederationNamespace + ` annotate secret ` + v1beta1.DNSKeysSecret + ` ` + v1beta1.DNSSECKeyRolloverAnnotation + `=now

  # Say what the parent zone has, where the federation cannot ask it
  kubectl -n ` + v1beta1.FederationNamespace + ` annotate secret ` + v1beta1.DNSKeysSecret + ` ` + v1beta1.DNSSECParentDSAnnotation + `=KEY`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, printKeys) },
	}
	o.addFlags(c)
	o.output.addFlag(c)
	return c
}

func (o *keysCommand) run(ctx context.Context, args []string, show func(io.Writer, dnskeys.View) error) error {
	if err := o.output.check(); err != nil {
		return err
	}
	f, err := o.connect()
	if err != nil {
		return err
	}
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if info == nil {
		return errors.New("the federation does not say which zone it has: its controllers have not run yet")
	}
	zone, err := dnsprovider.CanonicalName(info.DNSZone)
	if err != nil {
		return err
	}
	if asked := dns.CanonicalName(strings.Join(args, "")); len(args) > 0 && asked != zone {
		return fmt.Errorf("zone %q: the federation's zone is %q", args[0], zone)
	}
	secret, err := f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf(`the keys of the federation, which "federation serve --dnssec" makes: %w`, err)
	}
	ring, err := dnskeys.Read(zone, secret)
	if err != nil {
		return err
	}
	view := dnskeys.ViewOf(ring)
	if o.output != "table" {
		return o.output.print(o.Out, view)
	}
	return show(o.Out, view)
}

func printDS(out io.Writer, v dnskeys.View) error {
	none := true
	for _, k := range v.Keys {
		if k.Submit {
			none = false
			tell(out, "%s\n", k.DS)
		}
	}
	if none {
		return errors.New("not yet: " + cmp.Or(v.Waits, "the federation has not looked at its new key; ask again in a minute"))
	}
	return nil
}

func printKeys(out io.Writer, v dnskeys.View) error {
	w := newTable(out, "KEY\tALGORITHM\tPHASE\tSINCE\tDS WANTED")
	for _, k := range v.Keys {
		tell(w, "%d\t%s\t%s\t%s\t%t\n", k.Tag, k.Algorithm, k.Phase, k.Since.Format(time.RFC3339), k.Submit)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	tell(out, "\nParent zone: %s\n", v.ParentZone)
	if v.Waits != "" {
		tell(out, "Next:       %s\n", v.Waits)
	}
	return nil
}
