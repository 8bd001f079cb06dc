package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// review returns how the shared server answers FailoverReviews.
func review(_ context.Context, r *v1beta1.FailoverReview) error {
	if slices.Contains(r.Spec.Clusters, "unknown") {
		return apierrors.NewNotFound(v1beta1.ClustersResource.GroupResource(), "unknown")
	}
	if slices.Contains(r.Spec.Clusters, "broken") {
		return errors.New("no answer")
	}
	r.Status = v1beta1.FailoverReviewStatus{Clusters: r.Spec.Clusters, ReplicasMoved: 7}
	return nil
}

// place returns how the shared server places new objects: as a label says.
func place(u *unstructured.Unstructured) string { return u.GetLabels()["place"] }

func newNamespace(t *testing.T, name string) {
	t.Helper()
	if _, err := shared.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func in(namespace string, r schema.GroupVersionResource) dynamic.ResourceInterface {
	return shared.dynamic.Resource(r).Namespace(namespace)
}

const configMaps = `{apiVersion: federation/v1beta1, kind: PlacementPolicy, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {tier: gold}}}]}}`

// kubectl apply -f of a policy and of what it selects: the policy is in force at once, even if it was deleted a moment
// ago.
func TestAPolicyIsInForceWhenItIsStored(t *testing.T) {
	const ns = "in-force"
	newNamespace(t, ns)
	placement := func(name string) string {
		t.Helper()
		gold := newObject(t, `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {tier: gold}}}`, name)
		made, err := in(ns, corev1.SchemeGroupVersion.WithResource("configmaps")).Create(t.Context(), gold, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.GetAnnotations()[v1beta1.PlacementAnnotation]
	}
	for i := range 20 {
		if _, err := in(ns, v1beta1.PoliciesResource).Create(t.Context(), newObject(t, configMaps, "gold"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := placement(fmt.Sprint("under-policy-", i)); got != v1beta1.PlacementPending {
			t.Fatalf("round %d: placement %q after the policy was made", i, got)
		}
		if err := in(ns, v1beta1.PoliciesResource).Delete(t.Context(), "gold", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := placement(fmt.Sprint("without-", i)); got != "" {
			t.Fatalf("round %d: placement %q after the policy was deleted", i, got)
		}
	}
}

// A user who omits a placement or carries it along keeps it, and one who pastes another's gets an error that names the
// field; the controllers can remove it.
func TestOnlyTheControllersWriteAPlacement(t *testing.T) {
	const ns, pasted = "written", `{"clusters":{"west-a":1}}`
	newNamespace(t, ns)
	if _, err := in(ns, v1beta1.PoliciesResource).Create(t.Context(), newObject(t, configMaps, "gold"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controllers, err := dynamic.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	gold := func(placement string) *unstructured.Unstructured {
		u := newObject(t, `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {tier: gold}}}`, "gold")
		if placement != "" {
			u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: placement})
		}
		return u
	}
	is := func(did string, made *unstructured.Unstructured, err error, want string) {
		t.Helper()
		switch {
		case want == "!" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "metadata.annotations["+v1beta1.PlacementAnnotation+"]: ")):
			t.Errorf("%s: %v, want that it is refused with the name of the field", did, err)
		case want != "!" && (err != nil || made.GetAnnotations()[v1beta1.PlacementAnnotation] != want):
			t.Errorf("%s: annotations %v, %v; want %q", did, made.GetAnnotations(), err, want)
		}
	}
	made, err := in(ns, resource).Create(t.Context(), gold(pasted), metav1.CreateOptions{})
	is("create with one", made, err, "!")
	made, err = in(ns, resource).Create(t.Context(), gold(""), metav1.CreateOptions{})
	is("create", made, err, v1beta1.PlacementPending)
	read := made

	patch := func(client dynamic.Interface, value, want string) {
		t.Helper()
		body := []byte(`{"metadata":{"annotations":{"` + v1beta1.PlacementAnnotation + `":` + value + `}}}`)
		made, err := client.Resource(resource).Namespace(ns).Patch(t.Context(), "gold", types.MergePatchType, body, metav1.PatchOptions{})
		is("patch with "+value, made, err, want)
	}
	patch(shared.dynamic, "null", v1beta1.PlacementPending)
	patch(shared.dynamic, `"pasted"`, "!")
	patch(controllers, `"decided"`, "decided")
	if _, err := in(ns, resource).Update(t.Context(), read, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update from what was read before: %v, want a conflict, after which clients read again", err)
	}
	made, err = in(ns, resource).Update(t.Context(), gold("decided"), metav1.UpdateOptions{})
	is("kubectl replace with the same", made, err, "decided")
	made, err = in(ns, resource).Update(t.Context(), gold(""), metav1.UpdateOptions{})
	is("kubectl replace without", made, err, "decided")
	apply := func(placement, want string) {
		t.Helper()
		made, err := in(ns, resource).Apply(t.Context(), "gold", gold(placement), metav1.ApplyOptions{FieldManager: "user", Force: true})
		is("server-side apply of "+placement, made, err, want)
	}
	apply(pasted, "!")
	apply("decided", "decided")
	apply("", "decided") // this manager owned it, too
	patch(controllers, "null", "")
}

// A backup is restored, including decisions, by an account with the verb for it; without it, even with all verbs, the
// error names the field.
func TestRestoringDecisions(t *testing.T) {
	const ns, role, exported = "restored", "federation-restore", `{"clusters":{"west-a":2}}`
	newNamespace(t, ns)
	bindIn := func(name string, ref string) {
		t.Helper()
		if _, err := shared.kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "velero"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ref},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	velero := restclient.CopyConfig(shared.admin)
	velero.Impersonate.UserName = "velero"
	client, err := dynamic.NewForConfig(velero)
	if err != nil {
		t.Fatal(err)
	}
	resource := appsv1.SchemeGroupVersion.WithResource("replicasets")
	restore := func() error {
		web := newObject(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {labels: {place: elsewhere}}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}`, "web")
		web.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: exported, v1beta1.CreatedPodsAnnotation: `{"west-a":1}`})
		made, err := client.Resource(resource).Namespace(ns).Create(t.Context(), web, metav1.CreateOptions{})
		if err == nil && (made.GetAnnotations()[v1beta1.PlacementAnnotation] != exported || made.GetAnnotations()[v1beta1.CreatedPodsAnnotation] != `{"west-a":1}`) {
			t.Errorf("restored with annotations %v", made.GetAnnotations())
		}
		return err
	}
	refused := func() error {
		if err := restore(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "metadata.annotations["+v1beta1.PlacementAnnotation+"]: ") {
			return fmt.Errorf("%v, want that it is refused with the name of the field", err)
		}
		return nil
	}
	bindIn("edit", "edit")
	eventually(t, "refused without the verb", func(context.Context) error { return refused() })
	bindIn("restore", role)
	eventually(t, "restored with the verb", func(context.Context) error { return restore() })
	if err := in(ns, resource).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bindIn("everything", "cluster-admin")
	eventually(t, "refused to whoever may do everything", func(context.Context) error { return refused() })
}

// Another server's write comes through the shared store.
func TestAPolicyOfAnotherServerIsInForce(t *testing.T) {
	const ns = "from-elsewhere"
	newNamespace(t, ns)
	watcher, err := in(ns, v1beta1.PoliciesResource).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err) // two watchers of one store get their events in another form than one
	}
	defer watcher.Stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(shared.dataDir, "etcd.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := newObject(t, configMaps, "gold")
	p.SetNamespace(ns)
	stored, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const key = "/registry/placementpolicies/" + ns + "/gold"
	if _, err := client.Put(t.Context(), key, string(stored)); err != nil {
		t.Fatal(err)
	}
	gold := newObject(t, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: some-, labels: {tier: gold}}}`, "")
	becomes := func(want string) {
		t.Helper()
		eventually(t, "placement "+want, func(ctx context.Context) error {
			made, err := in(ns, corev1.SchemeGroupVersion.WithResource("configmaps")).Create(ctx, gold, metav1.CreateOptions{})
			if err == nil && made.GetAnnotations()[v1beta1.PlacementAnnotation] != want {
				err = fmt.Errorf("annotations %v", made.GetAnnotations())
			}
			return err
		})
	}
	becomes(v1beta1.PlacementPending)
	if _, err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	becomes("")
}

func TestSpecAndStatusOfAPolicyAreApart(t *testing.T) {
	const ns = "policies"
	newNamespace(t, ns)
	client := in(ns, v1beta1.PoliciesResource)
	with := newObject(t, configMaps, "gold")
	with.Object["status"] = map[string]any{"objects": int64(5)}
	p, err := client.Create(t.Context(), with, metav1.CreateOptions{})
	if err != nil || p.Object["status"] != nil && len(p.Object["status"].(map[string]any)) > 0 || p.GetGeneration() != 1 {
		t.Fatalf("created as %v, %v", p, err)
	}
	patch := `{"spec":{"priority":9},"status":{"objects":3,"observedGeneration":1,"conditions":[{"type":"Accepted","status":"True","reason":"Fine","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if p, err = client.Patch(t.Context(), "gold", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	if _, there, _ := unstructured.NestedInt64(p.Object, "spec", "priority"); there || p.GetGeneration() != 1 {
		t.Errorf("a write of the status changed the spec: %v", p.Object["spec"])
	}
	if p, err = client.Patch(t.Context(), "gold", types.MergePatchType, []byte(`{"spec":{"priority":9},"status":null}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(p.Object, "status", "objects"); n != 3 || p.GetGeneration() != 2 {
		t.Errorf("after a write of the spec: generation %d, %d objects in the status", p.GetGeneration(), n)
	}
	if row := firstRow(t, "/apis/federation/v1beta1/namespaces/"+ns+"/placementpolicies"); !strings.HasPrefix(row, "gold ConfigMap <all> 3 True ") || !strings.HasSuffix(row, " 9 <none> Staged AllAtOnce") {
		t.Errorf("the table shows %q", row)
	}
}

// firstRow returns the cells of the first row of a path's table.
func firstRow(t *testing.T, path string) string {
	t.Helper()
	body, err := shared.kube.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) == 0 || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) {
		t.Fatalf("rows %v do not fit columns %v", table.Rows, table.ColumnDefinitions)
	}
	return strings.TrimSuffix(fmt.Sprintln(table.Rows[0].Cells...), "\n")
}

func TestReviewsAreAnsweredAndNotStored(t *testing.T) {
	client := shared.dynamic.Resource(v1beta1.FailoverReviewsResource)
	ask := func(cluster string) (*unstructured.Unstructured, error) {
		return client.Create(t.Context(), newObject(t, `{apiVersion: federation/v1beta1, kind: FailoverReview, spec: {clusters: [`+cluster+`]}, status: {unschedulable: 5}}`, ""), metav1.CreateOptions{})
	}
	answer, err := ask("east-a")
	if err != nil || fmt.Sprint(answer.Object["status"]) != "map[clusters:[east-a] replicasMoved:7]" {
		t.Errorf("answer %v, %v", answer, err)
	}
	if _, err := ask("unknown"); !apierrors.IsNotFound(err) {
		t.Errorf("an error that has a status comes as %v", err)
	}
	if _, err := ask("broken"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("an error without a status comes as %v", err)
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("a list: %v", err)
	}
}

func TestDividedObjectsComePlaced(t *testing.T) {
	controllers, err := dynamic.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"replicasets", "deployments", "statefulsets", "jobs"} {
		r := v1beta1.FederatedResources[slices.IndexFunc(v1beta1.FederatedResources, func(r schema.GroupVersionResource) bool { return r.Resource == resource })]
		u := newObject(t, federatedObjects[resource], "placed")
		u.SetLabels(map[string]string{"place": "decided"})
		made, err := in("default", r).Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil || made.GetAnnotations()[v1beta1.PlacementAnnotation] != "decided" {
			t.Errorf("%s: annotations %v, %v", resource, made.GetAnnotations(), err)
		}
		patch := `{"metadata":{"annotations":{"` + v1beta1.PlacementAnnotation + `":"{\"clusters\":{\"west\":2,\"east\":1,\"no\":0},\"unschedulable\":3}"}}}`
		if _, err := controllers.Resource(r).Namespace("default").Patch(t.Context(), "placed", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		row := firstRow(t, "/apis/"+r.Group+"/"+r.Version+"/namespaces/default/"+resource+"/placed")
		if !strings.HasSuffix(row, " east:1 west:2 unschedulable:3") {
			t.Errorf("%s: the table shows %q", resource, row)
		}
	}
}

const crontabs = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: example.com, scope: Namespaced,
 names: {kind: CronTab, plural: crontabs, singular: crontab, listKind: CronTabList},
 versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// A custom object that a policy selects has the finalizers, waits for its placement, and the controllers may write it.
func TestCustomObjectsAreFederatedByPolicy(t *testing.T) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := shared.dynamic.Resource(definitions).Create(t.Context(), newObject(t, crontabs, "crontabs.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	newNamespace(t, "custom")
	policy := newObject(t, `{apiVersion: federation/v1beta1, kind: PlacementPolicy, spec: {resourceSelectors: [{apiVersion: example.com/v1, kind: CronTab}]}}`, "tabs")
	if _, err := in("custom", v1beta1.PoliciesResource).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tabs := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
	for namespace, want := range map[string]string{"custom": v1beta1.PlacementPending, "default": ""} {
		var made *unstructured.Unstructured
		eventually(t, "a CronTab", func(ctx context.Context) (err error) {
			made, err = in(namespace, tabs).Create(ctx, newObject(t, `{apiVersion: example.com/v1, kind: CronTab, spec: {a: 1}}`, "nightly"), metav1.CreateOptions{})
			return err
		})
		if got := made.GetAnnotations()[v1beta1.PlacementAnnotation]; got != want || (len(made.GetFinalizers()) == 2) != (want != "") {
			t.Errorf("in %s: placement %q, finalizers %v", namespace, got, made.GetFinalizers())
		}
	}
	controllers, err := dynamic.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to change a CronTab", func(ctx context.Context) error {
		_, err := controllers.Resource(tabs).Namespace("custom").Patch(ctx, "nightly", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
		return err
	})
	patch := `{"metadata":{"annotations":{"` + v1beta1.ClusterSelectorAnnotation + `":"{"}}}`
	if _, err := in("custom", tabs).Patch(t.Context(), "nightly", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), v1beta1.ClusterSelectorAnnotation) {
		t.Errorf("a bad annotation: %v", err)
	}
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// A custom object says like others what happens to its copies, also in a dry-run delete.
func TestDeleteOfACustomObject(t *testing.T) {
	definition := strings.ReplaceAll(strings.ReplaceAll(crontabs, "crontab", "waketime"), "CronTab", "WakeTime")
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := shared.dynamic.Resource(definitions).Create(t.Context(), newObject(t, definition, "waketimes.example.com"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := in("default", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "waketimes"})
	for name, c := range map[string]struct {
		policies []metav1.DeletionPropagation
		dry      []string
		want     []string
	}{
		"none":       {policies: []metav1.DeletionPropagation{""}, want: []string{v1beta1.DeleteFromClustersFinalizer}},
		"orphan":     {policies: []metav1.DeletionPropagation{metav1.DeletePropagationOrphan}, want: []string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanMarkFinalizer}},
		"background": {policies: []metav1.DeletionPropagation{metav1.DeletePropagationBackground}, want: []string{v1beta1.DeleteFromClustersFinalizer}},
		"dry run":    {policies: []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground}, dry: []string{"All"}, want: []string{v1beta1.DeleteFromClustersFinalizer}},
	} {
		object := newObject(t, `{apiVersion: example.com/v1, kind: WakeTime}`, strings.ReplaceAll(name, " ", "-"))
		object.SetFinalizers([]string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer})
		eventually(t, "a WakeTime", func(ctx context.Context) error {
			_, err := client.Create(ctx, object, metav1.CreateOptions{})
			return err
		})
		for i, policy := range c.policies {
			options := deleteBy(policy)
			if i == 0 {
				options.DryRun = c.dry
			}
			if err := client.Delete(t.Context(), object.GetName(), options); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, client, object.GetName(), c.want)
		release(t, client, object.GetName())
	}
}
