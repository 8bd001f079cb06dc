package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// sides are the flags by which a command finds the federation and the cluster.
type sides struct {
	kubeconfig       string
	context          string
	memberKubeconfig string
	memberContext    string
	timeout          time.Duration
}

func (s *sides) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG, else ~/.kube/config")
	f.StringVar(&s.context, "context", "", "context of the federation in the kubeconfig; without it the current context")
	f.StringVar(&s.memberKubeconfig, "member-kubeconfig", "", "kubeconfig file of the cluster; without it the kubeconfig of the federation")
	f.StringVar(&s.memberContext, "member-context", "", "context of the cluster; without it the current context of --member-kubeconfig")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the end result; 0 does not wait for it")
	_ = c.RegisterFlagCompletionFunc("context", completeContexts) // fails only for a flag that is not there
	_ = c.RegisterFlagCompletionFunc("member-context", memberContexts)
}

func (s *sides) check() error {
	if s.timeout < 0 {
		return fmt.Errorf("--timeout %v: must not be negative", s.timeout)
	}
	return nil
}

// callTimeout bounds one request; these clients never watch.
const callTimeout = 15 * time.Second

func loadConfig(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = callTimeout
	return config, nil
}

// target is the federation that the flags name.
func (s *sides) target() *target { return &target{kubeconfig: s.kubeconfig, context: s.context} }

// member returns nil if no flag names the cluster.
func (s *sides) member() (*rest.Config, error) {
	switch {
	case s.memberKubeconfig != "":
		config, err := loadConfig(s.memberKubeconfig, s.memberContext)
		if err != nil {
			return nil, fmt.Errorf("--member-kubeconfig %q: %w", s.memberKubeconfig, err)
		}
		return config, nil
	case s.memberContext != "":
		config, err := loadConfig(s.kubeconfig, s.memberContext)
		if err != nil {
			return nil, fmt.Errorf("--member-context %q: %w", s.memberContext, err)
		}
		return config, nil
	default:
		return nil, nil
	}
}

// memberFlags returns the flags that name the cluster, as kubectl takes them.
func (s *sides) memberFlags() string {
	var words []string
	for _, f := range [][2]string{{"--kubeconfig", s.memberKubeconfig}, {"--context", s.memberContext}} {
		if f[1] != "" {
			words = append(words, f[0]+" "+f[1])
		}
	}
	if len(words) == 0 {
		return "--context CONTEXT-OF-THE-CLUSTER"
	}
	return strings.Join(words, " ")
}
