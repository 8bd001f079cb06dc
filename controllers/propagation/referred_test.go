package propagation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
)

// slowMember answers lists with a delay.
type slowMember struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	resource string
	after    time.Duration
	lists    *int
}

func (m slowMember) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	m.resource = r.Resource
	return m
}

func (m slowMember) Namespace(string) dynamic.ResourceInterface { return m }

func (m slowMember) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	*m.lists++
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(m.after):
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	if m.resource == "pods" && o.Continue == "" {
		list.SetContinue("more")
	} else if m.resource == "pods" {
		list.Items = []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"serviceAccountName": "runner"}}}}
	}
	return list, nil
}

// TestManyAskAMemberOnceWhoRefersToThem checks that callers wait for a read in progress, no longer than their deadline,
// and delay nobody.
func TestManyAskAMemberOnceWhoRefersToThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, all := 0, referrersThere{}
		m := slowMember{after: 50 * time.Millisecond, lists: &lists}
		answers := make(chan string)
		for range 20 {
			go func() {
				by, err := all.inNamespace(t.Context(), m, "shop")
				if err != nil {
					answers <- err.Error()
				}
				answers <- by[v1beta1.Reference{Kind: "ServiceAccount", Name: "runner"}]
			}()
		}
		synctest.Wait()
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := all.inNamespace(hurried, m, "shop"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who may wait for a millisecond: %v", err)
		}
		for range 20 {
			if got := <-answers; got != "Pod p" {
				t.Errorf("referred to by %q", got)
			}
		}
		if want := len(v1beta1.Referrers) + 1; lists != want {
			t.Errorf("%d lists, want %d", lists, want)
		}
		time.Sleep(referrersAge)
		_, _ = all.inNamespace(t.Context(), m, "shop")
		if want := 2 * (len(v1beta1.Referrers) + 1); lists != want {
			t.Errorf("later: %d lists, want %d", lists, want)
		}
	})
}
