package cluster

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"federation/apiserver/apis/federation/v1beta1"
)

// oneCluster is the store of Clusters, with one.
type oneCluster struct{ *v1beta1.Cluster }

func (o oneCluster) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != o.Name {
		return nil, errors.NewNotFound(v1beta1.ClustersResource.GroupResource(), name)
	}
	return o.Cluster, nil
}

// parkedAs notes for which Cluster a connection was taken.
type parkedAs struct{ cluster types.UID }

func (p *parkedAs) Park(_ http.ResponseWriter, _ *http.Request, cluster types.UID) {
	p.cluster = cluster
}

func (*parkedAs) Dial(context.Context, types.UID) (net.Conn, error) { return nil, net.ErrClosed }

// Only the agent of a Cluster may connect for it, by a certificate for this very Cluster, and only where it is to have one.
func TestConnect(t *testing.T) {
	for name, tc := range map[string]struct {
		user, uid, cluster string
		connection         v1beta1.ClusterConnection
		code               int32 // 0: it may
	}{
		"the agent":                 {"system:federation:cluster-agent:east", "u", "east", v1beta1.ConnectionPull, 0},
		"the agent of another":      {"system:federation:cluster-agent:west", "u", "east", v1beta1.ConnectionPull, http.StatusForbidden},
		"an administrator":          {"federation-admin", "u", "east", v1beta1.ConnectionPull, http.StatusForbidden},
		"of an earlier Cluster":     {"system:federation:cluster-agent:east", "was", "east", v1beta1.ConnectionPull, http.StatusForbidden},
		"without a UID":             {"system:federation:cluster-agent:east", "", "east", v1beta1.ConnectionPull, http.StatusForbidden},
		"of a Cluster that is none": {"system:federation:cluster-agent:north", "u", "north", v1beta1.ConnectionPull, http.StatusNotFound},
		"where we connect":          {"system:federation:cluster-agent:east", "u", "east", v1beta1.ConnectionPush, http.StatusForbidden},
	} {
		c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u"}, Spec: v1beta1.ClusterSpec{Connection: tc.connection}}
		parked := &parkedAs{}
		r := &ConnectREST{clusters: oneCluster{c}, tunnel: parked}
		handler, err := r.Connect(request.WithUser(t.Context(), &user.DefaultInfo{Name: tc.user, UID: tc.uid}), tc.cluster, nil, nil)
		if tc.code == 0 && err == nil {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
		}
		status, _ := err.(errors.APIStatus)
		switch {
		case tc.code == 0 && (err != nil || parked.cluster != "u"):
			t.Errorf("%s: %v, parked as %q", name, err, parked.cluster)
		case tc.code != 0 && (status == nil || status.Status().Code != tc.code):
			t.Errorf("%s: %v, want code %d", name, err, tc.code)
		}
	}
}
