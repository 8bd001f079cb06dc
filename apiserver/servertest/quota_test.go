package servertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestQuotaIsEnforced gives a namespace room for two of each kind; deleting one makes room again.
func TestQuotaIsEnforced(t *testing.T) {
	const ns = "quotas"
	if _, err := shared.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	counted := map[string][]corev1.ResourceName{
		"secrets":     {"secrets", "count/secrets"},
		"services":    {"services"},
		"replicasets": {"count/replicasets.apps"},
		"ingresses":   {"count/ingresses.networking.k8s.io"},
	}
	hard := corev1.ResourceList{}
	for _, names := range counted {
		for _, name := range names {
			hard[name] = resource.MustParse("2")
		}
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := shared.kube.CoreV1().ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range v1beta1.FederatedResources {
		names, ok := counted[r.Resource]
		if !ok {
			continue
		}
		waitUsed(t, ns, "0", names)
		client := shared.dynamic.Resource(r).Namespace(ns)
		make := func(name string) error {
			_, err := client.Create(t.Context(), newObject(t, federatedObjects[r.Resource], name), metav1.CreateOptions{})
			return err
		}
		for _, name := range []string{"one", "two"} {
			if err := make(name); err != nil {
				t.Fatalf("%s %s: %v", r.Resource, name, err)
			}
		}
		// A count from before the two is put right by the next, as in a cluster; what slipped past it goes again.
		eventually(t, "a third of the "+r.Resource, func(ctx context.Context) error {
			err := make("three")
			if errors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: two") {
				return nil
			}
			if err == nil {
				takeAway(t, client, "three")
			}
			return fmt.Errorf("%v, want it refused by the quota", err)
		})
		takeAway(t, client, "one")
		waitUsed(t, ns, "1", names)
		// Admission has its own watch of the quota, which may be a moment behind what was read here.
		eventually(t, r.Resource+": after one was deleted", func(context.Context) error { return make("three") })
	}
}

func takeAway(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	settle(t, client, name, []string{v1beta1.DeleteFromClustersFinalizer})
	release(t, client, name)
}

// waitUsed waits until the quota reports so many of each as used. That may take until they are counted again, and
// longer while a custom kind of another test is added.
func waitUsed(t *testing.T, ns, want string, names []corev1.ResourceName) {
	t.Helper()
	var used corev1.ResourceList
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		q, err := shared.kube.CoreV1().ResourceQuotas(ns).Get(ctx, "two", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		used = q.Status.Used
		for _, name := range names {
			if n, ok := used[name]; !ok || n.String() != want {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("used %v, want %s of %v: %v", used, want, names, err)
	}
}
