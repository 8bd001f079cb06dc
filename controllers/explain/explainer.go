package explain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
)

const (
	// MemberTimeout is how long a member's answer is awaited at most.
	MemberTimeout = 3 * time.Second
	// reviewTimeout bounds a whole review.
	reviewTimeout = 10 * time.Second
)

// Explainer answers PlacementReviews in the apiserver's process. The object, and others that explain it, it reads as the caller; Clusters, policies and the
// copies of the object that the caller may get, as the federation.
type Explainer struct {
	own     atomic.Pointer[access]
	answers answers
}

// access is how the federation reads its own API, and members.
type access struct {
	config       *rest.Config
	own, members *client.Federation
}

// Use gives the explainer its way to the API, once it serves: config may act for any user, and read members by clusters/NAME/inspect. bound
// limits what is read of a member's answer.
func (x *Explainer) Use(config *rest.Config, bound func(http.RoundTripper) http.RoundTripper) error {
	own, err := client.New(config, "")
	if err != nil {
		return err
	}
	bounded := rest.CopyConfig(config)
	bounded.Wrap(bound)
	members, err := client.New(bounded, "")
	if err != nil {
		return err
	}
	x.own.Store(&access{config, own, members})
	return nil
}

// ReviewPlacement fills in the status of a review for a caller. Before Use it is answered ServiceUnavailable.
func (x *Explainer) ReviewPlacement(ctx context.Context, caller rest.ImpersonationConfig, asked *v1beta1.PlacementReview) error {
	a := x.own.Load()
	if a == nil {
		return apierrors.NewServiceUnavailable("the federation is starting: ask again in a moment")
	}
	leave, err := x.answers.enter(caller.UserName)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if err = x.review(ctx, a, caller, asked); errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError(fmt.Sprintf("the placement review takes more than %v: ask again", reviewTimeout), 1)
	}
	return err
}

func (x *Explainer) review(ctx context.Context, a *access, caller rest.ImpersonationConfig, asked *v1beta1.PlacementReview) error {
	config := rest.CopyConfig(a.config)
	config.Impersonate = caller
	user, err := client.New(config, asked.Spec.Namespace)
	if err != nil {
		return err
	}
	s, timeout := asked.Spec, MemberTimeout
	if s.MemberTimeout != nil {
		timeout = min(timeout, s.MemberTimeout.Duration)
	}
	resource := schema.GroupVersionResource{Group: s.Group, Version: s.Version, Resource: s.Resource}
	if why := staysAtFederation(resource, s.Namespace, s.Name); why != "" {
		return apierrors.NewBadRequest(why)
	}
	object, err := user.Dynamic.Resource(resource).Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{}) // who may not get it ends here
	if err != nil {
		return noSuchObject(ctx, user, resource, s.Namespace, s.Name, err)
	}
	if of := object.GetLabels()[v1beta1.RevisionOfLabel]; of != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q stays at the federation: it is a revision of a %s, which is what goes to clusters", s.Resource, s.Name, of))
	}
	key := fmt.Sprintf("%q %s %s %s", caller, resource, object.GetUID(), timeout)
	status, err := x.answers.of(ctx, key, object.GetNamespace(), func(ctx context.Context) (*v1beta1.PlacementReviewStatus, error) {
		seen := sight{user: user, own: a.own, members: client.NewMembers(a.members, timeout)}
		e, err := seen.gather(ctx, resource, object)
		if err != nil {
			return nil, err
		}
		return plan.Explain(e), nil
	})
	if err != nil {
		return err
	}
	asked.Status = *status
	return nil
}
