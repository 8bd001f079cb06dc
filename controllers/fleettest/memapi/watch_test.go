package memapi

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A watch shows what comes into the sight of its selector and leaves it; a silenced one shows it later.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		api := newTestAPI()
		c := api.Client("tester", nil)
		create(place{namespacesResource, ""}, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}").do(ctx, c, "")
		put := func(labels string) {
			if _, err := apply(files, "tester", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: "+labels+"}}").do(ctx, c, ""); err != nil {
				t.Fatal(err)
			}
		}
		put("{a: x}")
		initial := true
		w, err := c.Resource(configMaps).Watch(ctx, metav1.ListOptions{LabelSelector: "a=x", SendInitialEvents: &initial, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		go func() {
			for e := range w.ResultChan() {
				got = append(got, fmt.Sprint(e.Type, e.Object.(*unstructured.Unstructured).GetLabels()))
			}
			got = append(got, "end")
		}()
		put("{a: x, b: w}")
		put("{a: z}")
		synctest.Wait()
		c.Silence(true)
		put("{a: x}")
		synctest.Wait()
		silent := len(got)
		c.Silence(false)
		synctest.Wait()
		want := []string{"ADDEDmap[a:x]", "BOOKMARKmap[]", "MODIFIEDmap[a:x b:w]", "DELETEDmap[a:x b:w]", "ADDEDmap[a:x]", "end"}
		stop()
		synctest.Wait()
		if silent != 4 || !slices.Equal(got, want) {
			t.Errorf("%d events before the silence ended, and in sum %v, wanted %v", silent, got, want)
		}
	})
}

// A watch from a version on gets what has changed since; one from too long ago is told so.
func TestWatchFromAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTestAPI()
		c := api.Client("tester", nil)
		create(place{namespacesResource, ""}, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}").do(t.Context(), c, "")
		version := ""
		for i := range 3 * maxHistory {
			u, err := apply(files, "tester", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {n: \"%d\"}}", i)).do(t.Context(), c, "")
			if err != nil {
				t.Fatal(err)
			}
			if i == 3*maxHistory-3 {
				version = u.GetResourceVersion()
			}
		}
		if _, err := c.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}); err == nil {
			t.Error("a version of long ago was taken")
		}
		w, err := c.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e := <-w.ResultChan(); e.Type != "MODIFIED" {
				t.Errorf("got %v", e)
			}
		}
		w.Stop()
		c.Break()
	})
}

// What has changed long ago is not kept for ever, however little it is.
func TestOldChangesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newTestAPI()
		c := api.Client("tester", nil)
		create(place{namespacesResource, ""}, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}").do(t.Context(), c, "")
		put := func(n int) (version string) {
			for i := range n {
				u, err := apply(files, "tester", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {n: \"%s %d\"}}", version, i)).do(t.Context(), c, "")
				if err != nil {
					t.Fatal(err)
				}
				version = u.GetResourceVersion()
			}
			return version
		}
		old := put(100)
		time.Sleep(keptFor / 2)
		recent := put(1)
		time.Sleep(keptFor)
		put(100)
		for version, want := range map[string]bool{old: false, recent: true, put(1): true} {
			w, err := c.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if (err == nil) != want {
				t.Errorf("from version %s: %v", version, err)
			}
			if err == nil {
				w.Stop()
			}
		}
		if n := len(api.resources[configMaps].history); n > 164 {
			t.Errorf("%d changes are kept", n)
		}
		c.Break()
		synctest.Wait()
	})
}
