package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/apiserver/client"
)

// target are the flags by which a command finds the federation and nothing else.
type target struct {
	kubeconfig, context, namespace, as string
	asGroups                           []string
}

func (t *target) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG, else ~/.kube/config")
	f.StringVar(&t.context, "context", "", "context of the federation in the kubeconfig; without it the current context")
	f.StringVar(&t.as, "as", "", "user to impersonate at the federation")
	f.StringArrayVar(&t.asGroups, "as-group", nil, "group to impersonate at the federation; may be given several times")
	_ = c.RegisterFlagCompletionFunc("context", completeContexts) // fails only for a flag that is not there
}

// config returns how to reach the federation, and the namespace.
func (t *target) config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: t.context, AuthInfo: clientcmdapi.AuthInfo{Impersonate: t.as, ImpersonateGroups: t.asGroups},
	})
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("the federation (--kubeconfig, --context): %w", err)
	}
	if t.namespace != "" {
		return config, t.namespace, nil
	}
	namespace, _, err = loader.Namespace()
	return config, namespace, err
}

// connect makes the clients. No request is sent.
func (t *target) connect() (*client.Federation, error) {
	config, namespace, err := t.config()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return client.New(config, namespace)
}
