// Package review answers reviews, which are created only: the answer to one is its status, and nothing is stored. FailoverReviews ask what would happen if
// clusters were lost; PlacementReviews where an object is, why, and what it waits for. Functions that are passed in make the answers: the controllers' own
// decisions.
package review

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// FailoverReviewer fills in the status of a review whose spec is valid. It must not change the spec.
type FailoverReviewer func(ctx context.Context, review *v1beta1.FailoverReview) error

// NewFailover returns the endpoint of failoverreviews. With a nil reviewer, which a program that embeds the apiserver may pass (federation
// serve and federation apiserver do not), every review is rejected with status 501; so it is with NewPlacement.
func NewFailover(answer FailoverReviewer) rest.Storage {
	r := &endpoint[*v1beta1.FailoverReview]{about: "Failover", empty: func() *v1beta1.FailoverReview { return &v1beta1.FailoverReview{} }, validate: validation.ValidateFailoverReview}
	if answer != nil {
		r.answer = func(ctx context.Context, review *v1beta1.FailoverReview) error {
			review.Status = v1beta1.FailoverReviewStatus{}
			return answer(ctx, review)
		}
	}
	return r
}

// PlacementReviewer fills in the status of a review whose spec is valid, by what the caller may read. It must not change the spec.
type PlacementReviewer func(ctx context.Context, caller restclient.ImpersonationConfig, review *v1beta1.PlacementReview) error

// NewPlacement returns the endpoint of placementreviews. Whoever is authenticated may create one, and the reviewer reads the object as the caller: who may
// not get that has no answer.
func NewPlacement(answer PlacementReviewer) rest.Storage {
	r := &endpoint[*v1beta1.PlacementReview]{about: "Placement", empty: func() *v1beta1.PlacementReview { return &v1beta1.PlacementReview{} }, validate: validation.ValidatePlacementReview}
	if answer != nil {
		r.answer = func(ctx context.Context, review *v1beta1.PlacementReview) error {
			caller, ok := request.UserFrom(ctx)
			if !ok {
				return errors.NewInternalError(fmt.Errorf("the request has no user"))
			}
			review.Status = v1beta1.PlacementReviewStatus{}
			return answer(ctx, restclient.ImpersonationConfig{UserName: caller.GetName(), UID: caller.GetUID(), Groups: caller.GetGroups(), Extra: caller.GetExtra()}, review)
		}
	}
	return r
}

// endpoint serves the reviews of one kind.
type endpoint[R interface {
	runtime.Object
	metav1.Object
}] struct {
	about    string // the kind without Review
	empty    func() R
	validate func(R) field.ErrorList
	answer   func(context.Context, R) error
}

var (
	_ rest.Creater              = &endpoint[*v1beta1.FailoverReview]{} //nolint:misspell // that is its name
	_ rest.Scoper               = &endpoint[*v1beta1.FailoverReview]{}
	_ rest.SingularNameProvider = &endpoint[*v1beta1.FailoverReview]{}
)

// New returns an empty review.
func (e *endpoint[R]) New() runtime.Object { return e.empty() }

// Destroy does nothing: nothing is stored.
func (*endpoint[R]) Destroy() {}

// NamespaceScoped returns false.
func (*endpoint[R]) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (e *endpoint[R]) GetSingularName() string { return strings.ToLower(e.about) + "review" }

// Create answers a review.
func (e *endpoint[R]) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := obj.(R)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("%T is not a %sReview", obj, e.about))
	}
	if errs := e.validate(review); len(errs) > 0 {
		return nil, errors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind(e.about+"Review").GroupKind(), review.GetName(), errs)
	}
	if admit != nil {
		if err := admit(ctx, review.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if e.answer == nil {
		return nil, &errors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReason("NotImplemented"),
			Message: fmt.Sprintf("this apiserver answers no %s reviews: the federation's controllers do not run in its process", strings.ToLower(e.about)),
		}}
	}
	switch err := e.answer(ctx, review); {
	case err == nil:
		return review, nil
	case errors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return nil, err
	default:
		return nil, errors.NewInternalError(err)
	}
}
