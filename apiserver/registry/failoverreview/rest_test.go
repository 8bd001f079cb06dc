package failoverreview

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestWithoutAReviewerReviewsAreNotImplemented(t *testing.T) {
	_, err := NewREST(nil).Create(t.Context(), &v1beta1.FailoverReview{Spec: v1beta1.FailoverReviewSpec{Clusters: []string{"a"}}}, nil, nil)
	if status, ok := err.(errors.APIStatus); !ok || status.Status().Code != http.StatusNotImplemented {
		t.Errorf("got %v, want code 501", err)
	}
}
