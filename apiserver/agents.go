package apiserver

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"federation/apiserver/apis/federation/v1beta1"
)

// agents lets the agents of clusters read single requests for certificates, by name, as they do to get theirs: lists say what other clusters there are.
type agents struct{ authorizer.Authorizer }

// Authorize refuses agents the requests of others.
func (g agents) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetAPIGroup() == certificatesv1.GroupName && a.GetResource() == "certificatesigningrequests" && a.GetName() == "" &&
		isRead(a) && a.GetUser() != nil && v1beta1.IsAgent(a.GetUser().GetGroups()) {
		return authorizer.DecisionDeny, "the agent of a cluster reads its own requests for certificates, by name", nil
	}
	return g.Authorizer.Authorize(ctx, a)
}
