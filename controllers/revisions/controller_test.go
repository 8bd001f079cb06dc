package revisions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/util/deployment"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/servertest"
	"federation/clusterregistry/wire"
)

// kube is a client of a federation's API server with the controller beside it, by the rights that controllers have there.
var kube kubernetes.Interface

func TestMain(m *testing.M) {
	servertest.Main(m, func(ctx context.Context, r *servertest.Running) error {
		kube = r.Kube
		return run(ctx, r.Server.ControllersConfig())
	})
}

// run runs the controller with informers as those of the federation's process.
func run(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	typed, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := wire.NewInformers(wire.Source{Kube: typed, Dynamic: client, Slim: func(metav1.Object) {}})
	kept := wire.NewInformers(wire.Source{Kube: typed, Dynamic: client, Slim: Slim, Select: Select})
	c, err := New(Options{Client: client, Informers: shared.ForResource, Kept: kept.ForResource, Recorder: record.NewFakeRecorder(1000)})
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	kept.Start(ctx.Done())
	go func() { _ = c.Run(ctx) }() // it has no errors
	return nil
}

const pods = `
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
`

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// namespace makes one for a test.
func namespace(t *testing.T, name string) string {
	t.Helper()
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// until waits for what says nothing more.
func until(t *testing.T, what func() string) {
	t.Helper()
	said := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if said = what(); said == "" {
			return
		}
	}
	t.Fatal(said)
}

// history has the numbers of the revisions of a workload as kubectl finds them, and the image of each.
func history(t *testing.T, kind, ns string) string {
	t.Helper()
	viewer, err := polymorphichelpers.HistoryViewerFor(appsv1.SchemeGroupVersion.WithKind(kind).GroupKind(), kube)
	if err != nil {
		t.Fatal(err)
	}
	all, err := viewer.GetHistory(ns, "web")
	if err != nil {
		return err.Error()
	}
	var lines []string
	for number := range all {
		text, err := viewer.ViewHistory(ns, "web", number)
		if err != nil {
			return err.Error()
		}
		_, image, _ := strings.Cut(text, "Image:")
		lines = append(lines, fmt.Sprint(number, " ", strings.Fields(image)[0]))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func isHistory(t *testing.T, kind, ns, want string) {
	t.Helper()
	until(t, func() string {
		if got := history(t, kind, ns); got != want {
			return fmt.Sprintf("history of the %s: %q, want %q", kind, got, want)
		}
		return ""
	})
}

// undo is `kubectl rollout undo`.
func undo(t *testing.T, kind string, o runtime.Object, to int64) string {
	t.Helper()
	r, err := polymorphichelpers.RollbackerFor(appsv1.SchemeGroupVersion.WithKind(kind).GroupKind(), kube)
	if err != nil {
		t.Fatal(err)
	}
	said, err := r.Rollback(o, nil, to, cmdutil.DryRunNone)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// TestDeployment: history, undo and what Helm 3 waits for, as kubectl and Helm find them.
func TestDeployment(t *testing.T) {
	ns := namespace(t, "deployment")
	to := kube.AppsV1().Deployments(ns)
	made, err := to.Create(t.Context(), parse[appsv1.Deployment](t, `metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  replicas: 3`+pods), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(body string, sub ...string) *appsv1.Deployment {
		t.Helper()
		d, err := to.Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	isHistory(t, "Deployment", ns, "1 web:1")
	patch(`{"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}`, "status")
	until(t, func() string {
		_, _, newest, err := deployment.GetAllReplicaSets(made, kube.AppsV1())
		if err != nil || newest == nil || newest.Status.ReadyReplicas != 3 || *newest.Spec.Replicas != 3 || newest.Status.ObservedGeneration != newest.Generation {
			return fmt.Sprintf("the ReplicaSet of the newest template: %v (%v)", newest, err)
		}
		if len(newest.Finalizers) > 0 || newest.Annotations[v1beta1.PlacementAnnotation] != "" {
			return "the revision is federated: " + newest.String()
		}
		return ""
	})
	set := `{"metadata":{"annotations":{"kubernetes.io/change-cause":"second","federation.kubernetes.io/deployment-preferences":"{\"rebalance\":true}"}},"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
	patch(set)
	isHistory(t, "Deployment", ns, "1 web:1, 2 web:2")
	until(t, func() string { // where pods go is no part of a revision
		_, old, _, err := deployment.GetAllReplicaSets(patch(`{}`), kube.AppsV1())
		if err != nil || len(old) != 1 || old[0].Annotations[v1beta1.DeploymentPreferencesAnnotation] == "" {
			return fmt.Sprintf("the old revision: %v (%v)", old, err)
		}
		return ""
	})
	if said := undo(t, "Deployment", made, 0); said != "rolled back" {
		t.Error(said)
	}
	isHistory(t, "Deployment", ns, "2 web:2, 3 web:1")
	until(t, func() string {
		back := patch(`{}`)
		if a := back.Annotations; a["kubernetes.io/change-cause"] != "first" || a[v1beta1.DeploymentPreferencesAnnotation] == "" || a["deployment.kubernetes.io/revision"] != "3" {
			return fmt.Sprintf("rolled back, the Deployment has the annotations %v", a)
		}
		return ""
	})
	if said := undo(t, "Deployment", made, 3); !strings.HasPrefix(said, "skipped rollback") {
		t.Error(said)
	}
	patch(`{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"web","image":"web:4"}]}}}}`)
	time.Sleep(time.Second)
	isHistory(t, "Deployment", ns, "2 web:2, 3 web:1")
	patch(`{"spec":{"paused":false,"revisionHistoryLimit":1}}`)
	isHistory(t, "Deployment", ns, "3 web:1, 4 web:4")
}

// TestControllerRevisions: the same for the kinds whose revisions these are.
func TestControllerRevisions(t *testing.T) {
	ns := namespace(t, "others")
	set, err := kube.AppsV1().StatefulSets(ns).Create(t.Context(), parse[appsv1.StatefulSet](t, "metadata: {name: web}\nspec:\n  serviceName: web"+pods), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	daemons, err := kube.AppsV1().DaemonSets(ns).Create(t.Context(), parse[appsv1.DaemonSet](t, "metadata: {name: web}\nspec:"+pods), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const second = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
	for _, kind := range []struct {
		name   string
		object runtime.Object
		patch  func(body string) error
	}{
		{"StatefulSet", set, func(body string) error {
			_, err := kube.AppsV1().StatefulSets(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}},
		{"DaemonSet", daemons, func(body string) error {
			_, err := kube.AppsV1().DaemonSets(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}},
	} {
		isHistory(t, kind.name, ns, "1 web:1")
		if err := kind.patch(second); err != nil {
			t.Fatal(err)
		}
		isHistory(t, kind.name, ns, "1 web:1, 2 web:2")
		if said := undo(t, kind.name, kind.object, 0); said != "rolled back" {
			t.Error(kind.name, said)
		}
		isHistory(t, kind.name, ns, "2 web:2, 3 web:1")
		if said := undo(t, kind.name, kind.object, 3); !strings.HasPrefix(said, "skipped rollback") {
			t.Error(kind.name, said)
		}
	}
}

// TestNothingIsLeft: revisions go with their workload, and where it leaves them behind.
func TestNothingIsLeft(t *testing.T) {
	ns := namespace(t, "left")
	to := kube.AppsV1().Deployments(ns)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		if _, err := to.Create(t.Context(), parse[appsv1.Deployment](t, "metadata: {name: web}\nspec:"+pods), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		isHistory(t, "Deployment", ns, "1 web:1")
		if err := to.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		finish := func() { // as the other controllers do when no cluster has a copy any more
			_, err := to.Patch(t.Context(), "web", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		if policy == metav1.DeletePropagationBackground {
			finish()
		}
		until(t, func() string {
			left, err := kube.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) > 0 {
				return fmt.Sprintf("%s: left are %v (%v)", policy, left, err)
			}
			return ""
		})
		if policy != metav1.DeletePropagationBackground {
			finish()
		}
	}
}

// TestABurstIsNoFlood: a template that is changed very often leaves few revisions, and no more than there may be.
func TestABurstIsNoFlood(t *testing.T) {
	ns := namespace(t, "burst")
	to := kube.AppsV1().Deployments(ns)
	if _, err := to.Create(t.Context(), parse[appsv1.Deployment](t, "metadata: {name: web}\nspec:\n  revisionHistoryLimit: 2"+pods), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	isHistory(t, "Deployment", ns, "1 web:1")
	for n := range 100 {
		if _, err := to.Patch(t.Context(), "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"n":"%d"}}}}}`, n), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() string {
		all, err := kube.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil || !slices.ContainsFunc(all.Items, func(r appsv1.ReplicaSet) bool { return r.Spec.Template.Annotations["n"] == "99" }) {
			return fmt.Sprintf("the last template has no revision: %v (%v)", all, err)
		}
		if len(all.Items) > 3 {
			return fmt.Sprintf("%d revisions are kept", len(all.Items))
		}
		return ""
	})
	is, err := to.Get(t.Context(), "web", metav1.GetOptions{})
	if number := is.Annotations["deployment.kubernetes.io/revision"]; err != nil || len(number) > 2 {
		t.Errorf("100 changes in a row made %s revisions (%v)", number, err)
	}
}
