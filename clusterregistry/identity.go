package clusterregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
)

// uidPattern is what a UID must look like: it comes from the member, and goes into a status.
var uidPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// identify reads the UID of the cluster's namespace kube-system. One that does not let us, or has none, is not known.
func (l *link) identify(ctx context.Context) error {
	status, body, err := l.get(ctx, l.probe, "/api/v1/namespaces/"+metav1.NamespaceSystem)
	if err != nil {
		return err
	}
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		return fmt.Errorf("%d %s", status, http.StatusText(status))
	}
	var ns metav1.PartialObjectMetadata
	if status == http.StatusOK && json.Unmarshal([]byte(body), &ns) == nil && uidPattern.MatchString(string(ns.UID)) {
		l.uid.Store(string(ns.UID))
	}
	return nil
}

// identity is the UID of the cluster that the link leads to, as far as it is known.
func (l *link) identity() string {
	uid, _ := l.uid.Load().(string)
	return uid
}

// checkIdentity returns what a probe found, once it is known which cluster answered. Before a cluster is connected its identity is read;
// while it is, the inventory does that.
func (k *keeper) checkIdentity(ctx context.Context, found health.Evidence) health.Evidence {
	if found.Answer == health.Healthy && k.member == nil {
		ctx, cancel := context.WithTimeout(ctx, k.registry.options.Timeout)
		defer cancel()
		if err := k.link.identify(ctx); err != nil && ctx.Err() != nil {
			found = health.Evidence{Answer: health.Slow, Detail: noAnswer(k.registry.options.Timeout)}
		} else if err != nil {
			found = health.Evidence{Answer: health.Unhealthy, Detail: "namespace " + metav1.NamespaceSystem + " cannot be read: " + failureCause(err)}
		}
	}
	k.state.UID = cmp.Or(k.identityOfLink(), k.known.Status.UID)
	if used := health.DuplicateOf(k.known, k.state.UID, k.othersWith(k.state.UID)); used != "" {
		return health.DuplicateEvidence(used, k.state.UID)
	}
	return found
}

func (k *keeper) identityOfLink() string {
	if k.link == nil {
		return ""
	}
	return k.link.identity()
}

// byUID is the index of Clusters by status.uid.
const byUID = "uid"

func uidOf(obj any) ([]string, error) {
	if uid, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "status", "uid"); uid != "" {
		return []string{uid}, nil
	}
	return nil, nil
}

// othersWith returns the Clusters of other names whose status has the UID. Each version of one is read once, for that takes long, and is asked once a second.
func (k *keeper) othersWith(uid string) (clusters []*v1beta1.Cluster) {
	found, err := k.registry.clusters.GetIndexer().ByIndex(byUID, uid)
	utilruntime.Must(err) // the index is there
	read := k.others
	k.others = map[*unstructured.Unstructured]*v1beta1.Cluster{}
	for _, obj := range found {
		u := obj.(*unstructured.Unstructured)
		if u.GetName() == k.name {
			continue
		}
		c := read[u]
		if c == nil {
			if c, err = toCluster(u); err != nil {
				continue
			}
		}
		k.others[u] = c
		clusters = append(clusters, c)
	}
	return clusters
}

// reportReplaced tells people that another cluster than before answers by a Cluster's name.
func (k *keeper) reportReplaced(was, is string) {
	k.registry.options.Recorder.Eventf(k.reference(), corev1.EventTypeWarning, v1beta1.EventClusterReplaced,
		"it is another cluster than before, or was installed again: its UID was %s and is %s; objects are created there again", was, is)
}
