package capacity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/capacity/room"
	"federation/controllers/fleettest/memapi"
)

// world is a member and the federation, with a watcher between them.
type world struct {
	*testing.T
	member *fake.Clientset
	api    *memapi.API
	stop   context.CancelFunc

	mu     sync.Mutex
	writes int
	fails  int
	delay  func() // what happens while the next write is on its way
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	w := &world{T: t, member: fake.NewSimpleClientset(objects...), api: memapi.New(memapi.Options{Resources: []memapi.Resource{
		{GroupVersionResource: v1beta1.ClustersResource, Kind: "Cluster", Status: true, Generation: true},
	}})}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "east"}}}
	if _, err := w.api.Client("user", nil).Resource(v1beta1.ClustersResource).Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.start()
	return w
}

// start is what a new connection does.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	client := w.api.Client("capacity", func(_ context.Context, q memapi.Request, do func() error) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if q.Writes() {
			w.writes++
			if w.fails > 0 {
				w.fails--
				return errors.New("the API is away")
			}
			if meanwhile := w.delay; meanwhile != nil {
				w.delay = nil
				meanwhile()
				err := do()
				if !apierrors.IsConflict(err) {
					w.Errorf("a write that was decided from an earlier version of the Cluster: %v, want a conflict", err)
				}
				return err
			}
		}
		return do()
	})
	failed := func(_ context.Context, resource string, err error) bool {
		w.Errorf("watch of %s: %v", resource, err)
		return true
	}
	if err := New(Options{Client: client}).watch(ctx, "east", w.member, nil, failed); err != nil {
		w.Fatal(err)
	}
	w.wait(time.Second)
}

func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// capacity is what the Cluster says, and how many writes that took since it was asked last.
func (w *world) capacity() (*v1beta1.ClusterCapacity, int) {
	w.Helper()
	c := &v1beta1.Cluster{}
	u := w.api.Get(v1beta1.ClustersResource, "", "east")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		w.Fatal(err)
	}
	if c.Status.Capacity == nil {
		w.Fatal("no capacity is written")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.writes
	w.writes = 0
	return c.Status.Capacity, n
}

func (w *world) put(p *corev1.Pod) {
	w.Helper()
	if _, err := w.member.CoreV1().Pods("default").Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func newNode(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

func newPod(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
	}}
}

func stuck(name string, kind schema.GroupVersionKind, owner, hash string) *corev1.Pod {
	p := newPod(name, "", "1")
	p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: owner}, kind)}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now()}}
	return p
}

func TestRoomIsReportedWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode("a", "4"), newPod("p", "a", "1"))
		defer func() { w.stop() }()
		c, writes := w.capacity()
		if c.Nodes != 1 || c.Requested.Cpu().String() != "1" || c.Free[0].Free.Cpu().String() != "3" || c.Free[0].Free.Pods().Value() != 9 || writes != 1 {
			t.Errorf("%d writes, %+v", writes, c)
		}
		w.wait(time.Hour)
		if _, writes := w.capacity(); writes != 0 {
			t.Errorf("%d writes while nothing changed", writes)
		}
		for i := range 100 {
			w.put(newPod(fmt.Sprint("more", i), "a", "10m"))
			w.wait(200 * time.Millisecond)
		}
		w.wait(6 * time.Second)
		if c, writes = w.capacity(); c.Requested.Cpu().String() != "2" || writes > 6 {
			t.Errorf("%d writes in 26 s, requested %v", writes, c.Requested)
		}
		w.stop()
		w.start()
		w.wait(10 * time.Second)
		if _, writes := w.capacity(); writes != 0 {
			t.Errorf("%d writes at a new connection with nothing new", writes)
		}
	})
}

func TestPodsWithoutRoomAreReportedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode("a", "1"))
		defer func() { w.stop() }()
		w.capacity()
		w.put(stuck("web-5f-1", appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "web-5f", "5f"))
		w.put(stuck("set-1", appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "set", "5f"))
		ahead := stuck("job-1", batchv1.SchemeGroupVersion.WithKind("Job"), "job", "")
		ahead.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(time.Hour)) // by the member's clock
		w.put(ahead)
		w.put(stuck("daemon-1", appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "daemon", ""))
		w.wait(58 * time.Second)
		if c, writes := w.capacity(); len(c.Unschedulable) != 0 || writes != 0 {
			t.Errorf("%d writes, too early: %v", writes, c.Unschedulable)
		}
		w.wait(4 * time.Second)
		c, _ := w.capacity()
		if got, want := fmt.Sprint(c.Unschedulable), "[{Deployment default web 1 } {Job default job 1 } {ReplicaSet default set 1 }]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if err := w.member.CoreV1().Pods("default").Delete(context.Background(), "job-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wait(7 * time.Second)
		if c, _ = w.capacity(); len(c.Unschedulable) != 2 {
			t.Errorf("%v, want 2", c.Unschedulable)
		}
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode("a", "4"))
		defer func() { w.stop() }()
		w.mu.Lock()
		w.fails = 2
		w.mu.Unlock()
		w.put(newPod("p", "a", "1"))
		w.wait(20 * time.Second)
		if c, _ := w.capacity(); c.Requested.Cpu().String() != "1" {
			t.Errorf("requested %v", c.Requested)
		}
	})
}

func TestHeartbeatsOfNodesAreNoNews(t *testing.T) {
	a, err := transform(newNode("a", "4"))
	if err != nil {
		t.Fatal(err)
	}
	beat := newNode("a", "4")
	beat.Status.Conditions[0].LastHeartbeatTime, beat.ResourceVersion = metav1.Now(), "7"
	b, err := transform(beat)
	if err != nil || !sameState(a, b) {
		t.Errorf("%v: %+v and %+v differ", err, a, b)
	}
	if again, err := transform(b); err != nil || again != b {
		t.Errorf("kept twice: %v, %v", again, err)
	}
	if _, err := transform(&corev1.Secret{}); err == nil {
		t.Error("a Secret is kept")
	}
	if room.UsableNode(beat) != true {
		t.Error("a ready node is not usable")
	}
}

// TestALateWriteReplacesNothing: a process that was paused with a write under way does not replace what another wrote meanwhile.
func TestALateWriteReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode("a", "4"))
		defer func() { w.stop() }()
		w.mu.Lock()
		w.delay = func() {
			u := w.api.Get(v1beta1.ClustersResource, "", "east").DeepCopy()
			_ = unstructured.SetNestedField(u.Object, int64(7), "status", "capacity", "nodes")
			if _, err := w.api.Client("another process", nil).Resource(v1beta1.ClustersResource).UpdateStatus(context.Background(), u, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}
		w.mu.Unlock()
		w.put(newPod("p", "a", "1"))
		w.wait(20 * time.Second)
		if c, _ := w.capacity(); c.Nodes != 1 || c.Requested.Cpu().String() != "1" {
			t.Errorf("%+v is written: it is to read the Cluster again, and to write what it sees", c)
		}
	})
}
