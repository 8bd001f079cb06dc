package views

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/cluster"
)

// ConnectREST serves exec, attach and portforward of a pod. It forwards the request to the member as its caller's, as
// clusters/NAME/proxy does: the member decides what the caller may do there.
type ConnectREST struct {
	pods        *REST
	seats       *seats
	subresource string
	options     func() runtime.Object
	authorizer  authorizer.Authorizer
}

var _ rest.Connecter = &ConnectREST{}

// New returns the options, the object of the subresource.
func (r *ConnectREST) New() runtime.Object { return r.options() }

// Destroy does nothing: there is nothing to free.
func (*ConnectREST) Destroy() {}

// ConnectMethods returns the forwarded methods; web sockets begin with GET.
func (*ConnectREST) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// NewConnectOptions returns options that the member, not we, reads.
func (r *ConnectREST) NewConnectOptions() (options runtime.Object, subpath bool, key string) {
	return r.options(), false, ""
}

// Connect returns the handler that passes one request on.
func (r *ConnectREST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	if err := r.mayCreate(ctx); err != nil {
		return nil, err
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	pod, l, err := r.pods.locate(ctx, name)
	if err != nil {
		return nil, err
	}
	if !r.mayImpersonate(ctx, pod.cluster, caller) {
		return nil, errors.NewForbidden(core.Resource("pods/"+r.subresource), name, fmt.Errorf("cluster %s did not join with --allow-proxy: nobody comes there through the federation", pod.cluster.Name))
	}
	free, err := r.seats.acquire(clientOf(ctx))
	if err != nil {
		return nil, err
	}
	config := restclient.CopyConfig(l.config)
	config.BearerToken = l.token.Load().(string)
	handler, err := cluster.NewHandler(l.cluster, config, caller, pod.subresourcePath(r.subresource), responder)
	if err != nil {
		free()
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer free() // a member may be silent for longer than the caller stays
		handler.ServeHTTP(w, req)
	}), nil
}

// mayCreate checks whether the caller may create the subresource: a GET, with which web sockets begin, does no less.
func (r *ConnectREST) mayCreate(ctx context.Context) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return errors.NewInternalError(err)
	}
	decision, why, err := r.authorizer.Authorize(ctx, creating{attributes})
	if err != nil {
		return errors.NewInternalError(err)
	}
	if decision != authorizer.DecisionAllow {
		return errors.NewForbidden(core.Resource("pods/"+r.subresource), attributes.GetName(), fmt.Errorf("to create it is not allowed: %s", why))
	}
	return nil
}

// mayImpersonate reports whether the federation's account may act for the caller in a member, which says so itself. If it does not say, the request
// shows it: by an error that names the account, not what to do.
func (r *ConnectREST) mayImpersonate(ctx context.Context, c *v1beta1.Cluster, caller user.Info) bool {
	asks := &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: caller.GetName()}
	if namespace, name, err := serviceaccount.SplitUsername(caller.GetName()); err == nil {
		asks.Resource, asks.Namespace, asks.Name = "serviceaccounts", namespace, name
	}
	answer, err := askMember(ctx, r.pods.members, c, func(ctx context.Context, l *link) (*authorizationv1.SelfSubjectAccessReview, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asks}}
		return review, l.core.Post().MaxRetries(0).AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(review).Do(ctx).Into(review)
	})
	return err != nil || answer.Status.Allowed || answer.Status.EvaluationError != ""
}

type creating struct{ authorizer.Attributes }

// GetVerb implements authorizer.Attributes.
func (creating) GetVerb() string { return "create" }
