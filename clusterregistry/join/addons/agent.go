package addons

import (
	"bytes"
	"context"
	"strings"

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

// Agent is federation-agent as it is installed in a cluster.
type Agent struct {
	// Image of it; without one it is not installed.
	Image string
	// Server is the URL at which it reaches the federation; without it that of the kubeconfig.
	Server string
}

// AddTo adds its installation, with a bootstrap token that it makes at the federation, to a join; and returns the federation's account in the cluster.
func (a *Agent) AddTo(ctx context.Context, federation *rest.Config, core kubernetes.Interface, r *join.Request) (account string, err error) {
	uid, err := join.FederationUID(ctx, core)
	if err != nil {
		return "", err
	}
	if account = join.AccountName(uid); a.Image == "" {
		return account, nil
	}
	kubeconfig, tokenID, err := join.AgentBootstrap(ctx, federation, core, r.Name, a.Server, join.DefaultAgentTokenTTL)
	if err != nil {
		return "", err
	}
	bootstrap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "federation-agent-bootstrap"},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	})
	if err != nil {
		return "", err
	}
	r.Also = append(r.Also, &unstructured.Unstructured{Object: bootstrap})
	text := strings.NewReplacer("CLUSTER", r.Name, "ACCOUNT", account, "IMAGE", a.Image, "TOKEN", tokenID).Replace(withoutComments(manifests.Agent))
	objects, err := decodeObjects([]byte(text))
	r.Also = append(r.Also, objects...)
	return account, err
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
