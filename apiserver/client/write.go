package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"federation/apiserver/apis/federation/v1beta1"
)

// FieldManager is who has changed the fields that a user changes by our tools.
const FieldManager = "kubectl-federation"

// DryRun is what kubectl's flag --dry-run says: that nothing is changed, and who says what would be.
type DryRun string

// Values of DryRun.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// Check returns an error unless it is one of these values.
func (d DryRun) Check() error {
	if !slices.Contains([]DryRun{DryRunNone, DryRunClient, DryRunServer}, d) {
		return fmt.Errorf("--dry-run %q: must be none, client or server", d)
	}
	return nil
}

// Suffix returns kubectl's suffix of messages.
func (d DryRun) Suffix() string {
	return map[DryRun]string{DryRunClient: " (dry run)", DryRunServer: " (server dry run)"}[d]
}

// DrainCluster is ChangeCluster for cordon and drain, by their own subresource: who may drain need not be allowed to change Clusters. Who may change
// them and has no right to that, or whose federation has none, changes the Cluster.
func (f *Federation) DrainCluster(ctx context.Context, name string, dry DryRun, how func(*v1beta1.Cluster)) (after *v1beta1.Cluster, changed bool, err error) {
	after, changed, err = f.ChangeCluster(ctx, name, dry, how, v1beta1.DrainSubresource)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return f.ChangeCluster(ctx, name, dry, how)
	}
	return after, changed, err
}

// ChangeCluster changes a Cluster and writes it, or a subresource of it, if anything changed. It keeps concurrent changes by others.
func (f *Federation) ChangeCluster(ctx context.Context, name string, dry DryRun, how func(*v1beta1.Cluster), subresources ...string) (after *v1beta1.Cluster, changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before, err := f.Cluster(ctx, name)
		if err != nil {
			return err
		}
		after = before.DeepCopy()
		how(after)
		patch, err := clusterPatch(before, after)
		if err != nil {
			return err
		}
		if changed = patch != nil; !changed || dry == DryRunClient {
			return nil
		}
		return Merge(ctx, f.Dynamic.Resource(v1beta1.ClustersResource), name, json.RawMessage(patch), dry, subresources...)
	})
	return after, changed, err
}

// clusterPatch returns a merge patch for exactly this version; nil if nothing changes.
func clusterPatch(before, after *v1beta1.Cluster) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	of := before.DeepCopy()
	of.ResourceVersion = "" // so that the patch has it
	was, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(was, is, was)
}

// Create creates an object of one of our own kinds. A dry run asks the server, which stores nothing.
func Create[T any](ctx context.Context, to dynamic.ResourceInterface, object *T, dry DryRun) (*T, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	o := metav1.CreateOptions{FieldManager: FieldManager}
	if dry == DryRunServer {
		o.DryRun = []string{metav1.DryRunAll}
	}
	made, err := to.Create(ctx, &unstructured.Unstructured{Object: content}, o)
	if err != nil {
		return nil, err
	}
	return typed[T](made)
}

// Merge changes an object by a merge patch. A dry run asks the server, which stores nothing.
func Merge(ctx context.Context, of dynamic.ResourceInterface, name string, patch any, dry DryRun, subresources ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	o := metav1.PatchOptions{FieldManager: FieldManager}
	if dry == DryRunServer {
		o.DryRun = []string{metav1.DryRunAll}
	}
	_, err = of.Patch(ctx, name, types.MergePatchType, body, o, subresources...)
	return err
}

// Review asks the federation what would happen if clusters were lost.
func (f *Federation) Review(ctx context.Context, spec v1beta1.FailoverReviewSpec) (*v1beta1.FailoverReview, error) {
	r := &v1beta1.FailoverReview{TypeMeta: reviewMeta("FailoverReview"), Spec: spec}
	err := f.review(ctx, v1beta1.FailoverReviewsResource.Resource, r)
	r.ManagedFields = nil // means nothing to users
	return r, err
}

// ReviewPlacement asks the federation where an object is, and why.
func (f *Federation) ReviewPlacement(ctx context.Context, spec v1beta1.PlacementReviewSpec) (*v1beta1.PlacementReviewStatus, error) {
	r := &v1beta1.PlacementReview{TypeMeta: reviewMeta("PlacementReview"), Spec: spec}
	return &r.Status, f.review(ctx, v1beta1.PlacementReviewsResource.Resource, r)
}

func reviewMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: kind}
}

// review creates a review, and reads the answer into it.
func (f *Federation) review(ctx context.Context, resource string, r any) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	answer, err := doRaw(ctx, f.REST.Post().AbsPath("/apis", v1beta1.SchemeGroupVersion.String(), resource).SetHeader("Content-Type", "application/json").Body(body))
	var s apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &s) && (s.Status().Details == nil || s.Status().Details.Kind == "") { // not an object that is asked about
		return fmt.Errorf("the federation serves no %s: %w", resource, err)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, r)
}

// Errors returns the errors that a server found in a request, by field, without its text about the object.
func Errors(refused error) string {
	var s apierrors.APIStatus
	if !errors.As(refused, &s) || s.Status().Details == nil || len(s.Status().Details.Causes) == 0 {
		return refused.Error()
	}
	var words []string
	for _, cause := range s.Status().Details.Causes {
		words = append(words, cause.Field+": "+cause.Message)
	}
	return strings.Join(words, "; ")
}
