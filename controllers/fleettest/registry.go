package fleettest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/capacity/room"
)

// newRegistry returns the registry of a process: what it sends to members goes over their Wires.
func (c *control) newRegistry() *clusterregistry.Registry {
	r, err := clusterregistry.New(clusterregistry.Options{
		Config: configOf(c.client), Client: c.client, Recorder: c.fleet.events, FederationUID: c.fleet.uid, Report: c.reports,
		Transport: func(to clusterregistry.Target) http.RoundTripper { return &road{c, to} },
	})
	if err != nil {
		panic(err) // these options are complete
	}
	return r
}

// watchOver runs the registry until ctx is done.
func (c *control) watchOver(ctx context.Context) error {
	return c.registry.Run(klog.NewContext(ctx, logr.Discard()))
}

// isolate has the wires to isolated members carry nothing of the controllers, as the registry has nothing of its own pass. What ends cuts nobody off.
func (c *control) isolate(ctx context.Context) error {
	apply := func(isolated []string) {
		for name, m := range c.fleet.joined() {
			m.Wire.Isolate(c.slot, slices.Contains(isolated, name))
		}
	}
	defer apply(nil)
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for before := 0; ; {
		isolated, _ := c.registry.Isolated()
		if before+len(isolated) > 0 {
			apply(isolated)
		}
		before = len(isolated)
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// roomEvery is how often the room of a member is written at most.
const roomEvery = 5 * time.Second

// countRoom stands for clusterregistry/capacity: it writes what each member that is connected and well has room for.
func (c *control) countRoom(ctx context.Context) error {
	for ctx.Err() == nil {
		for _, of := range c.registry.Members() {
			m, known := c.fleet.Member(of.Name), c.fleet.clusters.named(of.Name)
			if m == nil || known == nil || !c.reports() || m.Wire.faultSeenBy(c.slot) != Well || m.slow() {
				continue
			}
			now, before := c.fleet.room(m), known.Status.Capacity
			if now != nil && (before == nil || !room.SameCapacity(before, now) && time.Since(before.ObservedAt.Time) >= roomEvery) {
				c.writeRoom(ctx, of.Name, now)
			}
		}
		_ = sleep(ctx, time.Second)
	}
	return nil
}

// writeRoom writes the room of a member. What fails is written a second later.
func (c *control) writeRoom(ctx context.Context, name string, is *v1beta1.ClusterCapacity) {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ClusterStatus{Capacity: is})
	if err != nil {
		panic(err) // each can be written
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": name}, "status": map[string]any{"capacity": status["capacity"]},
	}}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, _ = c.client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, name, u, metav1.ApplyOptions{FieldManager: "federation-capacity", Force: true})
}

// road carries what the registry of a process sends to a member.
type road struct {
	from *control
	to   clusterregistry.Target
}

// CloseIdleConnections has nothing to do: there are none.
func (r *road) CloseIdleConnections() {}

// RoundTrip implements http.RoundTripper.
func (r *road) RoundTrip(q *http.Request) (*http.Response, error) {
	m := r.from.fleet.Member(r.to.Cluster)
	if m == nil {
		return nil, refusesConnections
	}
	fault, err := m.Wire.reach(q.Context(), r.from, r.to)
	if err != nil {
		return nil, err
	}
	code, answer := http.StatusUnauthorized, any("Unauthorized")
	if fault != Expired {
		r.from.fleet.mu.Lock()
		code, answer = m.answer(q, fault)
		r.from.fleet.mu.Unlock()
	}
	body, plain := answer.(string)
	kind := "text/plain"
	if !plain {
		text, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		body, kind = string(text), runtime.ContentTypeJSON
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {kind}}, Request: q, Body: io.NopCloser(bytes.NewBufferString(body))}, nil
}

const (
	nodeLeases  = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"
	agentsLease = "/apis/coordination.k8s.io/v1/namespaces/" + v1beta1.FederationNamespace + "/leases/" + v1beta1.DrillLease
	ofAgents    = "/api/v1/namespaces/" + v1beta1.FederationNamespace
)

// answer is what the member's API answers to a registry, as far as registries ask. It is called with the fleet locked.
func (m *Member) answer(q *http.Request, fault Fault) (code int, answer any) {
	switch q.Method + " " + q.URL.Path {
	case "GET /healthz":
		if fault == Unhealthy {
			return http.StatusInternalServerError, "[-]etcd failed: reason withheld\n"
		}
		return http.StatusOK, "ok"
	case "GET /version":
		return http.StatusOK, &version.Info{GitVersion: "v1.36.3"}
	case "GET /api/v1/namespaces/" + metav1.NamespaceSystem:
		if uid := m.uid(); uid != "" {
			return http.StatusOK, map[string]any{"metadata": map[string]any{"uid": uid}}
		}
	case "GET /api/v1/nodes":
		return http.StatusOK, nodeList(m, strings.Contains(q.Header.Get("Accept"), "PartialObjectMetadataList"))
	case "GET " + ofAgents + "/pods":
		return http.StatusOK, agentPods(m)
	case "GET " + nodeLeases:
		return http.StatusOK, nodeLeasesOf(m)
	case "GET " + agentsLease:
		return http.StatusOK, m.nodes.agentsLease.DeepCopy()
	case "PUT " + agentsLease:
		body, err := io.ReadAll(q.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &m.nodes.agentsLease)
		}
		if err != nil {
			return http.StatusBadRequest, err.Error()
		}
		return http.StatusOK, m.nodes.agentsLease.DeepCopy()
	case "POST " + ofAgents + "/configmaps": // it asks whether fences hold
		err := apierrors.NewForbidden(corev1.Resource("configmaps"), "", fmt.Errorf("ValidatingAdmissionPolicy 'federation' denied request"))
		return http.StatusForbidden, err.Status()
	}
	return http.StatusNotFound, "404 page not found"
}

// nodeNames are those of the nodes, of which there is one where nobody counts them.
func nodeNames(m *Member) (names []string) {
	for i := range max(1, m.Nodes) {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	return names
}

// nodeList has the nodes, or their metadata alone.
func nodeList(m *Member, metadata bool) any {
	nodes := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	partial := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	labels := map[string]string{}
	if m.Zone != "" {
		labels[corev1.LabelTopologyZone] = m.Zone
	}
	if m.Region != "" {
		labels[corev1.LabelTopologyRegion] = m.Region
	}
	for _, name := range nodeNames(m) {
		is := metav1.ObjectMeta{Name: name, Labels: labels}
		partial.Items = append(partial.Items, metav1.PartialObjectMetadata{ObjectMeta: is})
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: is, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	if metadata {
		return &partial
	}
	return &nodes
}

// agentPods are the pods of the node agents: one on each node, able to drop what comes from outside.
func agentPods(m *Member) *corev1.PodList {
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, node := range nodeNames(m) {
		pods.Items = append(pods.Items, corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Args: []string{v1beta1.BlackholeFlag + "=" + v1beta1.DrillLease}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
	}
	return pods
}

// nodeLeasesOf are those by which the nodes say that they live.
func nodeLeasesOf(m *Member) *coordinationv1.LeaseList {
	leases := &coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "LeaseList"}}
	for _, name := range nodeNames(m) {
		leases.Items = append(leases.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: m.nodes.renewed}}})
	}
	return leases
}
