package views

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

const federationUID = "f-uid"

// fakeMember is a member's API as far as views use it: real TLS and sockets, and JSON but for lists of pods.
type fakeMember struct {
	*httptest.Server
	name string

	mu         sync.Mutex
	token      string
	namespaces map[string]map[string]string // with their labels
	pods       []*corev1.Pod
	nodes      []*corev1.Node
	version    int
	events     []watch.Event // all events; the first has version 2
	changed    chan struct{}
	hang       chan struct{} // if not nil: it answers nothing until this is closed
	answers    func(w http.ResponseWriter, r *http.Request) bool
	asked      []string
}

func newFakeMember(t *testing.T, name string) *fakeMember {
	m := &fakeMember{
		name: name, token: "good", version: 1, changed: make(chan struct{}),
		namespaces: map[string]map[string]string{
			"shop": {v1beta1.ManagedByLabel: federationUID}, "default": {v1beta1.AcceptLabel: federationUID}, "theirs": nil, "kube-system": {v1beta1.ManagedByLabel: federationUID},
		},
	}
	m.Server = httptest.NewTLSServer(m)
	t.Cleanup(func() { m.set(func() { m.wake() }); m.CloseClientConnections(); m.Close() })
	return m
}

func (m *fakeMember) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// requests returns what it was asked.
func (m *fakeMember) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// wake ends what hangs.
func (m *fakeMember) wake() {
	if m.hang != nil {
		close(m.hang)
		m.hang = nil
	}
}

func (m *fakeMember) cluster() *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, UID: types.UID("uid-" + m.name)},
		Spec: v1beta1.ClusterSpec{
			ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: strings.TrimPrefix(m.URL, "https://")}},
			SecretRef:                  &corev1.LocalObjectReference{Name: m.name},
		},
	}
}

// add makes a pod and tells watches.
func (m *fakeMember) add(namespace, name string, change ...func(*corev1.Pod)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(m.name + "/" + name), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	m.version++
	p.ResourceVersion = strconv.Itoa(m.version)
	m.pods = append(m.pods, p)
	slices.SortFunc(m.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	m.tell(watch.Event{Type: watch.Added, Object: p})
}

func (m *fakeMember) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.pods, func(p *corev1.Pod) bool { return p.Name == name })
	p := m.pods[i].DeepCopy()
	m.pods = slices.Delete(m.pods, i, i+1)
	m.version++
	p.ResourceVersion = strconv.Itoa(m.version)
	m.tell(watch.Event{Type: watch.Deleted, Object: p})
}

func (m *fakeMember) tell(e watch.Event) {
	m.events = append(m.events, e)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked = append(m.asked, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
	token, hang, answers := m.token, m.hang, m.answers
	m.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	if answers != nil && answers(w, r) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	switch {
	case r.URL.Query().Get("watch") == "true":
		m.watch(w, r)
	case len(path) == 1 && path[0] == "namespaces":
		list := corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
		for name, labels := range m.namespaces {
			list.Items = append(list.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		}
		say(w, list)
	case len(path) == 2 && path[0] == "namespaces":
		labels, ok := m.namespaces[path[1]]
		if !ok {
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		say(w, corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: path[1], Labels: labels}})
	case path[0] == "nodes":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(m.version)}}
		for _, n := range m.nodes {
			list.Items = append(list.Items, *n)
		}
		say(w, list)
	case len(path) == 4:
		i := slices.IndexFunc(m.pods, func(p *corev1.Pod) bool { return p.Namespace == path[1] && p.Name == path[3] })
		if i < 0 {
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		say(w, m.pods[i])
	default:
		m.list(w, r, path)
	}
}

// list lists pods; its token for the next page is the index of its first.
func (m *fakeMember) list(w http.ResponseWriter, r *http.Request, path []string) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(m.version)}}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	for i, p := range m.pods {
		if i < from || len(path) == 3 && p.Namespace != path[1] || !matches(r, p) {
			continue
		}
		if limit > 0 && len(list.Items) == limit {
			list.Continue = strconv.Itoa(i)
			break
		}
		list.Items = append(list.Items, *p)
		list.Items[len(list.Items)-1].TypeMeta = metav1.TypeMeta{}
	}
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), accept)
	if !ok {
		panic("it accepts " + accept)
	}
	w.Header().Set("Content-Type", accept)
	_ = encoderOf(info).Encode(&list, w)
}

func matches(r *http.Request, p *corev1.Pod) bool {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	return byLabel.Matches(labels.Set(p.Labels)) && byField.Matches(fields.Set{"metadata.name": p.Name, "spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)})
}

// watch is called with mu held.
func (m *fakeMember) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for next := from - 1; ; {
		for ; next < len(m.events); next++ {
			e := m.events[next]
			if matches(r, e.Object.(*corev1.Pod)) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.Type, "object": e.Object})
			}
		}
		w.(http.Flusher).Flush()
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		m.mu.Lock()
		if r.Context().Err() != nil {
			return
		}
	}
}

func say(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)})
}

// secrets are the members' credentials.
type secrets []*fakeMember

func (s secrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	for _, m := range s {
		if m.name == name {
			m.mu.Lock()
			defer m.mu.Unlock()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
			return &corev1.Secret{Data: map[string][]byte{credential.TokenKey: []byte(m.token), credential.CAKey: ca}}, nil
		}
	}
	return nil, fmt.Errorf("no secret %q", name)
}

// viewsOf returns the views of members. The federation has the namespaces shop, default and theirs.
func viewsOf(t *testing.T, owners *Owners, members ...*fakeMember) (*Views, func(...*fakeMember)) {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, name := range []string{"shop", "default", "theirs", "kube-system"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == "kube-system" {
			ns.UID = federationUID
		}
		if err := index.Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	clusters := func() (all []*v1beta1.Cluster) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range members {
			all = append(all, m.cluster())
		}
		return all
	}
	known := secrets(slices.Clone(members))
	use := func(now ...*fakeMember) {
		mu.Lock()
		defer mu.Unlock()
		members = now
	}
	return New(NewMembers(clusters, known, nil), corelisters.NewNamespaceLister(index), owners, nil), use
}
