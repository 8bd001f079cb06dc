package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/clusterregistry/credential"
)

// RotatableCredential returns the Secret of a cluster whose credential the federation can replace by itself.
func RotatableCredential(ctx context.Context, f *client.Federation, name string) (*corev1.Secret, error) {
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
	secret, err := f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, c.Spec.SecretRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if _, ok := credential.ParseToken(string(secret.Data[credential.TokenKey])); !ok || len(secret.Data[credential.KubeconfigKey]) > 0 {
		return nil, fmt.Errorf("its Secret %s/%s has no token that join made: replace what is in it", secret.Namespace, secret.Name)
	}
	return secret, nil
}

// RotateToken has the federation request another token of a cluster, and waits until it is stored.
func RotateToken(ctx context.Context, f *client.Federation, name string, timeout time.Duration) error {
	c, err := f.Cluster(ctx, name)
	switch {
	case err != nil:
		return err
	case !c.IsReady():
		return fmt.Errorf("it must be ready, and is not (%s): join it again to replace its credential", c.WhyNotReady())
	}
	secrets := f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace)
	secret, err := RotatableCredential(ctx, f, name)
	if err != nil {
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
