package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
	"federation/clusterregistry/join/addons"
)

// agent are the flags that say how a cluster connects to the federation, if it does.
type agent struct {
	pull bool
	addons.Agent
	account string // of the federation in the cluster
}

func (a *agent) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.pull, "pull", false, "the federation cannot connect to the cluster: an agent in it connects to the federation, which gets no credential of the cluster")
	f.StringVar(&a.Image, "agent-image", "", "`IMAGE` of federation-agent, to run it in the cluster; without it you start it (kubectl federation token create)")
	f.StringVar(&a.Server, "federation-server", "", "`URL` at which the agent reaches the federation; without it that of your kubeconfig")
}

func (a *agent) check(f *pflag.FlagSet) error {
	for _, name := range []string{"agent-image", "federation-server"} {
		if f.Changed(name) && !a.pull {
			return errors.New("--" + name + " needs --pull")
		}
	}
	if a.pull && f.Changed("address") {
		return errors.New("--address: the federation does not connect to a cluster that joins with --pull")
	}
	return nil
}

// addToJoin has a join be one of a cluster that connects to the federation, and run the agent if there is an image of it.
func (a *agent) addToJoin(ctx context.Context, federation *rest.Config, core kubernetes.Interface, r *join.Request) (err error) {
	if r.Pull = a.pull; !a.pull {
		return nil
	}
	a.account, err = a.AddTo(ctx, federation, core, r)
	return err
}

// commands says how to run the agent of a cluster on a host. Its folder is its own: agents of two clusters must not share one.
func (a *agent) commands(s *sides, cluster string) string {
	token := flagsText("kubeconfig", s.kubeconfig, "context", s.context, "server", a.Server)
	member := flagsText("kubeconfig", cmp.Or(s.memberKubeconfig, s.kubeconfig), "context", s.memberContext)
	return strings.NewReplacer("CLUSTER", cluster, "ACCOUNT", v1beta1.FederationNamespace+"/"+a.account, " TOKENFLAGS", token, " MEMBERFLAGS", member).Replace(
		`cluster CLUSTER joined; now run its agent, where it reaches the API of the cluster and that of the federation:
  kubectl federation token create CLUSTER TOKENFLAGS > CLUSTER-bootstrap.kubeconfig
  kubectl config view --minify --flatten MEMBERFLAGS > CLUSTER.kubeconfig
  federation-agent --cluster CLUSTER --bootstrap-kubeconfig CLUSTER-bootstrap.kubeconfig --kubeconfig CLUSTER.kubeconfig \
    --account ACCOUNT --cert-dir CLUSTER-agent
`)
}

// flagsText returns flags, given as names and values, as they are typed; those without a value are left out.
func flagsText(namesAndValues ...string) string {
	var text strings.Builder
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			text.WriteString(" --" + pair[0] + " " + pair[1])
		}
	}
	return text.String()
}
