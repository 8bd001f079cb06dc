package ledger

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/propagation/plan"
)

// rig is a ledger over a cache that a test fills.
type rig struct {
	*Ledger
	store cache.Store
	key   plan.Key
}

func newRig() rig {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	k := plan.KindOf(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"})
	return rig{New("fed", func(*plan.Kind) cache.Store { return store }), store, plan.Key{Kind: k, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}}
}

// web returns our copy in a version.
func web(version string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"replicas": int64(3)}}}
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetUID("u7")
	u.SetResourceVersion(version)
	u.SetLabels(map[string]string{v1beta1.ManagedByLabel: "fed"})
	u.SetAnnotations(map[string]string{v1beta1.CopyOfAnnotation: "ReplicaSet.apps/shop/web", v1beta1.SourceAnnotation: "source"})
	for _, c := range change {
		c(u)
	}
	return u
}

func (r rig) cached(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if err := r.store.Add(u); err != nil {
		t.Fatal(err)
	}
}

// version returns the version of the observed copy, or "".
func (r rig) version() string {
	u, _ := r.Observe(r.key)
	if u == nil {
		return ""
	}
	return u.GetResourceVersion()
}

func TestObserve_OwnWriteUntilTheCacheHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.cached(t, web("4"))
		r.Begin(r.key)
		if r.End(r.key, Write{Copy: web("5"), Settled: "differs"}) {
			t.Error("nothing else came while it was written")
		}
		if u, settled := r.Observe(r.key); u.GetResourceVersion() != "5" || settled != "differs" {
			t.Errorf("version %s, settled %q: want what the write left", u.GetResourceVersion(), settled)
		}
		r.cached(t, web("6"))
		if got := r.version(); got != "6" {
			t.Errorf("version %s, want what the cache has by now", got)
		}
		r.cached(t, web("4")) // the store was restored from a backup
		r.Begin(r.key)
		r.End(r.key, Write{Copy: web("9")})
		if unconfirmed := r.Unconfirmed(); len(unconfirmed) != 0 {
			t.Errorf("unconfirmed at once: %v", unconfirmed)
		}
		time.Sleep(resourceversion.Believed)
		if unconfirmed := r.Unconfirmed(); len(unconfirmed) != 1 {
			t.Errorf("unconfirmed after a while: %v", unconfirmed)
		}
		if got := r.version(); got != "4" {
			t.Errorf("version %s: a write that the cache never sees is not believed for ever", got)
		}
	})
}

func TestObserve_OnlyOurCopies(t *testing.T) {
	r := newRig()
	r.cached(t, web("1", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1beta1.CopyOfAnnotation: "ReplicaSet.apps/shop/another"})
	}))
	if got := r.version(); got != "" {
		t.Error("somebody's own object with our label is taken for a copy")
	}
	r.cached(t, web("2"))
	r.Adopt(r.key, "source")
	if u, _ := r.Observe(r.key); u == nil || u.GetAnnotations()[v1beta1.SourceAnnotation] != "" {
		t.Errorf("%v: want a copy without its source", u)
	}
}

func TestIsNews_NotWhatOurWriteLeft(t *testing.T) {
	r := newRig()
	if !r.IsNews(r.key, web("1")) {
		t.Error("a copy of which nothing is known")
	}
	r.Begin(r.key)
	if r.IsNews(r.key, web("2")) {
		t.Error("while a write is under way it is not known whose it is")
	}
	if r.End(r.key, Write{Copy: web("2")}) {
		t.Error("only what the write left came meanwhile")
	}
	r.Begin(r.key)
	r.IsNews(r.key, web("4"))
	if !r.End(r.key, Write{Copy: web("3")}) {
		t.Error("another version came meanwhile")
	}
	if r.IsNews(r.key, web("3")) {
		t.Error("what our write left is no news")
	}
	if !r.IsNews(r.key, web("5")) {
		t.Error("what somebody else wrote is news")
	}
	r.Begin(r.key)
	r.IsNews(r.key, web("6"))
	if !r.End(r.key, Write{}) {
		t.Error("the write failed, and something came meanwhile")
	}
}

func TestGone_EndsWhatWasRemembered(t *testing.T) {
	r := newRig()
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("5")})
	r.Gone(r.key, "u7")
	if got := r.version(); got != "" {
		t.Errorf("version %s of a copy that is gone", got)
	}
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("6")}) // its response was late
	if got := r.version(); got != "" {
		t.Errorf("version %s of a copy that went before its write was answered", got)
	}
}

func TestStanding_CountsNotWhatAWriteTakes(t *testing.T) {
	r, source := newRig(), plan.Source{Kind: plan.KindOf(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"})}
	most := func() int64 {
		if n := r.Standing(source, r.key).MostReady; n != nil {
			return *n
		}
		return -1
	}
	status := func(generation int64) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetGeneration(2)
			u.Object["status"] = map[string]any{"replicas": int64(3), "readyReplicas": int64(3), "observedGeneration": generation}
		}
	}
	r.cached(t, web("4"))
	if most() != -1 {
		t.Error("nothing is reserved")
	}
	r.Reserve(r.key, Reservation{Replicas: new(int64(3)), Template: "template"})
	if most() != 3 || r.Standing(source, r.key).Template != "template" {
		t.Error("what is about to be written is reserved")
	}
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("5", status(1))})
	r.Record(r.key, Outcome{State: plan.Synced})
	if most() != 3 || r.Standing(source, r.key).Template != "" {
		t.Error("what was written counts until it is carried out; the template is written")
	}
	r.cached(t, web("6", status(1)))
	if most() != 3 {
		t.Error("the status is of the generation before")
	}
	r.cached(t, web("7", status(2)))
	if most() != -1 {
		t.Error("the member has carried it out")
	}
}

func TestRelease_GivesBackWhatAWriteThatFailedTook(t *testing.T) {
	r := newRig()
	if r.Release(r.key) != (Reservation{}) {
		t.Error("nothing was reserved")
	}
	took := Reservation{Replicas: new(int64(3)), Template: "template"}
	r.Reserve(r.key, took)
	if r.Release(r.key) != took || r.Release(r.key) != (Reservation{}) {
		t.Error("it is released once")
	}
	for _, c := range []struct {
		next Reservation
		want bool
	}{
		{took, false},
		{Reservation{Replicas: new(int64(2)), Template: "another"}, false},
		{Reservation{Replicas: new(int64(4)), Template: "template"}, true},
		{Reservation{Template: "template"}, true},
		{Reservation{Replicas: new(int64(3))}, true},
		{Reservation{}, true},
	} {
		if got := took.GivesBack(c.next); got != c.want {
			t.Errorf("%v gives back %v", c.next, got)
		}
	}
}

func TestRecord_SaysWhatIsNews(t *testing.T) {
	r := newRig()
	if r.Synced(r.key) || !r.MayCome(r.key) {
		t.Error("nothing has been synced")
	}
	synced := Outcome{State: plan.Synced}
	if !r.Record(r.key, synced) || r.Record(r.key, synced) || !r.Synced(r.key) {
		t.Error("the first time is news, the second is not")
	}
	for state, comes := range map[plan.State]bool{plan.Pending: true, plan.Rejected: false, plan.Conflict: false, plan.Unreachable: false} {
		if r.Record(r.key, Outcome{State: state}); r.MayCome(r.key) != comes {
			t.Errorf("%s: a copy may come: %t", state, !comes)
		}
	}
	if r.Forget(r.key); r.Synced(r.key) {
		t.Error("it is forgotten")
	}
}

func TestRemoved_UntilItIsWrittenAgain(t *testing.T) {
	r := newRig()
	r.Removed(r.key, "u7")
	if !r.IsRemoved(r.key, "u7") || r.IsRemoved(r.key, "u8") {
		t.Error("that copy, and no other")
	}
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("5")})
	if r.IsRemoved(r.key, "u7") {
		t.Error("it was written since")
	}
}

func TestPause_WhereOthersDeleteItAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		for range 20 {
			r.Removed(r.key, "u7")
			r.Gone(r.key, "u7")
		}
		if left, _ := r.Pause(r.key, time.Now()); left != 0 {
			t.Error("what we deleted ourselves is no reason to wait")
		}
		for range 20 {
			r.Gone(r.key, "u8")
		}
		left, why := r.Pause(r.key, time.Now())
		if left == 0 || why == "" {
			t.Error("somebody deletes it again and again")
		}
		time.Sleep(left)
		if left, _ := r.Pause(r.key, time.Now()); left != 0 {
			t.Error("the pause ends")
		}
	})
}

func TestKeepFloor_ForAWhile(t *testing.T) {
	r, now := newRig(), time.Unix(0, 0)
	for _, c := range []struct {
		after       time.Duration
		floor, want int64
	}{{0, 5, 5}, {time.Second, 3, 5}, {2 * time.Second, 0, 5}, {2*time.Second + floorStays, 0, 0}, {3 * time.Minute, 2, 2}} {
		if got := r.KeepFloor(r.key, c.floor, now.Add(c.after)); got != c.want {
			t.Errorf("after %s, asked for %d: %d, want %d", c.after, c.floor, got, c.want)
		}
	}
	other := r.key
	other.Name = "other"
	r.KeepFloor(other, 0, now.Add(time.Hour))
	if len(r.floors)+len(r.copies) > 0 {
		t.Errorf("an hour later there is still %v, %v", r.floors, r.copies)
	}
}

func TestLeaving_Since(t *testing.T) {
	r, now := newRig(), time.Unix(100, 0)
	if !r.Failing(r.key, false, now).IsZero() || len(r.copies) > 0 || r.Failing(r.key, true, now) != now {
		t.Error("it fails from now on")
	}
	if !r.Leaving(r.key, false, now).IsZero() || r.Leaving(r.key, true, now) != now || r.Leaving(r.key, true, now.Add(time.Second)) != now {
		t.Error("since it was said first")
	}
	if !r.Leaving(r.key, false, now).IsZero() || r.Leaving(r.key, true, now.Add(time.Minute)) != now.Add(time.Minute) {
		t.Error("it did not leave in between")
	}
	if r.Failing(r.key, true, now.Add(time.Hour)) != now || !r.Failing(r.key, false, now).IsZero() {
		t.Error("that it leaves is not that it fails")
	}
}

func TestADeadlineMissedBeforeIsKept(t *testing.T) {
	r := newRig()
	is := func(want string) {
		t.Helper()
		if got := r.MissedBefore(r.key); got != want {
			t.Errorf("missed before at %q, want %q", got, want)
		}
	}
	is("")
	r.Begin(r.key)
	r.End(r.key, Write{MissedBefore: "10:00"})
	is("") // the write failed
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("5"), MissedBefore: "10:00"})
	is("10:00")
	r.Begin(r.key)
	r.End(r.key, Write{Copy: web("6")})
	is("10:00") // another write, of the same template
}
