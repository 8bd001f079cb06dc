package review

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

func failover() *v1beta1.FailoverReview {
	return &v1beta1.FailoverReview{Spec: v1beta1.FailoverReviewSpec{Clusters: []string{"a"}}}
}

func placement() *v1beta1.PlacementReview {
	return &v1beta1.PlacementReview{Spec: v1beta1.PlacementReviewSpec{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}}
}

// code is that of the answer; 0: a review.
func code(t *testing.T, of rest.Storage, ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc) int32 {
	t.Helper()
	_, err := of.(rest.Creater).Create(ctx, obj, admit, nil) //nolint:misspell // that is its name
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	} else if err != nil {
		t.Errorf("%v says no status", err)
	}
	return 0
}

func TestCreate_Refuses(t *testing.T) {
	answers := func(err error) rest.Storage {
		return NewFailover(func(context.Context, *v1beta1.FailoverReview) error { return err })
	}
	nobody := NewPlacement(func(context.Context, restclient.ImpersonationConfig, *v1beta1.PlacementReview) error { return nil })
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "a")
	refused := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	}
	for name, c := range map[string]struct {
		got, want int32
	}{
		"no failover reviewer":  {code(t, NewFailover(nil), t.Context(), failover(), nil), http.StatusNotImplemented},
		"no placement reviewer": {code(t, NewPlacement(nil), t.Context(), placement(), nil), http.StatusNotImplemented},
		"another kind":          {code(t, answers(nil), t.Context(), placement(), nil), http.StatusBadRequest},
		"an invalid failover":   {code(t, answers(nil), t.Context(), &v1beta1.FailoverReview{}, nil), http.StatusUnprocessableEntity},
		"an invalid placement":  {code(t, nobody, t.Context(), &v1beta1.PlacementReview{}, nil), http.StatusUnprocessableEntity},
		"admission":             {code(t, answers(nil), t.Context(), failover(), refused), http.StatusForbidden},
		"the answer's status":   {code(t, answers(missing), t.Context(), failover(), nil), http.StatusNotFound},
		"the answer's error":    {code(t, answers(errors.New("broken")), t.Context(), failover(), nil), http.StatusInternalServerError},
		"no user":               {code(t, nobody, t.Context(), placement(), nil), http.StatusInternalServerError},
		"nothing":               {code(t, answers(nil), t.Context(), failover(), nil), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: code %d, want %d", name, c.got, c.want)
		}
	}
}

// The answer is made as the caller, from the spec alone: a status that came with it is gone. Admission cannot change what is asked.
func TestCreate_AnswersAsTheCaller(t *testing.T) {
	asked := placement()
	asked.Status.Kind = "made up"
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "ann", UID: "7", Groups: []string{"shop"}, Extra: map[string][]string{"scope": {"read"}}})
	of := NewPlacement(func(_ context.Context, caller restclient.ImpersonationConfig, review *v1beta1.PlacementReview) error {
		if caller.UserName != "ann" || caller.UID != "7" || caller.Groups[0] != "shop" || caller.Extra["scope"][0] != "read" {
			t.Errorf("asked as %+v", caller)
		}
		if review.Status.Kind != "" || review.Spec.Name != "web" {
			t.Errorf("asked %+v", review)
		}
		review.Status.Kind = "Deployment"
		return nil
	})
	changes := func(_ context.Context, obj runtime.Object) error {
		obj.(*v1beta1.PlacementReview).Spec.Name = "another"
		return nil
	}
	got, err := of.(rest.Creater).Create(ctx, asked, changes, nil) //nolint:misspell // that is its name
	if err != nil || got.(*v1beta1.PlacementReview).Status.Kind != "Deployment" {
		t.Errorf("got %+v, %v", got, err)
	}
}
