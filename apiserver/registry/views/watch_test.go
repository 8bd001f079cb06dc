package views

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// next returns the next event of a watch as text.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case e, open := <-w.ResultChan():
		if !open {
			return "end"
		}
		if e.Type == watch.Error {
			return "ERROR " + string(errors.ReasonForError(errors.FromObject(e.Object)))
		}
		o := e.Object.(object)
		return strings.TrimSpace(string(e.Type) + " " + o.GetName() + " " + o.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return ""
}

func began(t *testing.T, r *WatchedREST, namespace string, o metainternalversion.ListOptions) watch.Interface {
	t.Helper()
	ctx, _ := in(t, namespace)
	w, err := r.Watch(ctx, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func expect(t *testing.T, w watch.Interface, events ...string) {
	t.Helper()
	left := map[string]int{}
	for _, e := range events {
		left[e]++
	}
	for range events {
		got := next(t, w)
		if left[got]--; left[got] < 0 {
			t.Fatalf("%q came, want %v", got, events)
		}
	}
}

func TestAWatchGoesOnFromAList(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	west.add("shop", "b")
	_, list, _ := listed(t, v.Pods.REST, "shop", nil)
	west.add("shop", "c")
	w := began(t, v.Pods, "shop", metainternalversion.ListOptions{ResourceVersion: list.GetResourceVersion()})
	expect(t, w, "ADDED c.west")
	east.add("default", "elsewhere")
	east.add("shop", "d")
	expect(t, w, "ADDED d.east")
	west.remove("b")
	expect(t, w, "DELETED b.west")
	w.Stop()
	for next(t, w) != "end" {
		continue
	}
	if v.Pods.seats.taken != 0 || len(v.Pods.seats.by) != 0 {
		t.Error("the watch is still counted")
	}
}

func TestAWatchWithoutAVersionBeginsWithWhatThereIs(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	west.add("shop", "b")
	west.add("theirs", "x")
	yes := true
	w := began(t, v.Pods, "", metainternalversion.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true})
	expect(t, w, "ADDED a.east", "ADDED b.west")
	expect(t, w, "BOOKMARK  true")
	west.add("theirs", "y")
	west.add("default", "c")
	expect(t, w, "ADDED c.west")
}

func TestAVersionThatIsNotKnownHasTheClientListAgain(t *testing.T) {
	v, _ := viewsOf(t, &Owners{}, newFakeMember(t, "west"))
	ctx, _ := in(t, "shop")
	if _, err := v.Pods.Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: "5"}); !errors.IsResourceExpired(err) {
		t.Error(err)
	}
}

func TestAMemberThatWasAwayIsWatchedFromWhereItWas(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	west.add("shop", "b")
	_, list, _ := listed(t, v.Pods.REST, "shop", nil)
	w := began(t, v.Pods, "shop", metainternalversion.ListOptions{ResourceVersion: list.GetResourceVersion()})
	east.add("shop", "a")
	expect(t, w, "ADDED a.east")
	west.set(func() { west.hang = make(chan struct{}) })
	west.CloseClientConnections()
	west.add("shop", "c")
	east.add("shop", "d")
	expect(t, w, "ADDED d.east")
	west.set(west.wake)
	expect(t, w, "ADDED c.west")
}

func TestAWatchFollowsClustersThatJoinAndEndsWhenOneLeaves(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, use := viewsOf(t, &Owners{}, east, west)
	use(east)
	west.add("shop", "b")
	_, list, _ := listed(t, v.Pods.REST, "shop", nil)
	w := began(t, v.Pods, "shop", metainternalversion.ListOptions{ResourceVersion: list.GetResourceVersion()})
	use(east, west)
	expect(t, w, "ADDED b.west")
	use(west)
	expect(t, w, "ERROR Expired", "end")
}

func TestWatchesAreBounded(t *testing.T) {
	v, _ := viewsOf(t, &Owners{}, newFakeMember(t, "west"))
	watchAs := func(r *WatchedREST, name string) error {
		ctx, _ := in(t, "shop")
		w, err := r.Watch(request.WithUser(ctx, &user.DefaultInfo{Name: name}), &metainternalversion.ListOptions{})
		if err == nil {
			t.Cleanup(w.Stop)
		}
		return err
	}
	for i := range maxWatchersEach {
		if err := watchAs(v.Pods, fmt.Sprint("system:serviceaccount:shop:", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := watchAs(v.Pods, "system:serviceaccount:shop:another"); !errors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "system:serviceaccount:shop has 20 watches of pods") {
		t.Errorf("accounts of one namespace have as many as one client: %v", err)
	}
	for i := range maxWatchers - maxWatchersEach {
		if err := watchAs(v.Pods, fmt.Sprint("user-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := watchAs(v.Pods, "one-more"); !errors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "there are 100 watches of pods") {
		t.Error(err)
	}
	if err := watchAs(v.Nodes, "one-more"); err != nil {
		t.Errorf("watches of nodes have places of their own: %v", err)
	}
}

// A member that says at once that what it is watched from has expired ends nobody's watch; a minute later it may be right.
func TestAMemberCannotEndWatches(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	west.set(func() {
		west.answers = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") != "true" {
				return false
			}
			status(w, http.StatusGone, metav1.StatusReasonExpired)
			return true
		}
	})
	_, list, _ := listed(t, v.Pods.REST, "shop", nil)
	w := began(t, v.Pods, "shop", metainternalversion.ListOptions{ResourceVersion: list.GetResourceVersion()})
	for range 100 {
		if time.Sleep(10 * time.Millisecond); slices.ContainsFunc(west.requests(), func(r string) bool { return strings.Contains(r, "watch=true") }) {
			break
		}
	}
	east.add("shop", "a")
	expect(t, w, "ADDED a.east")
	v.Pods.versions.aMinuteLater()
	expect(t, w, "ERROR Expired", "end")
}

// TestANamespaceStaysShownWhileItsMemberIsAway, also when so many namespaces are known that all are forgotten.
func TestANamespaceStaysShownWhileItsMemberIsAway(t *testing.T) {
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	ctx, _ := in(t, "shop")
	l, err := v.Pods.members.link(ctx, west.cluster())
	if err != nil {
		t.Fatal(err)
	}
	west.Close()
	s := shownNamespaces{view: v.Pods, link: l, known: map[string]shownUntil{"shop": {shown: true}}}
	for i := range 10000 {
		s.known[strconv.Itoa(i)] = shownUntil{}
	}
	if shown, err := s.has(ctx, "shop"); !shown || err != nil {
		t.Errorf("it is shown: %t, %v", shown, err)
	}
}
