package views

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install" // what the question to the member is encoded by
	"k8s.io/kubernetes/pkg/apis/core"
)

// TestExecNamesTheFlagThatItTakes: a member says itself whether the federation may act for others there. One that does not say is tried.
func TestExecNamesTheFlagThatItTakes(t *testing.T) {
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	v.Exec.authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	west.add("shop", "a")
	for name, c := range map[string]struct {
		user    string
		asked   string
		allowed bool
		code    int
		refused bool
	}{
		"joined with the flag":  {user: "alice", asked: "impersonate users /alice", allowed: true},
		"joined without":        {user: "alice", asked: "impersonate users /alice", refused: true},
		"a ServiceAccount":      {user: "system:serviceaccount:shop:ci", asked: "impersonate serviceaccounts shop/ci", refused: true},
		"one that does not say": {user: "alice", asked: "impersonate users /alice", code: http.StatusNotFound},
		"one that fails to say": {user: "alice", asked: "impersonate users /alice", code: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			west.set(func() {
				west.answers = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
						return false
					}
					if got := askedOf(t, r); got != c.asked {
						t.Errorf("it is asked for %q, want %q", got, c.asked)
					}
					if c.code > 0 {
						status(w, c.code, metav1.StatusReasonUnknown)
						return true
					}
					say(w, authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}, Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.allowed}})
					return true
				}
			})
			ctx, _ := in(t, "shop")
			ctx = request.WithUser(request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "shop", Name: "a.west"}), &user.DefaultInfo{Name: c.user})
			_, err := v.Exec.Connect(ctx, "a.west", &core.PodExecOptions{}, nil)
			if c.refused {
				if !errors.IsForbidden(err) || !strings.Contains(err.Error(), "cluster west did not join with --allow-proxy") {
					t.Error(err)
				}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// askedOf returns what a member is asked to review.
func askedOf(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	if _, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(body, nil, review); err != nil || review.Spec.ResourceAttributes == nil {
		t.Error(err)
		return ""
	}
	asks := review.Spec.ResourceAttributes
	return fmt.Sprintf("%s %s %s/%s", asks.Verb, asks.Resource, asks.Namespace, asks.Name)
}
