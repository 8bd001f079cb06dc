package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// readOnly says, for what is shown of members and can only be read here, what to do instead.
var readOnly = map[string]map[string]string{
	"pods": {
		"create": "pods are made in the clusters: create a workload that makes them, such as a Deployment or a Job",
		"":       "pods are in the clusters and can only be read here: change their workload (kubectl rollout restart makes them again), or go to the cluster through clusters/CLUSTER/proxy",
	},
	"nodes": {"": "nodes are in the clusters and can only be read here: kubectl federation cordon and drain are for whole clusters; go to one through clusters/CLUSTER/proxy"},
}

// explainReadOnly answers writes of read-only resources with what to do instead. Unauthorized requests do not get here.
func explainReadOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != "" || info.Subresource != "" {
			next.ServeHTTP(w, r)
			return
		}
		texts := readOnly[info.Resource]
		switch info.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
		default:
			texts = nil
		}
		if texts == nil {
			next.ServeHTTP(w, r)
			return
		}
		text := texts[info.Verb]
		if text == "" {
			text = texts[""]
		}
		err := &errors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Message: text,
		}}
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, schema.GroupVersion{Version: info.APIVersion}, w, r)
	})
}
