package views

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/warning"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/registry/cluster"
	"federation/clusterregistry/credential"
	"federation/controllers/supervisor"
)

const (
	// atOnce is the maximum of members asked at once for one request.
	atOnce = 32
	// credentialsFor is how long a read credential is used. If a member rejects it, it is read again at once.
	credentialsFor = 10 * time.Second
	// maxWarnings is how many members are named in warnings.
	maxWarnings = 10
)

// SecretGetter reads Secrets of the federation's namespace.
type SecretGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
}

// Members are the clusters to ask.
type Members struct {
	clusters func() []*v1beta1.Cluster
	secrets  SecretGetter
	tunnel   cluster.Tunnel // nil: no agents connect here
	// maxAnswer is the maximum size of a response in bytes.
	maxAnswer int64
	budget    budget

	mu    sync.Mutex
	links map[string]*link // by cluster
}

// NewMembers returns the members that clusters returns, reached with credentials from secrets, or by tunnel, which may be nil. A nil clusters has none.
func NewMembers(clusters func() []*v1beta1.Cluster, secrets SecretGetter, tunnel cluster.Tunnel) *Members {
	if clusters == nil {
		clusters = func() []*v1beta1.Cluster { return nil }
	}
	return &Members{clusters: clusters, secrets: secrets, tunnel: tunnel, maxAnswer: maxAnswer, budget: budget{most: maxReading}, links: map[string]*link{}}
}

// all returns the Clusters, and drops the links of those that are gone.
func (m *Members) all() []*v1beta1.Cluster {
	clusters := m.clusters()
	uids := make(map[string]types.UID, len(clusters))
	for _, c := range clusters {
		uids[c.Name] = c.UID
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, l := range m.links {
		if uids[name] != l.uid {
			l.close()
			delete(m.links, name)
		}
	}
	return clusters
}

// isOffline reports whether a cluster is known to be unreachable, so that nobody need wait for it.
func isOffline(c *v1beta1.Cluster) bool {
	condition := c.Condition(v1beta1.ClusterOffline)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

var errOffline = errors.New("it is offline")

// link returns how a cluster is reached.
func (m *Members) link(ctx context.Context, c *v1beta1.Cluster) (*link, error) {
	if isOffline(c) {
		return nil, errOffline
	}
	m.mu.Lock()
	l := m.links[c.Name]
	m.mu.Unlock()
	if l != nil && l.uid == c.UID && time.Since(time.Unix(0, l.readAt.Load())) < credentialsFor {
		return l, nil
	}
	if c.IsPull() {
		config, err := cluster.AgentConfig(m.tunnel, c)
		if err != nil {
			return nil, err
		}
		return m.keep(c, config, "")
	}
	if c.Spec.SecretRef == nil {
		return nil, errors.New("spec.secretRef is not set: join the cluster again")
	}
	secret, err := m.secrets.Get(ctx, c.Spec.SecretRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	own, err := credential.LocalAddresses()
	if err != nil {
		return nil, err
	}
	config, token, err := credential.Config(c, secret, own)
	if err != nil {
		return nil, err
	}
	return m.keep(c, config, token)
}

// keep takes in a credential that was read. Existing connections stay where only its token differs.
func (m *Members) keep(c *v1beta1.Cluster, config *restclient.Config, token string) (*link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fingerprint := credential.Fingerprint(config)
	old := m.links[c.Name]
	if old != nil && old.fingerprint == fingerprint && old.uid == c.UID {
		old.token.Store(token)
		old.readAt.Store(time.Now().UnixNano())
		return old, nil
	}
	l, err := newLink(c.Name, config, token)
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.close()
	}
	l.uid, l.fingerprint = c.UID, fingerprint
	l.readAt.Store(time.Now().UnixNano())
	m.links[c.Name] = l
	return l, nil
}

// answer is the response of one member.
type answer[T any] struct {
	cluster string
	value   T
	err     error
}

// askMember asks one member, and repeats that with a new credential if it rejects the known one.
func askMember[T any](ctx context.Context, m *Members, c *v1beta1.Cluster, what func(context.Context, *link) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	var none T
	l, err := m.link(ctx, c)
	if err != nil {
		return none, err
	}
	held := &holds{}
	defer held.release() // what it read has been decoded
	value, err := what(m.allowHeld(ctx, held), l)
	if !apierrors.IsUnauthorized(err) {
		return value, err
	}
	l.readAt.Store(0) // so that it is read again
	if l, err = m.link(ctx, c); err != nil {
		return none, err
	}
	return what(m.allowHeld(ctx, held), l)
}

// askAll asks clusters concurrently, and returns their answers in the order of the clusters.
func askAll[T any](ctx context.Context, m *Members, clusters []*v1beta1.Cluster, what func(context.Context, *link) (T, error)) []answer[T] {
	answers := make([]answer[T], len(clusters))
	turns := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, c := range clusters {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			answers[i].cluster = c.Name
			answers[i].err = supervisor.Protect(ctx, "views", func() (err error) { answers[i].value, err = askMember(ctx, m, c, what); return err })
		})
	}
	group.Wait()
	return answers
}

// warnClient warns the client which clusters failed, and why.
func warnClient[T any](ctx context.Context, answers []answer[T]) {
	failed := 0
	for _, a := range answers {
		if a.err == nil {
			continue
		}
		if failed++; failed <= maxWarnings {
			warning.AddWarning(ctx, "", fmt.Sprintf("cluster %s: %s", a.cluster, shortReason(a.err)))
		}
	}
	if failed > maxWarnings {
		warning.AddWarning(ctx, "", fmt.Sprintf("and %s more", phrase.Count(int64(failed-maxWarnings), "cluster")))
	}
}

// shortReason shortens a member's error to one line.
func shortReason(err error) string {
	switch {
	case errors.Is(err, errSilent):
		return errSilent.Error()
	case errors.Is(err, errBusy):
		return errBusy.Error()
	case apierrors.IsNotFound(err):
		return "it does not serve that: for metrics it needs a metrics server"
	case apierrors.IsForbidden(err):
		return v1beta1.Printable(err.Error()) + " (join the cluster again to give the federation that right)"
	}
	return v1beta1.Printable(err.Error())
}
