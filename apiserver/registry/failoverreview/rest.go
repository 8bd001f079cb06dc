// Package failoverreview answers FailoverReviews: what would happen if clusters were lost. Nothing is stored. A
// function that is passed in makes the answer: the controllers' own decisions.
package failoverreview

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// Reviewer fills in the status of a review whose spec is valid. It must not change the spec.
type Reviewer func(ctx context.Context, review *v1beta1.FailoverReview) error

// REST serves failoverreviews, which can be created only.
type REST struct {
	review Reviewer
}

var (
	_ rest.Creater              = &REST{} //nolint:misspell // that is its name
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns the endpoint. With a nil reviewer, which a program that embeds the apiserver may pass (federation
// serve and federation apiserver do not), every review is rejected with status 501.
func NewREST(review Reviewer) *REST { return &REST{review} }

// New returns an empty review.
func (*REST) New() runtime.Object { return &v1beta1.FailoverReview{} }

// Destroy does nothing: nothing is stored.
func (*REST) Destroy() {}

// NamespaceScoped returns false.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "failoverreview" }

// Create answers a review.
func (r *REST) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := obj.(*v1beta1.FailoverReview)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("%T is not a FailoverReview", obj))
	}
	if errs := validation.ValidateFailoverReview(review); len(errs) > 0 {
		return nil, errors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("FailoverReview").GroupKind(), review.Name, errs)
	}
	if admit != nil {
		if err := admit(ctx, review.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if r.review == nil {
		return nil, notImplemented()
	}
	review.Status = v1beta1.FailoverReviewStatus{}
	if err := r.review(ctx, review); err != nil {
		if errors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return nil, err
		}
		return nil, errors.NewInternalError(err)
	}
	return review, nil
}

func notImplemented() error {
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReason("NotImplemented"),
		Message: "this apiserver answers no failover reviews: the federation's controllers do not run in its process",
	}}
}
