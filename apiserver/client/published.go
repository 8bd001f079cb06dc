package client

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Published reads one of the ConfigMaps in which the federation's processes say what others need to know; nil if it does not exist.
func (f *Federation) Published(ctx context.Context, name string) (map[string]string, error) {
	m, err := f.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, IgnoreNotFound(err)
	}
	return m.Data, nil
}

// publishedToAll is Published for what is left out where the user may not read it.
func (f *Federation) publishedToAll(ctx context.Context, name string) (map[string]string, error) {
	data, err := f.Published(ctx, name)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return data, err
}

// Info reads the federation's configuration; nil if it does not publish it.
func (f *Federation) Info(ctx context.Context) (*v1beta1.Info, error) {
	data, err := f.Published(ctx, v1beta1.InfoConfigMap)
	if data == nil || err != nil {
		return nil, err
	}
	i, err := v1beta1.ParseInfo(data)
	return &i, err
}

// DNSProviders reads the states of the DNS providers, by name. None if they are not published, or the user may not read
// them.
func (f *Federation) DNSProviders(ctx context.Context) ([]v1beta1.DNSProvider, error) {
	data, err := f.publishedToAll(ctx, v1beta1.DNSProvidersConfigMap)
	if data == nil || err != nil {
		return nil, err
	}
	return v1beta1.ReadDNSProviders(data)
}

// Components reads the failed parts, by host and name. None if they are not published, or the user may not read them.
func (f *Federation) Components(ctx context.Context) ([]v1beta1.FailedComponent, error) {
	data, err := f.publishedToAll(ctx, v1beta1.ComponentsConfigMap)
	if err != nil {
		return nil, err
	}
	return v1beta1.ReadComponents(data)
}
