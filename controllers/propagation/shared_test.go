package propagation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/controllers/propagation/plan"
)

func TestSharedWhileItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shared
		of := func(name, uid, version string) *version {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetName(name)
			u.SetUID(types.UID(uid))
			u.SetResourceVersion(version)
			return s.versionOf(key{Kind: &plan.Kinds[0], NamespacedName: types.NamespacedName{Name: name}}, u)
		}
		web := of("web", "u1", "7")
		for range 5 {
			if time.Sleep(term - 1); of("web", "u1", "7") != web {
				t.Error("what is asked for is not kept")
			}
		}
		if of("web", "u1", "8") == web || of("web", "u2", "7") == web {
			t.Error("another version was taken for the same")
		}
		for i := range 3 * termMost {
			of(fmt.Sprint("web-", i), "u1", "7")
		}
		kept := func() (n int, ends bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.recent) + len(s.old), s.ends != nil
		}
		if n, _ := kept(); n > 2*termMost {
			t.Errorf("%d are kept", n)
		}
		time.Sleep(3 * term)
		if n, ends := kept(); n > 0 || ends {
			t.Error("what nobody asks for is kept")
		}
	})
}
