package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys"
	"federation/dnsprovider"
	"federation/dnsprovider/dnssec"
)

// keyOptions are the flags about the keys that sign the zone.
type keyOptions struct {
	dnssecKeys []string
	// federationKeys: sign with the federation's keys.
	federationKeys bool
}

func (o *keyOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.federationKeys, "dnssec", false, "sign the zone with the keys of the federation, which \"federation serve --dnssec\" makes (Secret federation-system/dns-signing-keys)")
	o.addDNSSEC(fs)
}

func (o *keyOptions) addDNSSEC(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.dnssecKeys, "dnssec-key-file", nil, "private key `FILE` that signs the zone, as \"federation-dns keygen\" makes it; further ones are published beside it, for a rollover")
}

// signer reads the keys that sign a zone, nil for none.
func (o *keyOptions) signer(zone string) (*dnssec.Signer, error) {
	var keys []dnssec.Key
	for _, file := range o.dnssecKeys {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--dnssec-key-file: %w", err)
		}
		key, err := dnssec.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("--dnssec-key-file %s: %w", file, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return &dnssec.Signer{Zone: zone, Key: keys[0], More: keys[1:]}, nil
}

func keygenCommand() *cobra.Command {
	names := map[string]dnssec.Algorithm{"ecdsa-p256": dnssec.ECDSAP256, "ed25519": dnssec.Ed25519}
	var algorithm string
	c := &cobra.Command{
		Use:   "keygen",
		Short: "Make a key that signs a zone (DNSSEC), and print it",
		Long: `Make a private key that signs a zone, and print it as PEM (PKCS #8).

All servers of a zone need the same key: keep it in one Secret, and mount that.`,
		Example: `  (umask 077; federation-dns keygen > example.com.key)
  federation-dns ds --zone example.com --dnssec-key-file example.com.key`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, ok := names[algorithm]
			if !ok {
				return fmt.Errorf("--algorithm %q: must be ecdsa-p256 or ed25519", algorithm)
			}
			key, err := dnssec.NewKey(a)
			if err != nil {
				return err
			}
			text, err := key.Marshal()
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVar(&algorithm, "algorithm", "ecdsa-p256", "ecdsa-p256, which every resolver can check, or ed25519, which is faster")
	_ = c.RegisterFlagCompletionFunc("algorithm", cobra.FixedCompletions([]string{"ecdsa-p256", "ed25519"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return c
}

func dsCommand() *cobra.Command {
	o, zone, kubeconfig := keyOptions{}, "", ""
	c := &cobra.Command{
		Use:   "ds --zone NAME {--kubeconfig FILE | --dnssec-key-file FILE}",
		Short: "Print the DS records that the parent zone needs for a signed zone",
		Long: `Print the DS records of a zone's keys, as lines of a zone file.

Give them to whom the zone is delegated by. From then on resolvers refuse what is not signed with these keys:
do it when the zone is signed already, and take them out before the keys go.`,
		Example: `  federation-dns ds --zone example.com --kubeconfig admin.kubeconfig
  federation-dns ds --zone example.com --dnssec-key-file example.com.key`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.printDS(c.Context(), c.OutOrStdout(), zone, kubeconfig)
		},

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVar(&zone, "zone", "", "`NAME` of the zone (required)")
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the federation that has the keys")
	o.addDNSSEC(c.Flags())
	return c
}

func (o *keyOptions) printDS(ctx context.Context, out io.Writer, name, kubeconfig string) error {
	zone, err := dnsprovider.CanonicalName(name)
	if err != nil {
		return fmt.Errorf("--zone: %w", err)
	}
	signer, err := o.signer(zone)
	if kubeconfig != "" && err == nil {
		signer, err = federationSigner(ctx, zone, kubeconfig)
	}
	if err != nil {
		return err
	}
	if signer == nil {
		return errors.New("--kubeconfig or --dnssec-key-file is required: they have the key that signs the zone")
	}
	keys := signer.Submitted()
	if len(keys) == 0 {
		return errors.New("no DS record may be published yet: resolvers may have answers from before the zone was signed (kubectl federation dns keys says until when)")
	}
	for _, key := range keys {
		if _, err := fmt.Fprintln(out, key.DS(zone)); err != nil {
			return err
		}
	}
	return nil
}

// federationSigner reads the keys that the federation has.
func federationSigner(ctx context.Context, zone, kubeconfig string) (*dnssec.Signer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
	}
	secret, err := kube.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("the keys of the federation, which \"federation serve --dnssec\" makes: %w", err)
	}
	ring, err := dnskeys.Read(zone, secret)
	return ring.Signer, err
}
