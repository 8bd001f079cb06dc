package main

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
	"federation/hack/manifests"
)

// agent says how a cluster connects to the federation, if it does.
type agent struct {
	pull          bool
	image, server string
	account       string // of the federation in the cluster
}

func (a *agent) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.pull, "pull", false, "the federation cannot connect to the cluster: an agent in it connects to the federation, which gets no credential of the cluster")
	f.StringVar(&a.image, "agent-image", "", "`IMAGE` of federation-agent, to run it in the cluster; without it you start it (kubectl federation token create)")
	f.StringVar(&a.server, "federation-server", "", "`URL` at which the agent reaches the federation; without it that of your kubeconfig")
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
func (a *agent) addToJoin(ctx context.Context, federation *rest.Config, core kubernetes.Interface, r *join.Request) error {
	if r.Pull = a.pull; !a.pull {
		return nil
	}
	system, err := core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if a.account = join.AccountName(string(system.UID)); a.image == "" {
		return nil
	}
	kubeconfig, tokenID, err := agentBootstrap(ctx, federation, core, r.Name, a.server, join.DefaultAgentTokenTTL)
	if err != nil {
		return err
	}
	bootstrap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "federation-agent-bootstrap"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	})
	if err != nil {
		return err
	}
	r.Also = append(r.Also, &unstructured.Unstructured{Object: bootstrap})
	text := strings.NewReplacer("CLUSTER", r.Name, "ACCOUNT", a.account, "IMAGE", a.image, "TOKEN", tokenID).Replace(withoutComments(manifests.Agent))
	objects, err := decodeObjects([]byte(text))
	r.Also = append(r.Also, objects...)
	return err
}

// withoutComments returns YAML without the lines that are comments, which have words that are replaced elsewhere.
func withoutComments(text []byte) string {
	var out strings.Builder
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("#")) {
			out.Write(line)
		}
	}
	return out.String()
}
