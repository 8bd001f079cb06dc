package views

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
	if len(v.Pods.watchers) != 0 {
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
	ctx, _ := in(t, "shop")
	for range maxWatchers {
		began(t, v.Pods, "shop", metainternalversion.ListOptions{})
	}
	if _, err := v.Pods.Watch(ctx, &metainternalversion.ListOptions{}); !errors.IsTooManyRequests(err) {
		t.Error(err)
	}
	if _, err := v.Nodes.Watch(ctx, &metainternalversion.ListOptions{}); err != nil {
		t.Errorf("watches of nodes have places of their own: %v", err)
	}
}
