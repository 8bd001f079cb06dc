package admission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/federated"
)

var (
	_ initializer.WantsDynamicClient         = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
	_ initializer.WantsAuthorizer            = &Plugin{}
)

// SetDynamicClient gives the plugin a client with the server's own rights.
func (p *Plugin) SetDynamicClient(client dynamic.Interface) { p.objects = client }

// SetExternalKubeClientSet gives the plugin a client with the server's own rights.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.namespaces, p.scalers, p.requests = client.CoreV1().Namespaces(), client.AutoscalingV2(), client.CertificatesV1()
}

// SetAuthorizer gives the plugin the authorizer that decides who may restore decisions.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization reports whether the plugin has what it needs.
func (p *Plugin) ValidateInitialization() error {
	if p.objects == nil || p.namespaces == nil {
		return errors.New(PluginName + " has no client")
	}
	return nil
}

// markCustom adds v1beta1.OrphanMarkFinalizer to an object of a custom kind whose copies stay, before it is deleted:
// the storage of custom kinds, unlike that of the others, cannot do both in one write. If the delete is rejected
// afterwards, the next delete removes the mark.
func (p *Plugin) markCustom(ctx context.Context, a admission.Attributes) error {
	object, ok := a.GetOldObject().(*unstructured.Unstructured)
	options, _ := a.GetOperationOptions().(*metav1.DeleteOptions)
	if !ok || a.GetSubresource() != "" || a.IsDryRun() || !wantsMark(object) {
		return nil
	}
	stay := federated.CopiesStay(ctx, p.namespaces, object, options, p.OrphanByDefault)
	if stay == marked(object) {
		return nil
	}
	client := p.objects.Resource(a.GetResource()).Namespace(a.GetNamespace())
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil || !wantsMark(now) || stay == marked(now) {
			return err
		}
		patch, err := markPatch(now, stay)
		if err == nil {
			_, err = client.Patch(ctx, now.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		}
		return err
	})
}

// wantsMark reports whether an object has copies and is not yet being deleted.
func wantsMark(object metav1.Object) bool {
	return object.GetDeletionTimestamp() == nil && slices.Contains(object.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer)
}

func marked(object metav1.Object) bool {
	return slices.Contains(object.GetFinalizers(), v1beta1.OrphanMarkFinalizer)
}

func markPatch(object metav1.Object, mark bool) ([]byte, error) {
	finalizers := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == v1beta1.OrphanMarkFinalizer })
	if mark {
		finalizers = append(finalizers, v1beta1.OrphanMarkFinalizer)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": finalizers,
	}})
}
