package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

// Tunnel has the connections of agents of clusters, by the UID of the Cluster.
type Tunnel interface {
	// Park takes the connection over which a request of an agent comes.
	Park(w http.ResponseWriter, r *http.Request, cluster types.UID)
	// Dial returns a connection to the API of a cluster through its agent. Where none is connected, the error comes at once.
	Dial(ctx context.Context, cluster types.UID) (net.Conn, error)
}

// ConnectREST serves clusters/NAME/connect, where the agent of a cluster whose connection is Pull connects. Whoever else has the right to
// create it is refused.
type ConnectREST struct {
	clusters rest.Getter
	tunnel   Tunnel
}

var _ rest.Connecter = &ConnectREST{}

// New returns the object of the subresource.
func (*ConnectREST) New() runtime.Object { return &v1beta1.Cluster{} }

// Destroy does nothing: there is nothing to free.
func (*ConnectREST) Destroy() {}

// ConnectMethods returns the HTTP method.
func (*ConnectREST) ConnectMethods() []string { return []string{http.MethodPost} }

// NewConnectOptions returns that there are none.
func (*ConnectREST) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// Connect returns the handler that takes the connection over.
func (r *ConnectREST) Connect(ctx context.Context, name string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	refused := func(why error) error {
		return errors.NewForbidden(v1beta1.ClustersResource.GroupResource(), name, why)
	}
	if caller.GetName() != v1beta1.AgentUserName(name) {
		return nil, refused(fmt.Errorf("user %q is not the agent of this cluster, which is %q", caller.GetName(), v1beta1.AgentUserName(name)))
	}
	object, err := r.clusters.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c := object.(*v1beta1.Cluster)
	switch {
	case caller.GetUID() != string(c.UID):
		return nil, refused(fmt.Errorf("the agent's certificate is for another Cluster of that name: its UID is %q, and must be %q", caller.GetUID(), c.UID))
	case !c.IsPull():
		return nil, refused(fmt.Errorf("spec.connection is %q: must be %s for an agent", c.Spec.Connection, v1beta1.ConnectionPull))
	case r.tunnel == nil:
		return nil, errors.NewServiceUnavailable("this process of the federation has no controllers, and takes no agents")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.tunnel.Park(w, q, c.UID) }), nil
}

// AgentConfig returns how a cluster is reached whose agent connects to the federation.
func AgentConfig(tunnel Tunnel, c *v1beta1.Cluster) (*restclient.Config, error) {
	if tunnel == nil {
		return nil, fmt.Errorf("spec.connection is %s, and no agents connect to this process of the federation: it has no controllers", v1beta1.ConnectionPull)
	}
	return credential.ThroughAgent(c.UID, tunnel.Dial), nil
}
