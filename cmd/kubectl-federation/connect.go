package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// sides are the flags by which a command finds the federation and the cluster.
type sides struct {
	kubeconfig        string
	federationContext string
	context           string
	memberKubeconfig  string
	memberContext     string
	timeout           time.Duration
}

func (s *sides) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG, else ~/.kube/config")
	f.StringVar(&s.federationContext, "federation-context", "", "context of the federation in the kubeconfig; without it the current context")
	f.StringVar(&s.context, "context", "", "context of the cluster in the same kubeconfig")
	f.StringVar(&s.memberKubeconfig, "member-kubeconfig", "", "kubeconfig file of the cluster")
	f.StringVar(&s.memberContext, "member-context", "", "context of the cluster in --member-kubeconfig; without it its current context")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the end result; 0 does not wait for it")
	c.MarkFlagsMutuallyExclusive("context", "member-kubeconfig")
}

func (s *sides) check() error {
	if s.memberContext != "" && s.memberKubeconfig == "" {
		return errors.New("--member-context needs --member-kubeconfig; a context of your own kubeconfig is --context")
	}
	if s.timeout < 0 {
		return fmt.Errorf("--timeout %v: must not be negative", s.timeout)
	}
	return nil
}

// callTimeout bounds one request; these clients never watch.
const callTimeout = 15 * time.Second

func load(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = callTimeout
	return config, nil
}

func (s *sides) federation() (*rest.Config, kubernetes.Interface, dynamic.Interface, error) {
	config, err := load(s.kubeconfig, s.federationContext)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the federation (--kubeconfig, --federation-context): %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	return config, core, dyn, err
}

// member returns nil where no flag names the cluster.
func (s *sides) member() (*rest.Config, error) {
	switch {
	case s.memberKubeconfig != "":
		config, err := load(s.memberKubeconfig, s.memberContext)
		if err != nil {
			return nil, fmt.Errorf("--member-kubeconfig %q: %w", s.memberKubeconfig, err)
		}
		return config, nil
	case s.context != "":
		config, err := load(s.kubeconfig, s.context)
		if err != nil {
			return nil, fmt.Errorf("--context %q: %w", s.context, err)
		}
		return config, nil
	default:
		return nil, nil
	}
}

// memberFlags are the flags that name the cluster, as kubectl takes them.
func (s *sides) memberFlags() string {
	var words []string
	for _, f := range [][2]string{{"--kubeconfig", s.memberKubeconfig}, {"--context", s.context + s.memberContext}} {
		if f[1] != "" {
			words = append(words, f[0]+" "+f[1])
		}
	}
	if len(words) == 0 {
		return "--context CONTEXT-OF-THE-CLUSTER"
	}
	return strings.Join(words, " ")
}
