package join

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/tunnel"
)

const (
	// DefaultAgentTokenTTL is how long a bootstrap token of an agent is good for.
	DefaultAgentTokenTTL = time.Hour
	// MaxAgentTokenTTL is the most.
	MaxAgentTokenTTL = 7 * 24 * time.Hour
)

// CreateAgentToken makes a bootstrap token at the federation, by which the agent of a cluster gets its certificate, once.
func CreateAgentToken(ctx context.Context, federation kubernetes.Interface, cluster string, ttl time.Duration) (token string, err error) {
	if ttl <= 0 || ttl > MaxAgentTokenTTL {
		return "", fmt.Errorf("lifetime %s of the token: must be above 0 and at most %s", ttl, MaxAgentTokenTTL)
	}
	if token, err = bootstraputil.GenerateBootstrapToken(); err != nil {
		return "", err
	}
	parts := bootstraputil.BootstrapTokenRegexp.FindStringSubmatch(token)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1beta1.BootstrapSecretName(parts[1]), Labels: map[string]string{ClusterLabel: cluster}},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey: parts[1], bootstrapapi.BootstrapTokenSecretKey: parts[2],
			bootstrapapi.BootstrapTokenExpirationKey:       time.Now().Add(ttl).UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
			bootstrapapi.BootstrapTokenExtraGroupsKey:      v1beta1.BootstrapGroups + "," + v1beta1.BootstrapGroup(cluster),
			bootstrapapi.BootstrapTokenDescriptionKey:      "first certificate of the agent of cluster " + cluster,
		},
	}
	_, err = federation.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return token, err
}

// AgentConfigMap is the ConfigMap in the member by which its administrators pause the agent.
const AgentConfigMap = "federation-agent"

// ensureAgentSwitch makes AgentConfigMap where it is not there, so that a patch pauses an agent on a host, too. What is set in it stays.
func (r *Request) ensureAgentSwitch(ctx context.Context, meta metav1.ObjectMeta) error {
	meta.Name = AgentConfigMap
	pauses := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"paused": "false"}}
	return ensure(ctx, r.Member.CoreV1().ConfigMaps(namespace), pauses, func(old *corev1.ConfigMap) error {
		if old.Labels[FederationLabel] == meta.Labels[FederationLabel] { // not that of the chart
			old.OwnerReferences = meta.OwnerReferences
		}
		return nil
	})
}

// DeleteAgentTokens deletes the bootstrap tokens of a cluster's agent that have not been used. Whoever may not read Secrets there made none.
func DeleteAgentTokens(ctx context.Context, federation kubernetes.Interface, cluster string) error {
	secrets := federation.CoreV1().Secrets(metav1.NamespaceSystem)
	tokens, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: ClusterLabel + "=" + cluster})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bootstrap tokens of the cluster's agent: %w", err)
	}
	for i := range tokens.Items {
		if tokens.Items[i].Type != corev1.SecretTypeBootstrapToken {
			continue
		}
		if err := secrets.Delete(ctx, tokens.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("bootstrap token %s: %w", tokens.Items[i].Name, err)
		}
	}
	return nil
}

// AgentKubeconfig returns a kubeconfig file of the federation that config reaches, for an agent with a token. server is the URL at which the agent reaches
// it; "": that of config.
func AgentKubeconfig(config *rest.Config, server, token string) ([]byte, error) {
	server = cmp.Or(server, config.Host)
	if err := tunnel.CheckServer(server); err != nil {
		return nil, fmt.Errorf("server %w", err)
	}
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["federation"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	k.AuthInfos["bootstrap"] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts["federation"] = &clientcmdapi.Context{Cluster: "federation", AuthInfo: "bootstrap"}
	k.CurrentContext = "federation"
	return clientcmd.Write(*k)
}

// AgentBootstrap makes a bootstrap token for the agent of a cluster, and returns a kubeconfig file with it and its ID.
func AgentBootstrap(ctx context.Context, config *rest.Config, core kubernetes.Interface, cluster, server string, ttl time.Duration) (kubeconfig []byte, id string, err error) {
	if _, err := AgentKubeconfig(config, server, ""); err != nil { // before there is a token that nobody uses
		return nil, "", err
	}
	token, err := CreateAgentToken(ctx, core, cluster, ttl)
	if err != nil {
		return nil, "", err
	}
	id, _, _ = strings.Cut(token, ".")
	kubeconfig, err = AgentKubeconfig(config, server, token)
	return kubeconfig, id, err
}
