package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/join"
)

type rotateCommand struct {
	target
	genericiooptions.IOStreams
	all     bool
	timeout time.Duration
	// memberKubeconfig and memberContext are an administrator's, who has the account itself replaced.
	memberKubeconfig, memberContext string
}

func newRotate(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rotateCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "rotate (CLUSTER... | --all)",
		Short: "Replace the federation's credential for clusters now",
		Long: `Replace the federation's credential for clusters now, as it does by itself in time, by default twice a day.

The process that leads asks each cluster for another token, and stores it. Half a minute later, when all processes have it, the one
before is void, and so is any other that the account has. A cluster must be ready for this. You need the right to read and patch
Secrets in the namespace federation-system.

Whoever has a copy of the credential and uses it all the time could obtain a token of the new one, as the federation does. With
your own credential for the cluster, an administrator's, the account itself is replaced, which ends every token of it for sure. For
half a minute the cluster is not ready then: what runs there stays, its addresses leave DNS.`,
		Example: `  kubectl federation rotate east-a

  # After somebody has seen a backup, or the Secrets of federation-system
  kubectl federation rotate --all

  # Somebody has used a copy
  kubectl federation rotate east-a --member-context east`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == o.all {
				return errors.New("give the NAME of at least one cluster, or --all")
			}
			if o.memberKubeconfig+o.memberContext != "" && len(args) != 1 {
				return fmt.Errorf("--member-kubeconfig and --member-context are for one cluster: give one NAME, not %q", args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f, err := o.connect()
			if err != nil {
				return err
			}
			if o.memberKubeconfig+o.memberContext != "" {
				return o.replaceAccount(c.Context(), f, args[0])
			}
			return o.run(c.Context(), f, args)
		},
	}
	c.ValidArgsFunction = o.completeWith(clusterNames)
	o.addFlags(c)
	c.Flags().BoolVar(&o.all, "all", false, "all clusters")
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the new credential of each cluster")
	c.Flags().StringVar(&o.memberKubeconfig, "member-kubeconfig", "", "kubeconfig `FILE` of an administrator of the cluster: the account itself is replaced")
	c.Flags().StringVar(&o.memberContext, "member-context", "", "`CONTEXT` of an administrator of the cluster; without it the current context of --member-kubeconfig")
	_ = c.RegisterFlagCompletionFunc("member-context", memberContexts) // fails only for a flag that is not there
	return c
}

// run continues with the other clusters if one fails.
func (o *rotateCommand) run(ctx context.Context, f *client.Federation, names []string) error {
	if o.all {
		all, err := f.Clusters(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			names = append(names, c.Name)
		}
	}
	var errs []error
	for _, name := range names {
		if err := rotateToken(ctx, f, name, o.timeout); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", name, err))
			continue
		}
		tell(o.Out, "cluster/%s has a new credential; the one before is void within a minute\n", name)
	}
	return errors.Join(errs...)
}

// replaceAccount ends all that anybody has of the account, with an administrator's credential.
func (o *rotateCommand) replaceAccount(ctx context.Context, f *client.Federation, name string) error {
	secret, err := credentialOf(ctx, f, name)
	if err != nil {
		return err
	}
	if err := checkRotatable(secret); err != nil {
		return err
	}
	config, err := (&sides{kubeconfig: o.kubeconfig, memberKubeconfig: o.memberKubeconfig, memberContext: o.memberContext}).member()
	if err != nil {
		return err
	}
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	r := join.Request{Name: name, Federation: f.Kube, Member: member, Say: stepPrinter(o.IOStreams)}
	if err := join.ReplaceAccount(ctx, r, secret.Name, join.Forgotten); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	tell(o.Out, "cluster/%s has a new account and credential; every one of before is void\n", name)
	return nil
}

// credentialOf returns the Secret of a cluster.
func credentialOf(ctx context.Context, f *client.Federation, name string) (*corev1.Secret, error) {
	c, err := f.Cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	if c.IsPull() {
		return nil, errors.New("its agent connects to the federation, which has no credential of it to rotate")
	}
	if c.Spec.SecretRef == nil {
		return nil, errors.New("it names no Secret")
	}
	return f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, c.Spec.SecretRef.Name, metav1.GetOptions{})
}

// rotateToken requests another token, and waits until it is stored.
func rotateToken(ctx context.Context, f *client.Federation, name string, timeout time.Duration) error {
	c, err := f.Cluster(ctx, name)
	switch {
	case err != nil:
		return err
	case !c.IsReady():
		return fmt.Errorf("it must be ready, and is not (%s): join it again to replace its credential", c.WhyNotReady())
	}
	secrets := f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace)
	secret, err := credentialOf(ctx, f, name)
	if err != nil {
		return err
	}
	if err := checkRotatable(secret); err != nil {
		return err
	}
	id := rand.String(10)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{credential.RotateAnnotation: id}}})
	if err != nil {
		return err
	}
	if _, err := secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: client.FieldManager}); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		secret, err = secrets.Get(ctx, secret.Name, metav1.GetOptions{})
		return err == nil && secret.Annotations[credential.RotatedAnnotation] == id, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("not replaced within %s; the federation goes on trying, its log says why it could not", timeout)
	}
	if t, _ := credential.ParseToken(string(secret.Data[credential.TokenKey])); err == nil && t.Secret == "" {
		return fmt.Errorf("it has a new token, but tokens of before stay good until they end: join it again, so that its account may bind them")
	}
	return err
}

// checkRotatable returns an error for a credential that the federation itself cannot replace.
func checkRotatable(secret *corev1.Secret) error {
	if _, ok := credential.ParseToken(string(secret.Data[credential.TokenKey])); !ok || len(secret.Data[credential.KubeconfigKey]) > 0 {
		return fmt.Errorf("its Secret %s/%s has no token that join made: replace what is in it", secret.Namespace, secret.Name)
	}
	return nil
}
