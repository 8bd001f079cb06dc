package views

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
)

// heard are the warnings that a client gets.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) AddWarning(_, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, text)
}

// accepted is the format in which clients want lists; nil: that of Go.
var accepted format

func in(t *testing.T, namespace string) (context.Context, *heard) {
	h := &heard{}
	ctx := warning.WithWarningRecorder(request.WithNamespace(t.Context(), namespace), h)
	if accepted != nil {
		ctx = context.WithValue(ctx, formatKey{}, accepted)
	}
	return ctx, h
}

func listed(t *testing.T, r *REST, namespace string, o *metainternalversion.ListOptions) (names []string, list metav1.ListInterface, h *heard) {
	t.Helper()
	ctx, h := in(t, namespace)
	obj, err := r.List(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if encoded, ok := obj.(*encodedList); ok {
		if obj, err = encoded.decode(); err != nil {
			t.Fatal(err)
		}
	} else if accepted != nil && r.kind == &pods {
		t.Fatalf("it is %T", obj)
	}
	switch l := obj.(type) {
	case *corev1.PodList:
		for _, p := range l.Items {
			names = append(names, p.Namespace+"/"+p.Name)
		}
		return names, l, h
	case *corev1.NodeList:
		for _, n := range l.Items {
			names = append(names, n.Name)
		}
		return names, l, h
	}
	t.Fatalf("%T", obj)
	return nil, nil, nil
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPodsOfAllMembersAreListedByName(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west, east)
	east.add("shop", "b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "b"} })
	west.add("shop", "a")
	west.add("shop", "b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "b"} })
	west.add("default", "d")
	for _, hidden := range []string{"theirs", "kube-system", "unknown"} {
		west.add(hidden, "x")
	}
	names, _, h := listed(t, v.Pods.REST, "", nil)
	equal(t, names, "default/d.west", "shop/a.west", "shop/b.east", "shop/b.west")
	equal(t, h.all)
	names, _, _ = listed(t, v.Pods.REST, "shop", nil)
	equal(t, names, "shop/a.west", "shop/b.east", "shop/b.west")

	for text, want := range map[string][]string{
		"app=b":                                    {"shop/b.east", "shop/b.west"},
		v1beta1.ClusterLabel + "=east,app=b":       {"shop/b.east"},
		v1beta1.ClusterLabel + "!=east":            {"shop/a.west", "shop/b.west"},
		v1beta1.ClusterLabel + " in (north,south)": nil,
		v1beta1.ClusterLabel + " in (west), app=b": {"shop/b.west"},
		"app notin (b)," + v1beta1.ClusterLabel:    {"shop/a.west"},
		"!" + v1beta1.ClusterLabel:                 nil,
	} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		names, _, _ := listed(t, v.Pods.REST, "shop", &metainternalversion.ListOptions{LabelSelector: selector})
		t.Run(text, func(t *testing.T) { equal(t, names, want...) })
	}
	for text, want := range map[string][]string{
		"metadata.name=b.east":                        {"shop/b.east"},
		"metadata.name=b":                             {"shop/b.east", "shop/b.west"},
		"metadata.name!=b.east":                       {"shop/a.west", "shop/b.west"},
		"spec.nodeName=n1.west,metadata.name!=a.west": {"shop/b.west"},
		"spec.nodeName=n1.north":                      nil,
		"status.phase=Failed":                         nil,
	} {
		selector, err := fields.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		names, _, _ := listed(t, v.Pods.REST, "shop", &metainternalversion.ListOptions{FieldSelector: selector})
		t.Run(text, func(t *testing.T) { equal(t, names, want...) })
	}
}

func TestNamespacesThatAreNotSharedShowNothing(t *testing.T) {
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	for namespace, want := range map[string]string{"theirs": "cluster west: " + errNotOurs.Error(), "kube-system": "kube-system: " + errProtected.Error(), "federation-system": "federation-system: " + errProtected.Error()} {
		west.add(namespace, "x")
		names, _, h := listed(t, v.Pods.REST, namespace, nil)
		equal(t, names)
		equal(t, h.all, want)
		ctx, _ := in(t, namespace)
		if _, err := v.Pods.Get(ctx, "x.west", nil); err == nil || strings.Contains(namespace, "system") != errors.IsNotFound(err) {
			t.Errorf("%s: %v", namespace, err)
		}
	}
}

func TestAPodIsShownAsOfItsClusterAndFederatedObject(t *testing.T) {
	west := newFakeMember(t, "west")
	owners := &Owners{}
	owners.Add(deployments.GroupKind(), store{"web": "federated"})
	owners.Add(replicaSets.GroupKind(), store{})
	v, _ := viewsOf(t, owners, west)
	yes := true
	west.add("shop", "web-5d-x", func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-template-hash": "5d"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d", UID: "inside", Controller: &yes}}
	})
	ctx, _ := in(t, "shop")
	for _, name := range []string{"web-5d-x", "web-5d-x.west"} {
		obj, err := v.Pods.Get(ctx, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := obj.(*corev1.Pod)
		owner := p.OwnerReferences[0]
		if p.Name != "web-5d-x.west" || p.Labels[v1beta1.ClusterLabel] != "west" || p.Spec.NodeName != "n1.west" || len(p.ManagedFields) > 0 {
			t.Errorf("%s: %+v", name, p)
		}
		if owner.Kind != "Deployment" || owner.Name != "web" || owner.UID != "federated" || owner.APIVersion != "apps/v1" {
			t.Errorf("%s: owner %+v", name, owner)
		}
	}
	table, err := v.Pods.ConvertToTable(ctx, &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a.west", Labels: map[string]string{v1beta1.ClusterLabel: "west"}}}}}, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := len(table.ColumnDefinitions) - 1
	if table.ColumnDefinitions[last].Name != "Cluster" || table.Rows[0].Cells[last] != "west" || table.Rows[0].Cells[0] != "a.west" {
		t.Errorf("%+v", table)
	}
}

// store has Deployments with their UIDs.
type store map[string]types.UID

func (s store) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if uid, ok := s[name]; ok {
		return &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}, nil
	}
	return nil, errors.NewNotFound(apps.Resource("deployments"), name)
}

func TestABareNameInTwoClustersIsRefusedWithTheCandidates(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "db-0")
	west.add("shop", "db-0")
	ctx, _ := in(t, "shop")
	_, err := v.Pods.Get(ctx, "db-0", nil)
	if !errors.IsBadRequest(err) || !strings.Contains(err.Error(), "db-0.east, db-0.west") {
		t.Error(err)
	}
	for _, name := range []string{"db-0.east", "db-0.west"} {
		if obj, err := v.Pods.Get(ctx, name, nil); err != nil || obj.(*corev1.Pod).Name != name {
			t.Errorf("%s: %v, %v", name, obj, err)
		}
	}
	for _, name := range []string{"db-1", "db-1.east", "db-0.north"} {
		if _, err := v.Pods.Get(ctx, name, nil); !errors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMemberThatHangsIsAWarningWithinTwoAndAHalfSeconds(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	west.add("shop", "a")
	west.set(func() { west.hang = make(chan struct{}) })
	begin := time.Now()
	names, list, h := listed(t, v.Pods.REST, "", nil)
	if took := time.Since(begin); took > 2500*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	equal(t, names, "shop/a.east")
	equal(t, h.all, "cluster west: no answer within 2s")
	if vector, _ := v.Pods.versions.vector(list.GetResourceVersion()); len(vector) != 1 {
		t.Errorf("the version stands for %v", vector)
	}
	ctx, h := in(t, "shop")
	if obj, err := v.Pods.Get(ctx, "a", nil); err != nil || obj.(*corev1.Pod).Name != "a.east" || len(h.all) != 1 {
		t.Errorf("%v, %v, %q", obj, err, h.all)
	}
	if _, err := v.Pods.Get(ctx, "a.west", nil); !errors.IsServiceUnavailable(err) {
		t.Error(err)
	}
}

func TestATokenThatWasReplacedIsReadAgain(t *testing.T) {
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	west.add("shop", "a")
	for range 2 {
		names, _, h := listed(t, v.Pods.REST, "shop", nil)
		equal(t, names, "shop/a.west")
		equal(t, h.all)
		west.set(func() { west.token += "er" })
	}
}

func TestWhatAHostileMemberSendsIsBounded(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	for name, test := range map[string]struct {
		answer string
		repeat int
		says   string
	}{
		"another namespace":   {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"x","namespace":"secret"}}]}`, 1, "it sends 1 objects that are none"},
		"names that are none": {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"../x","namespace":"shop"}},{"metadata":{"name":"\u001b[2J","namespace":"shop"}}]}`, 1, "it sends 2 objects that are none"},
		"another kind":        {`{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"x","namespace":"shop"}}]}`, 1, ""},
		"no JSON":             {"\x1b[2J<html>", 1, ""},
		"without end":         {strings.Repeat(" ", 1<<20), 4, "one answer is limited to 1 MiB"},
		"a long token":        {`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"` + strings.Repeat("x", 5000) + `"},"items":[]}`, 1, "it continues a list with 5000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			v.Pods.members.maxAnswer = 1 << 20
			west.set(func() {
				west.answers = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/pods") {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					for range test.repeat {
						if _, err := w.Write([]byte(test.answer)); err != nil {
							break
						}
					}
					return true
				}
			})
			names, _, h := listed(t, v.Pods.REST, "shop", nil)
			equal(t, names, "shop/a.east")
			if len(h.all) != 1 || !strings.HasPrefix(h.all[0], "cluster west: ") || !strings.Contains(h.all[0], test.says) || len(h.all[0]) > 300 || strings.Contains(h.all[0], "\x1b") {
				t.Errorf("warnings %q", h.all)
			}
		})
	}
}

func TestPagesHaveEachPodOnce(t *testing.T) {
	var members []*fakeMember
	var want []string
	for c, n := range []int{25, 0, 7, 40} {
		m := newFakeMember(t, fmt.Sprintf("c%d", c))
		for i := range n {
			name := fmt.Sprintf("p%02d", i)
			m.add("shop", name)
			want = append(want, "shop/"+nameAt(name, m.name))
		}
		members = append(members, m)
	}
	v, _ := viewsOf(t, &Owners{}, members...)
	for _, limit := range []int64{1, 3, 10, 500} {
		o, pages, versions := &metainternalversion.ListOptions{Limit: limit}, 0, map[string]bool{}
		var got []string
		for {
			names, list, _ := listed(t, v.Pods.REST, "shop", o)
			if int64(len(names)) > limit {
				t.Errorf("limit %d: a page of %d", limit, len(names))
			}
			got, pages, versions[list.GetResourceVersion()] = append(got, names...), pages+1, true
			if o.Continue = list.GetContinue(); o.Continue == "" {
				break
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		equal(t, got, want...)
		if len(versions) != 1 || limit == 500 && pages != 1 {
			t.Errorf("limit %d: %d pages of versions %v", limit, pages, versions)
		}
	}
	ctx, _ := in(t, "shop")
	for _, token := range []string{"x", "e30", strings.Repeat("a", maxCursor+1)} {
		if _, err := v.Pods.List(ctx, &metainternalversion.ListOptions{Limit: 1, Continue: token}); !errors.IsBadRequest(err) {
			t.Errorf("%.10s: %v", token, err)
		}
	}
}

func TestNodesAreListed(t *testing.T) {
	var members []*fakeMember
	for _, name := range []string{"east", "west"} {
		m := newFakeMember(t, name)
		m.nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}
		members = append(members, m)
	}
	v, _ := viewsOf(t, &Owners{}, members...)
	names, _, _ := listed(t, v.Nodes.REST, "", nil)
	equal(t, names, "n1.east", "n1.west")
}

func TestVersionsGrowAndAreForgotten(t *testing.T) {
	clock := time.Unix(1700000000, 0)
	v := newVersions(func() time.Time { return clock }, 7)
	first, second := v.note(map[string]string{"a": "1"}), v.note(map[string]string{"a": "2"})
	a, _ := strconv.ParseInt(first, 10, 64)
	b, _ := strconv.ParseInt(second, 10, 64)
	if a >= b || a&1023 != 7 || b&1023 != 7 {
		t.Errorf("%s, then %s", first, second)
	}
	if vector, ok := v.vector(first); !ok || vector["a"] != "1" {
		t.Errorf("%v", vector)
	}
	for _, unknown := range []string{"", "0", "x", strconv.FormatInt(a+1, 10)} {
		if _, ok := v.vector(unknown); ok {
			t.Errorf("%q is known", unknown)
		}
	}
	clock = clock.Add(remember + time.Second)
	if _, ok := v.vector(second); ok || v.held != 0 || v.given != nil {
		t.Errorf("after %v there is %v", remember, v.given)
	}
	big := map[string]string{}
	for i := range 1000 {
		big[strconv.Itoa(i)] = "1"
	}
	for range 1000 {
		v.note(big)
	}
	if v.held > maxRemembered+len(big)+1 {
		t.Errorf("%d versions are held", v.held)
	}
}

// TestAllThatIsReadAtOnceIsBounded: lists fail with a warning where more is read of members than may be, and work again when that has ended.
func TestAllThatIsReadAtOnceIsBounded(t *testing.T) {
	east := newFakeMember(t, "east")
	v, _ := viewsOf(t, &Owners{}, east)
	east.add("shop", "a")
	v.Pods.members.budget.most = 1
	names, _, h := listed(t, v.Pods.REST, "shop", nil)
	equal(t, names)
	if len(h.all) != 1 || !strings.Contains(h.all[0], errBusy.Error()) {
		t.Errorf("warnings %q", h.all)
	}
	v.Pods.members.budget.most = maxReading
	names, _, h = listed(t, v.Pods.REST, "shop", nil)
	equal(t, names, "shop/a.east")
	equal(t, h.all)
	if left := v.Pods.members.budget.read.Load(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
}

// A member that says that a list of a moment ago has expired, or pages on without end, is a warning: the others are shown, and the list ends.
func TestAMemberCannotHaveEverybodyListAgain(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	for i := range 4 {
		east.add("shop", fmt.Sprint("e", i))
		west.add("shop", fmt.Sprint("w", i))
	}
	page := func(items string) string {
		return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[` + items + `]}`
	}
	for name, test := range map[string]struct {
		from   int // the request that is answered so: 0 is the first
		code   int
		answer string
		lists  int // that the client makes at most
		says   string
	}{
		"expired, of nothing": {0, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`, 5, "too old"},
		"expired, of a page":  {1, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`, 5, "too old"},
		"pages of nothing":    {0, http.StatusOK, page(""), 5, "after 0 objects"},
		"pages without end":   {0, http.StatusOK, page(`{"metadata":{"name":"x","namespace":"shop"}}` + strings.Repeat(`,{"metadata":{"name":"x","namespace":"shop"}}`, 70_000)), 8, "it continues a list after 210003 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			west.set(func() {
				west.answers = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/pods") {
						return false
					}
					if asked++; asked <= test.from {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(test.code)
					_, _ = w.Write([]byte(test.answer))
					return true
				}
			})
			o, ofEast, warnings := &metainternalversion.ListOptions{Limit: 2}, 0, ""
			for range test.lists {
				names, list, h := listed(t, v.Pods.REST, "shop", o)
				for _, name := range names {
					if strings.HasSuffix(name, ".east") {
						ofEast++
					}
				}
				warnings += strings.Join(h.all, "\n")
				if o.Continue = list.GetContinue(); o.Continue == "" {
					break
				}
			}
			if o.Continue != "" || ofEast != 4 || !strings.Contains(warnings, test.says) {
				t.Errorf("%d pods of east, warnings %q, to be continued: %t", ofEast, warnings, o.Continue != "")
			}
		})
	}
	// A minute later it may be right.
	west.set(func() { west.answers = nil })
	_, list, _ := listed(t, v.Pods.REST, "shop", &metainternalversion.ListOptions{Limit: 2})
	v.Pods.versions.aMinuteLater()
	west.set(func() {
		west.answers = func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, http.StatusGone, metav1.StatusReasonExpired)
			return true
		}
	})
	ctx, _ := in(t, "shop")
	if _, err := v.Pods.List(ctx, &metainternalversion.ListOptions{Limit: 2, Continue: list.GetContinue()}); !errors.IsResourceExpired(err) {
		t.Errorf("%v: want that the list has expired", err)
	}
}

// TestOneMemberDoesNotTakeAllThatIsRead: the share of one member is bounded, too.
func TestOneMemberDoesNotTakeAllThatIsRead(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	west.add("shop", "b")
	listed(t, v.Pods.REST, "shop", nil)
	v.Pods.members.links["west"].reading.most = 1
	names, _, h := listed(t, v.Pods.REST, "shop", nil)
	equal(t, names, "shop/a.east")
	if len(h.all) != 1 || !strings.Contains(h.all[0], "cluster west: "+errBusy.Error()) {
		t.Errorf("warnings %q", h.all)
	}
	for name, l := range v.Pods.members.links {
		if left := l.reading.read.Load(); left != 0 {
			t.Errorf("%s: %d bytes are still counted", name, left)
		}
	}
}

// aMinuteLater has the clock of versions be so much ahead that members may have let them expire.
func (v *versions) aMinuteLater() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = func() time.Time { return time.Now().Add(keptFor) }
}
