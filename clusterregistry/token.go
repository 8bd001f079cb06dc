package clusterregistry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

// Between two tries to renew a token that is due, and the most between two checks whether it is.
const renewRetry = time.Minute

// keepToken renews the service account's token in the cluster's Secret in time, until ctx is done.
// Other credentials are left alone.
func (k *keeper) keepToken(ctx context.Context, l *link) {
	for {
		wait := renewRetry
		if t, ok := credential.ParseToken(l.token.Load().(string)); ok {
			if due := time.Until(t.RenewAt()); due <= 0 && k.registry.reports() {
				k.renew(ctx, l, t)
			} else if due > 0 {
				wait = min(wait, due)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (k *keeper) renew(ctx context.Context, l *link, t credential.Token) {
	ctx, cancel := context.WithTimeout(ctx, renewRetry/2)
	defer cancel()
	token, err := l.requestToken(ctx, t)
	if err == nil {
		err = k.storeToken(ctx, l, token)
	}
	if err != nil {
		if ctx.Err() != context.Canceled {
			klog.FromContext(ctx).Error(err, "Cannot renew the cluster's token", "expires", t.Expires)
		}
		return
	}
	klog.FromContext(ctx).V(1).Info("Renewed the cluster's token")
}

// requestToken asks the member for a token of the very account that asks.
func (l *link) requestToken(ctx context.Context, t credential.Token) (string, error) {
	client, err := kubernetes.NewForConfigAndClient(l.config, l.client)
	if err != nil {
		return "", err
	}
	seconds := int64(credential.TokenLifetime.Seconds())
	resp, err := client.CoreV1().ServiceAccounts(t.Namespace).CreateToken(ctx, t.ServiceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return resp.Status.Token, nil
}

// storeToken writes the token where the old one was: the Secret first, so that what is used is stored.
func (k *keeper) storeToken(ctx context.Context, l *link, token string) error {
	obj, exists, err := k.registry.clusters.GetIndexer().GetByKey(k.name)
	if err != nil || !exists {
		return errors.New("the Cluster is gone")
	}
	name, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "secretRef", "name")
	stored, exists, err := k.registry.secrets.GetIndexer().GetByKey(v1beta1.FederationNamespace + "/" + name)
	if err != nil || !exists || len(stored.(*corev1.Secret).Data[credential.KubeconfigKey]) > 0 {
		return errors.New("the Secret is gone or holds a kubeconfig, which is not renewed")
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{credential.TokenKey: []byte(token)}})
	if err != nil {
		return err
	}
	if _, err := k.registry.core.CoreV1().Secrets(v1beta1.FederationNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	l.token.Store(token)
	return nil
}
