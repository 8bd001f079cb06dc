package clusterregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

const (
	// renewRetry is between two tries to renew a token that is due, and the most between two checks whether it is.
	renewRetry = time.Minute
	// rotateRetry is between two tries where somebody has asked for another token.
	rotateRetry = 2 * time.Second
	// handover is how long the token before stays good after a renewal: until then all processes have read the new one from the
	// federation's API. One that cannot does not work for members any more.
	handover = 30 * time.Second
)

// tokenKeeper keeps the token of one connection to a cluster.
type tokenKeeper struct {
	registry *Registry
	name     string // of the Cluster
	link     *link
	cluster  *corev1.ObjectReference
}

// run renews the service account's token in the cluster's Secret in time, or when somebody asks for it, until ctx is done, and voids all
// others. Other credentials are left alone. Of several processes the one that leads does it.
func (k *tokenKeeper) run(ctx context.Context) {
	l := k.link
	present, rotated := "", ""
	var void, tried time.Time    // void: when other tokens than the present one are to be; zero: they are
	var left sets.Set[types.UID] // newer Secrets that were left when others were ended
	for {
		if token := l.token.Load().(string); token != present {
			present, left, void = token, nil, time.Now().Add(k.registry.handover)
		}
		wait := renewRetry
		if t, ok := credential.ParseToken(present); ok && k.registry.reports() {
			rotation := k.rotationAsked()
			asked, due := rotation != "" && rotation != rotated, time.Until(t.RenewAt())
			pause := renewRetry
			if asked {
				pause = rotateRetry
			}
			next := due
			if asked || due <= 0 {
				next = pause - time.Since(tried) // also where each new token is due at once, as the member's clock is wrong
				if next <= 0 {
					tried, next = time.Now(), pause
					if k.renew(ctx, t, rotation) {
						rotated, next = rotation, time.Millisecond // what is cached may not say so yet
					}
				}
			}
			if !void.IsZero() && time.Until(void) <= 0 {
				if newer, ok := k.endOthers(ctx, left); ok {
					left, void = newer, time.Time{}
				}
				if len(left) > 0 {
					void = time.Now().Add(2 * k.registry.handover) // longer than a renewal takes
				}
			}
			for _, next := range []time.Duration{next, time.Until(void)} {
				if next > 0 {
					wait = min(wait, next)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.credentialRead:
		case <-time.After(wait):
		}
	}
}

// renew replaces the token, and reports whether it could.
func (k *tokenKeeper) renew(ctx context.Context, t credential.Token, rotation string) bool {
	ctx, cancel := context.WithTimeout(ctx, renewRetry/2)
	defer cancel()
	err := k.replaceToken(ctx, t, rotation)
	if err != nil {
		if ctx.Err() != context.Canceled {
			klog.FromContext(ctx).Error(err, "Failed to renew the cluster's token", "expires", t.Expires)
		}
		return false
	}
	klog.FromContext(ctx).V(1).Info("Renewed the cluster's token")
	return true
}

// replaceToken asks the member for a token of the very account that asks, and writes it where the old one is: the Secret first, so that what is
// used is stored. Had somebody else written one meanwhile, that is the one.
func (k *tokenKeeper) replaceToken(ctx context.Context, t credential.Token, rotation string) error {
	stored, err := k.storedSecret()
	if err != nil {
		return err
	}
	member, err := kubernetes.NewForConfigAndClient(k.link.config, k.link.client)
	if err != nil {
		return err
	}
	lifetime := cmp.Or(k.registry.options.TokenLifetime, credential.TokenLifetime)
	token, err := credential.RequestToken(ctx, member, t.Namespace, t.ServiceAccount, lifetime)
	if apierrors.IsForbidden(err) && lifetime > credential.TokenLifetime {
		klog.FromContext(ctx).Info("The cluster's fence allows no tokens that last as long: join it again", "lifetime", lifetime, "err", err)
		token, err = credential.RequestToken(ctx, member, t.Namespace, t.ServiceAccount, credential.TokenLifetime)
	}
	if err != nil {
		return err
	}
	metadata := map[string]any{"resourceVersion": stored.ResourceVersion}
	if rotation != "" {
		metadata["annotations"] = map[string]string{credential.RotatedAnnotation: rotation}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "data": map[string][]byte{credential.TokenKey: []byte(token)}})
	if err != nil {
		return err
	}
	if _, err := k.registry.core.CoreV1().Secrets(v1beta1.FederationNamespace).Patch(ctx, stored.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	k.link.token.Store(token)
	return nil
}

// endOthers voids all tokens but the one that the federation has stored, which is read again: another process may have renewed it. It returns
// the newer Secrets that it left, as somebody may be about to use them, and whether all others are gone. Those of before are not left again.
func (k *tokenKeeper) endOthers(ctx context.Context, before sets.Set[types.UID]) (left sets.Set[types.UID], ok bool) {
	ctx, cancel := context.WithTimeout(ctx, renewRetry/2)
	defer cancel()
	err := func() error {
		cached, err := k.storedSecret()
		if err != nil {
			return err
		}
		stored, err := k.registry.core.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, cached.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		member, err := kubernetes.NewForConfigAndClient(k.link.config, k.link.client)
		if err != nil {
			return err
		}
		t, _ := credential.ParseToken(string(stored.Data[credential.TokenKey]))
		var strange []string
		left, strange, err = credential.EndOthers(ctx, member, t, before)
		if len(strange) > 0 {
			k.registry.options.Recorder.Eventf(k.cluster, corev1.EventTypeWarning, v1beta1.EventUnknownCredential, "Secrets %q in its namespace %s could have tokens of the federation's account bound to them that the federation does not use. "+
				"They are deleted. Unless a join or a renewal failed, somebody has a copy of the credential: kubectl federation rotate %s --member-kubeconfig FILE ends it", strange, t.Namespace, k.name)
		}
		return err
	}()
	if err != nil && ctx.Err() != context.Canceled {
		klog.FromContext(ctx).Error(err, "Cannot void the cluster's other tokens")
	}
	return left, err == nil
}

// rotationAsked is what somebody wrote who wants the token replaced now; "" where nobody does.
func (k *tokenKeeper) rotationAsked() string {
	stored, err := k.storedSecret()
	if err != nil || stored.Annotations[credential.RotateAnnotation] == stored.Annotations[credential.RotatedAnnotation] {
		return ""
	}
	return stored.Annotations[credential.RotateAnnotation]
}

// storedSecret is the Secret with the cluster's token, as it is known here.
func (k *tokenKeeper) storedSecret() (*corev1.Secret, error) {
	obj, exists, err := k.registry.clusters.GetIndexer().GetByKey(k.name)
	if err != nil || !exists {
		return nil, errors.New("the Cluster is gone")
	}
	name, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "secretRef", "name")
	stored, exists, err := k.registry.secrets.GetIndexer().GetByKey(v1beta1.FederationNamespace + "/" + name)
	if err != nil || !exists || len(stored.(*corev1.Secret).Data[credential.KubeconfigKey]) > 0 {
		return nil, errors.New("the Secret is gone or holds a kubeconfig, which is not renewed")
	}
	return stored.(*corev1.Secret), nil
}
