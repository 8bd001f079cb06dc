package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

// Request says which cluster joins or leaves which federation.
type Request struct {
	// Name of the Cluster, a DNS label.
	Name string
	// Federation and FederationDynamic reach the federation's API.
	Federation        kubernetes.Interface
	FederationDynamic dynamic.Interface
	// Member reaches the cluster: with an administrator's rights to join it. Unjoin works with the
	// federation's own rights too, and with nil it leaves the member alone.
	Member kubernetes.Interface
	// MemberAs reaches the cluster as another user, with the rights of Member: so the fences are tried before the account has rights. Only for Join.
	MemberAs func(rest.ImpersonationConfig) (kubernetes.Interface, error)
	// Pull: an agent in the cluster connects to the federation, which gets neither the address of the cluster nor a credential. Only for Join.
	Pull bool
	// Server is the URL of the member's API, as the federation reaches it. Only for Join.
	Server string
	// CA is the PEM of the member's certificate authority; empty: those that the system trusts. Only for Join.
	CA []byte
	// AllowProxy also gives the right to impersonate, which the Cluster's subresource proxy needs.
	AllowProxy bool
	// AllowBlackhole also gives the right to the Lease by which drills have node agents drop what comes from outside. Also has to have that Lease.
	AllowBlackhole bool
	// MultiClusterServices defines ServiceExports and ServiceImports in the cluster, and gives the rights to import and export Services, or takes
	// them away. Nil: as an earlier join said.
	MultiClusterServices *bool
	// PodLogs also gives the right to read the logs of pods.
	PodLogs bool
	// CustomKinds are custom kinds that the federation may spread to the cluster, each as RESOURCE.GROUP. Those
	// of an earlier join are kept.
	CustomKinds []string
	// ProtectedNamespaces are those that the federation's account may not touch; nil: DefaultProtectedNamespaces. AcceptedNamespaces
	// are there already, and the federation may put objects into them; nil: DefaultAcceptedNamespaces. Only for Join.
	ProtectedNamespaces, AcceptedNamespaces []string
	// PodSecurityLevel is that of the Pod Security Standards that the federation's pods are held to, one of PodSecurityLevels; "": Baseline.
	PodSecurityLevel string
	// Topology, LoadBalancerCIDRs and PodCIDRs pin what the cluster may say of itself. Nil: those of an earlier join are kept. Only for Join.
	Topology          *v1beta1.ClusterTopology
	LoadBalancerCIDRs []string
	PodCIDRs          []string
	// Network is the name of the network that the cluster's pods are in; "": that of an earlier join is kept. Only for Join.
	Network string
	// TokenLifetime is what is asked for of the token, and the most that the account may ask for later. 0: what the federation says of
	// itself. Only for Join.
	TokenLifetime time.Duration
	// MemberDynamic reaches the cluster, as Member does. Without it the cluster is not told who it is, by ClusterProperties. Only for Join.
	MemberDynamic dynamic.Interface
	// Also are objects that are installed in the member by MemberDynamic, and go when it leaves. Only for Join.
	Also []*unstructured.Unstructured
	// Say, if set, is told of each step, for people.
	Say func(format string, args ...any)

	federationName string // "" if the federation does not say
	multiCluster   bool   // what comes of MultiClusterServices
	id             string // of this join
}

func (r *Request) say(format string, args ...any) {
	if r.Say != nil {
		r.Say(format, args...)
	}
}

// Join makes the cluster a member, or refreshes what makes it one. It returns the Cluster as it is then, with what the federation had found by an earlier check.
func Join(ctx context.Context, r Request) (*v1beta1.Cluster, error) {
	if problems := validation.IsDNS1123Label(r.Name); len(problems) > 0 {
		return nil, fmt.Errorf("cluster name %q: %s", r.Name, strings.Join(problems, "; "))
	}
	if err := checkCustomKinds(r.CustomKinds); err != nil {
		return nil, err
	}
	if r.ProtectedNamespaces == nil {
		r.ProtectedNamespaces = DefaultProtectedNamespaces
	}
	if r.AcceptedNamespaces == nil {
		r.AcceptedNamespaces = DefaultAcceptedNamespaces
	}
	r.PodSecurityLevel = cmp.Or(r.PodSecurityLevel, Baseline)
	if err := errors.Join(checkPodSecurity(r.PodSecurityLevel), checkNamespaces("protected namespace", r.ProtectedNamespaces, true), checkNamespaces("accepted namespace", r.AcceptedNamespaces, false)); err != nil {
		return nil, err
	}
	address := ""
	if !r.Pull {
		var err error
		if address, err = serverAddress(r.Server); err != nil {
			return nil, err
		}
	}
	uid, err := FederationUID(ctx, r.Federation)
	if err != nil {
		return nil, err
	}
	if err := r.refuseAlias(ctx); err != nil {
		return nil, err
	}
	info, err := federationInfo(ctx, r.Federation)
	if err != nil {
		return nil, err
	}
	r.federationName, r.TokenLifetime = info.Name, cmp.Or(r.TokenLifetime, info.MemberTokenLifetime, credential.TokenLifetime)
	r.id = rand.String(10)
	token, err := r.prepareMember(ctx, uid)
	if err != nil {
		return nil, fmt.Errorf("in the cluster that joins: %w", err)
	}
	c, err := r.register(ctx, uid, address, token)
	if err != nil {
		return nil, fmt.Errorf("at the federation: %w", err)
	}
	return c, nil
}

// federationInfo is what the federation says of itself: what it is called, and how long it wants tokens of members to last.
func federationInfo(ctx context.Context, federation kubernetes.Interface) (v1beta1.Info, error) {
	m, err := federation.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return v1beta1.Info{}, nil // it asks for another token by itself soon
	}
	if err != nil {
		return v1beta1.Info{}, fmt.Errorf("what the federation says of itself: %w", err)
	}
	return v1beta1.ParseInfo(m.Data)
}

// serverAddress is the part of a server's URL that a Cluster has: host and port, https implied.
func serverAddress(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return "", fmt.Errorf("server %q: must be https://HOST[:PORT] with nothing behind it", server)
	}
	return u.Host, nil
}

// FederationUID returns the UID by which members know a federation: that of its namespace kube-system.
func FederationUID(ctx context.Context, federation kubernetes.Interface) (string, error) {
	ns, err := federation.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("at the federation: namespace %s, whose UID names the federation: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}

// register writes Secret and Cluster, and returns the Cluster. The Secret comes first, so that the Cluster can be connected at once; of a cluster that has
// both, the address, so that no check with the new token is at the address of before. The id of the join is on the Cluster last.
func (r *Request) register(ctx context.Context, uid, address, token string) (*v1beta1.Cluster, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := r.Federation.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) { // the federation makes it at its start
		return nil, err
	}
	if r.Pull {
		return r.registerPull(ctx, uid)
	}
	if has, err := r.FederationDynamic.Resource(v1beta1.ClustersResource).Get(ctx, r.Name, metav1.GetOptions{}); err == nil {
		if name, _, _ := unstructured.NestedString(has.Object, "spec", "secretRef", "name"); name == SecretName(r.Name) {
			if _, err := r.putCluster(ctx, address, has.GetAnnotations()[v1beta1.JoinAnnotation]); err != nil {
				return nil, err
			}
		}
	}
	if err := r.putSecret(ctx, token); err != nil {
		return nil, err
	}
	c, err := r.putCluster(ctx, address, r.id)
	if err == nil {
		r.say("Cluster %s has the address %s", r.Name, address)
	}
	return c, err
}

func (r *Request) putSecret(ctx context.Context, token string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName(r.Name), Labels: map[string]string{ClusterLabel: r.Name}, Annotations: map[string]string{v1beta1.JoinAnnotation: r.id}},
		Data:       map[string][]byte{credential.TokenKey: []byte(token), credential.CAKey: r.CA},
	}
	if err := ensure(ctx, r.Federation.CoreV1().Secrets(namespace), secret, func(old *corev1.Secret) error {
		if old.Labels[ClusterLabel] != r.Name {
			return fmt.Errorf("secret %s/%s is there and was not made by join (no label %s=%s)", namespace, old.Name, ClusterLabel, r.Name)
		}
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, v1beta1.JoinAnnotation, r.id)
		old.Data = secret.Data
		return nil
	}); err != nil {
		return err
	}
	r.say("Secret %s/%s holds the credential", namespace, secret.Name)
	return nil
}

// registerPull writes the Cluster, and ends what an earlier join gave the federation: its tokens in the member, and the Secret with one.
func (r *Request) registerPull(ctx context.Context, uid string) (*v1beta1.Cluster, error) {
	c, err := r.putCluster(ctx, "", r.id)
	if err != nil {
		return nil, err
	}
	r.say("Cluster %s waits for its agent", r.Name)
	if err := credential.DeleteBound(ctx, r.Member, namespace, AccountName(uid)); err != nil {
		return nil, fmt.Errorf("tokens of an earlier join, in the cluster: %w", err)
	}
	if err := r.Federation.CoreV1().Secrets(namespace).Delete(ctx, SecretName(r.Name), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return c, nil
}

// putCluster writes what joining knows of the Cluster, and the id of the join by which all of that is there, and returns the Cluster.
func (r *Request) putCluster(ctx context.Context, address, id string) (*v1beta1.Cluster, error) {
	spec := v1beta1.ClusterSpec{Connection: v1beta1.ConnectionPull, Topology: r.Topology, LoadBalancerCIDRs: r.LoadBalancerCIDRs, PodCIDRs: r.PodCIDRs, Network: r.Network}
	if !r.Pull {
		spec.Connection, spec.SecretRef = v1beta1.ConnectionPush, &corev1.LocalObjectReference{Name: SecretName(r.Name)}
		spec.ServerAddressByClientCIDRs = []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}, {ClientCIDR: "::/0", ServerAddress: address}}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Annotations: map[string]string{v1beta1.JoinAnnotation: id}}, Spec: spec,
	})
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	want := &unstructured.Unstructured{Object: content}
	clusters := r.FederationDynamic.Resource(v1beta1.ClustersResource)
	is, err := clusters.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		is, err = updateCluster(ctx, clusters, want)
	}
	if err != nil {
		return nil, err
	}
	c := &v1beta1.Cluster{}
	return c, runtime.DefaultUnstructuredConverter.FromUnstructured(is.Object, c)
}

// updateCluster sets the fields that joining knows, and the id of the join. Taints and weight are the operator's.
func updateCluster(ctx context.Context, clusters dynamic.ResourceInterface, want *unstructured.Unstructured) (is *unstructured.Unstructured, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // the registry writes the status meanwhile
		old, err := clusters.Get(ctx, want.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if old.GetDeletionTimestamp() != nil {
			return errors.New("the Cluster is being deleted; join again when it is gone")
		}
		spec, _, _ := unstructured.NestedMap(old.Object, "spec")
		if spec == nil {
			spec = map[string]any{}
		}
		for _, ofPush := range []string{"serverAddressByClientCIDRs", "secretRef"} {
			delete(spec, ofPush)
		}
		maps.Copy(spec, want.Object["spec"].(map[string]any))
		old.Object["spec"] = spec
		annotations := old.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, want.GetAnnotations())
		old.SetAnnotations(annotations)
		is, err = clusters.Update(ctx, old, metav1.UpdateOptions{})
		return err
	})
	return is, err
}
