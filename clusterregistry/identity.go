package clusterregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	k.state.UID = cmp.Or(k.identityOfLink(), k.cluster.known.Status.UID)
	if used := health.DuplicateOf(k.cluster.known, k.state.UID, k.cluster.othersWith(k.state.UID)); used != "" {
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
