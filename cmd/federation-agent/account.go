package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"federation/clusterregistry/credential"
)

const (
	// tokenLifetime is how long a token of the account lasts.
	tokenLifetime = time.Hour
	// tokenRetry is between two tries to get one.
	tokenRetry = 10 * time.Second
)

// accountConfig returns how requests of the federation go to the cluster: as the account of --account, whose tokens the agent asks for and renews until
// ctx is done; without one, as the agent itself.
func (o *options) accountConfig(ctx context.Context, own *rest.Config) (*rest.Config, error) {
	if o.account == "" {
		return own, nil
	}
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(o.account, "/")
	var token atomic.Value
	refused := make(chan struct{})
	renew := func() (time.Duration, error) {
		seconds := int64(tokenLifetime / time.Second)
		t, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
		if err != nil {
			return tokenRetry, fmt.Errorf("--account %q: a token of it: %w", o.account, err)
		}
		token.Store(t.Status.Token)
		return max(tokenRetry, time.Until(t.Status.ExpirationTimestamp.Time)*2/3), nil // by a wrong clock it has expired
	}
	next, err := renew()
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(next):
			case <-refused: // the account was made again
			}
			if next, err = renew(); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot renew the token; will retry")
			}
			select { // not again at once
			case <-ctx.Done():
			case <-time.After(tokenRetry):
			}
		}
	}()
	config := rest.AnonymousClientConfig(own)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return renewing{credential.Wrap(rt, func() string { return token.Load().(string) }), refused}
	})
	return config, nil
}

// renewing has the token renewed that an answer says is not known.
type renewing struct {
	http.RoundTripper
	refused chan<- struct{}
}

// RoundTrip implements http.RoundTripper.
func (r renewing) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := r.RoundTripper.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		select {
		case r.refused <- struct{}{}:
		default: // it is being renewed
		}
	}
	return answer, err
}
