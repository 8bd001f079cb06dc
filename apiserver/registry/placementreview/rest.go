// Package placementreview answers PlacementReviews: where an object is, why, and what it waits for. Nothing is stored. Whoever is authenticated may
// create one, and the function that answers it reads the object as the caller: who may not get that has no answer.
package placementreview

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// Reviewer fills in the status of a review whose spec is valid, by what the caller may read. It must not change the spec.
type Reviewer func(ctx context.Context, caller restclient.ImpersonationConfig, review *v1beta1.PlacementReview) error

// REST serves placementreviews, which can be created only.
type REST struct {
	review Reviewer
}

var (
	_ rest.Creater              = &REST{} //nolint:misspell // that is its name
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns the endpoint. With a nil reviewer every review is rejected with status 501.
func NewREST(review Reviewer) *REST { return &REST{review} }

// New returns an empty review.
func (*REST) New() runtime.Object { return &v1beta1.PlacementReview{} }

// Destroy does nothing: nothing is stored.
func (*REST) Destroy() {}

// NamespaceScoped returns false.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "placementreview" }

// Create answers a review.
func (r *REST) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := obj.(*v1beta1.PlacementReview)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("%T is not a PlacementReview", obj))
	}
	if errs := validation.ValidatePlacementReview(review); len(errs) > 0 {
		return nil, errors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("PlacementReview").GroupKind(), review.Name, errs)
	}
	if admit != nil {
		if err := admit(ctx, review.DeepCopy()); err != nil {
			return nil, err
		}
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	if r.review == nil {
		return nil, &errors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReason("NotImplemented"),
			Message: "this apiserver answers no placement reviews: the federation's controllers do not run in its process"}}
	}
	review.Status = v1beta1.PlacementReviewStatus{}
	as := restclient.ImpersonationConfig{UserName: caller.GetName(), UID: caller.GetUID(), Groups: caller.GetGroups(), Extra: caller.GetExtra()}
	if err := r.review(ctx, as, review); err != nil {
		if errors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return nil, err
		}
		return nil, errors.NewInternalError(err)
	}
	return review, nil
}
