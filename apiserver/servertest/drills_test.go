package servertest

import (
	"context"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// A drill has its finalizer from the start, its creator cannot write its status or change it, and whoever aborts it is
// recorded as the server knows them.
func TestDrillsAreKeptAsTheyWereMade(t *testing.T) {
	drills := shared.dynamic.Resource(v1beta1.FailoverDrillsResource)
	u, err := drills.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "FailoverDrill", "metadata": map[string]any{"name": "kept"},
		"spec":   map[string]any{"scope": map[string]any{"regions": []any{"nowhere"}}, "method": "Shift", "reason": "a test"},
		"status": map[string]any{"phase": "Finished", "abort": map[string]any{"by": "mallory"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = drills.Patch(context.Background(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = drills.Delete(context.Background(), "kept", metav1.DeleteOptions{})
	})
	if f := u.GetFinalizers(); len(f) != 1 || f[0] != v1beta1.DrillFinalizer || !reflect.DeepEqual(u.Object["status"], map[string]any{"requestedBy": "federation-admin"}) {
		t.Errorf("finalizers %v, status %v", f, u.Object["status"])
	}
	if _, err := drills.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"spec":{"holdSeconds":20}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("its spec can be changed: %v", err)
	}
	body := []byte(`{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Finished","abort":{"by":"somebody else","reason":"enough"}}}`)
	u, err = drills.Patch(t.Context(), "kept", types.MergePatchType, body, metav1.PatchOptions{}, "abort")
	if err != nil {
		t.Fatal(err)
	}
	by, _, _ := unstructured.NestedString(u.Object, "status", "abort", "by")
	why, _, _ := unstructured.NestedString(u.Object, "status", "abort", "reason")
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if by != "federation-admin" || why != "enough" || phase != "" || len(u.GetLabels()) > 0 {
		t.Errorf("aborted by %q: %q, phase %q, labels %v", by, why, phase, u.GetLabels())
	}
	u, err = drills.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"status":{"abort":null,"phase":"Holding"}}`), metav1.PatchOptions{}, "status")
	if by, _, _ = unstructured.NestedString(u.Object, "status", "abort", "by"); err != nil || by != "federation-admin" {
		t.Errorf("the controller's status takes the abort away: %q, %v", by, err)
	}
}

func TestWhoMayDrill(t *testing.T) {
	const all = "create failoverdrills, delete failoverdrills, isolate failoverdrills, blackhole failoverdrills, approve failoverdrills, update failoverdrills/abort x, update failoverdrills/approval x, update failoverdrills/status x, list failoverdrills, list failoverdrillschedules, create failoverdrillschedules"
	for role, want := range map[string]string{
		"federation-cluster-viewer":     "list failoverdrills, list failoverdrillschedules",
		"federation-operator":           "update failoverdrills/abort x, list failoverdrills, list failoverdrillschedules",
		"federation-drill-operator":     "create failoverdrills, delete failoverdrills, isolate failoverdrills, update failoverdrills/abort x, list failoverdrills, list failoverdrillschedules, create failoverdrillschedules",
		"federation-blackhole-operator": "blackhole failoverdrills",
		"federation-drill-approver":     "approve failoverdrills, update failoverdrills/approval x, list failoverdrills, list failoverdrillschedules",
	} {
		bind(t, role)
		becomesTrue(t, role, func() bool { first, _, _ := strings.Cut(want, ","); return mayDo(t, role, first) })
		for _, asked := range strings.Split(all, ", ") {
			if got := mayDo(t, role, asked); got != strings.Contains(", "+want+",", ", "+asked+",") {
				t.Errorf("%s may %s: %v", role, asked, got)
			}
		}
	}
}

// A user who may evacuate need not be allowed to isolate, the creator of a drill cannot approve it, and a user who may
// not approve must ask for approval. Acceptance test 23 of drills.
func TestRightsToDrillGoByMethod(t *testing.T) {
	as := func(user string, groups ...string) dynamic.ResourceInterface {
		config := rest.CopyConfig(shared.admin)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client.Resource(v1beta1.FailoverDrillsResource)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-evacuator"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"failoverdrills", "failoverdrills/approval"}, Verbs: []string{"create", "get", "delete", "patch", "evacuate"}}}}
	if _, err := shared.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		if _, err := shared.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test-evacuator-" + user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	becomesTrue(t, "bound", func() bool {
		return mayDo(t, "ann", "evacuate failoverdrills") && mayDo(t, "bob", "evacuate failoverdrills")
	})
	drill := func(method, approval string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "federation/v1beta1", "kind": "FailoverDrill", "metadata": map[string]any{"name": "asked"}, "status": map[string]any{"requestedBy": "bob"},
			"spec": map[string]any{"scope": map[string]any{"regions": []any{"nowhere"}}, "method": method, "reason": "a test", "approval": approval},
		}}
	}
	for _, c := range []struct{ method, approval, want string }{
		{"Isolate", "Required", "takes the verb isolate"}, {"Blackhole", "Required", "takes the verb blackhole"}, {"Evacuate", "NotRequired", "takes the verb approve"}, {"Evacuate", "Required", ""},
	} {
		_, err := as("ann").Create(t.Context(), drill(c.method, c.approval), metav1.CreateOptions{})
		if (err == nil) != (c.want == "") || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want)) {
			t.Fatalf("%s, approval %s: %v, want %q", c.method, c.approval, err, c.want)
		}
	}
	t.Cleanup(func() {
		drills := shared.dynamic.Resource(v1beta1.FailoverDrillsResource)
		_, _ = drills.Patch(context.Background(), "asked", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = drills.Delete(context.Background(), "asked", metav1.DeleteOptions{})
	})
	approve := []byte(`{"status":{"approved":{"by":"somebody","reason":"fine"}}}`)
	if _, err := as("ann").Patch(t.Context(), "asked", types.MergePatchType, approve, metav1.PatchOptions{}, "approval"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "somebody else has to approve it") {
		t.Errorf("who made it approves it: %v", err)
	}
	u, err := as("bob").Patch(t.Context(), "asked", types.MergePatchType, approve, metav1.PatchOptions{}, "approval")
	if err != nil {
		t.Fatal(err)
	}
	by, _, _ := unstructured.NestedString(u.Object, "status", "approved", "by")
	made, _, _ := unstructured.NestedString(u.Object, "status", "requestedBy")
	if by != "bob" || made != "ann" {
		t.Errorf("made by %q, approved by %q; want ann and bob", made, by)
	}
}

// Creating or resuming a schedule needs the permissions for its drills; the drills belong to that user, who thus cannot
// approve them.
func TestSchedulesOfDrillsBelongToWhoMadeThem(t *testing.T) {
	schedules := func(user string) dynamic.ResourceInterface {
		config := rest.CopyConfig(shared.admin)
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client.Resource(v1beta1.DrillSchedulesResource)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-scheduler"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"failoverdrillschedules"}, Verbs: []string{"create", "get", "patch"}},
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"failoverdrills"}, Verbs: []string{"shift"}}}}
	if _, err := shared.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-scheduler"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "sam"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	becomesTrue(t, "bound", func() bool {
		return mayDo(t, "sam", "shift failoverdrills") && mayDo(t, "sam", "create failoverdrillschedules")
	})
	schedule := func(method, approval string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "federation/v1beta1", "kind": "FailoverDrillSchedule", "metadata": map[string]any{"name": "weekly"}, "status": map[string]any{"requestedBy": "bob"},
			"spec": map[string]any{"schedule": "0 10 1 1 *", "rotate": "Zones", "template": map[string]any{"spec": map[string]any{
				"scope": map[string]any{"zones": []any{"*"}}, "method": method, "reason": "a test", "approval": approval}}},
		}}
	}
	for _, c := range []struct{ method, approval, want string }{
		{"Isolate", "Required", "spec.template.spec.method: Isolate takes the verb isolate"}, {"Shift", "NotRequired", "spec.template.spec.approval: must be Required"}, {"Shift", "Required", ""},
	} {
		_, err := schedules("sam").Create(t.Context(), schedule(c.method, c.approval), metav1.CreateOptions{})
		if (err == nil) != (c.want == "") || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want)) {
			t.Fatalf("%s, approval %s: %v, want %q", c.method, c.approval, err, c.want)
		}
	}
	t.Cleanup(func() {
		_ = shared.dynamic.Resource(v1beta1.DrillSchedulesResource).Delete(context.Background(), "weekly", metav1.DeleteOptions{})
	})
	by := func(u *unstructured.Unstructured) string {
		name, _, _ := unstructured.NestedString(u.Object, "status", "requestedBy")
		return name
	}
	patch := func(user, body, want string) {
		t.Helper()
		u, err := schedules(user).Patch(t.Context(), "weekly", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		switch {
		case want == "" && !apierrors.IsForbidden(err):
			t.Errorf("%s may %s: %v", user, body, err)
		case want != "" && (err != nil || by(u) != want):
			t.Errorf("after %s by %s: %v, by %q, want %q", body, user, err, by(u), want)
		}
	}
	patch("sam", `{"spec":{"template":{"spec":{"method":"Evacuate"}}}}`, "")
	patch("sam", `{"spec":{"template":{"spec":{"holdSeconds":20}}},"status":{"requestedBy":"eve"}}`, "sam")
	admin := shared.dynamic.Resource(v1beta1.DrillSchedulesResource)
	u, err := admin.Patch(t.Context(), "weekly", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
	if err != nil || by(u) != "sam" {
		t.Errorf("suspended: %v, by %q", err, by(u))
	}
	u, err = admin.Patch(t.Context(), "weekly", types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"method":"Isolate"}}}}`), metav1.PatchOptions{})
	if err != nil || by(u) != "federation-admin" {
		t.Errorf("changed: %v, by %q", err, by(u))
	}
	patch("sam", `{"spec":{"suspend":false}}`, "")
	u, err = admin.Patch(t.Context(), "weekly", types.MergePatchType, []byte(`{"status":{"requestedBy":"eve","active":["a"]}}`), metav1.PatchOptions{}, "status")
	if active, _, _ := unstructured.NestedStringSlice(u.Object, "status", "active"); err != nil || by(u) != "federation-admin" || len(active) != 1 {
		t.Errorf("by the status: %v, by %q, active %v", err, by(u), active)
	}
	// the controllers make a drill for whose the schedule is; nobody else can
	controllers := rest.CopyConfig(shared.admin)
	controllers.Impersonate = rest.ImpersonationConfig{UserName: pki.ControllersUser}
	client, err := dynamic.NewForConfig(controllers)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.Resource(v1beta1.FailoverDrillsResource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "FailoverDrill", "metadata": map[string]any{"name": "weekly-1"}, "status": map[string]any{"requestedBy": "sam", "phase": "Holding"},
		"spec": map[string]any{"scope": map[string]any{"regions": []any{"nowhere"}}, "method": "Isolate", "reason": "a test"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		drills := shared.dynamic.Resource(v1beta1.FailoverDrillsResource)
		_, _ = drills.Patch(context.Background(), "weekly-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = drills.Delete(context.Background(), "weekly-1", metav1.DeleteOptions{})
	})
	if phase, _, _ := unstructured.NestedString(made.Object, "status", "phase"); by(made) != "sam" || phase != "" {
		t.Errorf("made for %q, phase %q", by(made), phase)
	}
	if err := client.Resource(v1beta1.FailoverDrillsResource).Delete(t.Context(), "weekly-1", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the controllers delete it: %v", err)
	}
}
