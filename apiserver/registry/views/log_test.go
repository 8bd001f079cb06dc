package views

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // what the options of logs are converted by
)

// logOf reads a log, as the API server does.
func logOf(t *testing.T, v *Views, name string, options *core.PodLogOptions) (string, error) {
	t.Helper()
	ctx, _ := in(t, "shop")
	obj, err := v.Log.Get(ctx, name, options)
	if err != nil {
		return "", err
	}
	stream, _, _, err := obj.(*genericrest.LocationStreamer).InputStream(ctx, "", "")
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

func TestLogsComeFromTheMemberThatHasThePod(t *testing.T) {
	east, west := newFakeMember(t, "east"), newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, east, west)
	east.add("shop", "a")
	west.add("shop", "b")
	for _, m := range []*fakeMember{east, west} {
		m.set(func() {
			m.answers = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/log") {
					return false
				}
				fmt.Fprintf(w, "%s %s?%s", m.name, r.URL.Path, r.URL.RawQuery)
				return true
			}
		})
	}
	lines := int64(5)
	text, err := logOf(t, v, "b.west", &core.PodLogOptions{Container: "c", TailLines: &lines})
	if want := "west /api/v1/namespaces/shop/pods/b/log?container=c&tailLines=5"; err != nil || text != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	if text, err := logOf(t, v, "a", &core.PodLogOptions{}); err != nil || !strings.HasPrefix(text, "east ") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := logOf(t, v, "a.west", &core.PodLogOptions{}); !errors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestARefusalToReadLogsNamesTheFlag(t *testing.T) {
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, &Owners{}, west)
	west.add("shop", "b")
	west.set(func() {
		west.answers = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/log") {
				status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
			}
			return strings.HasSuffix(r.URL.Path, "/log")
		}
	})
	_, err := logOf(t, v, "b.west", &core.PodLogOptions{})
	if !errors.IsForbidden(err) || !strings.Contains(err.Error(), "cluster west: ") || !strings.Contains(err.Error(), "--pod-logs") {
		t.Error(err)
	}
}

// One client has so many logs and other streams at the same time, all clients together so many more; those that have ended do not count.
func TestStreamsAreBounded(t *testing.T) {
	east := newFakeMember(t, "east")
	v, _ := viewsOf(t, &Owners{}, east)
	east.add("shop", "a")
	if v.Log.seats != v.Exec.seats || v.Log.seats.each != maxStreamsEach || v.Log.seats.most != maxStreams {
		t.Fatalf("logs and exec have other seats: %+v, %+v", v.Log.seats, v.Exec.seats)
	}
	v.Log.seats.most, v.Log.seats.each = 3, 2
	as := func(name string) (context.Context, context.CancelFunc) {
		return context.WithCancel(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}))
	}
	alice, end := as("alice")
	bob, leave := as("bob")
	defer leave()
	for i, c := range []struct {
		ctx context.Context
		ok  bool
	}{{alice, true}, {alice, true}, {alice, false}, {bob, true}, {bob, false}} {
		if err := v.Log.seats.acquireFor(c.ctx); (err == nil) != c.ok || err != nil && !errors.IsTooManyRequests(err) {
			t.Errorf("stream %d: %v", i, err)
		}
	}
	end()
	v.Log.seats.most = 0
	ctx, _ := in(t, "shop")
	if _, err := v.Log.Get(ctx, "a", &core.PodLogOptions{}); !errors.IsTooManyRequests(err) {
		t.Errorf("a log beside as many as there may be: %v", err)
	}
	v.Log.seats.most = 3
	for deadline := time.Now().Add(10 * time.Second); v.Log.seats.acquireFor(bob) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("streams that have ended still count")
		}
	}
}
