package servertest

import (
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/housekeeping"
)

// A Service keeps its given cluster IP, and its managed fields, whatever clients do with it.
func TestAServiceKeepsTheClusterIPThatItIsGiven(t *testing.T) {
	services := shared.kube.CoreV1().Services("default")
	made, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	given := (v1beta1.ServiceIPs{Namespace: "default", Name: "given"}).ClusterIPs()
	is := func(step string, s *corev1.Service, err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if !slices.Equal(s.Spec.ClusterIPs, want) || len(want) > 0 && s.Spec.ClusterIP != want[0] {
			t.Errorf("%s: clusterIP %q, clusterIPs %q, want %q", step, s.Spec.ClusterIP, s.Spec.ClusterIPs, want)
		}
	}
	is("created", made, nil, given...)
	replaced := made.DeepCopy()
	replaced.Spec.ClusterIP, replaced.Spec.ClusterIPs, replaced.ResourceVersion = "", nil, ""
	s, err := services.Update(t.Context(), replaced, metav1.UpdateOptions{})
	is("replaced by a manifest without", s, err, given...)
	s, err = services.Patch(t.Context(), "given", types.StrategicMergePatchType, []byte(`{"spec":{"clusterIP":"","clusterIPs":null,"sessionAffinity":"ClientIP"}}`), metav1.PatchOptions{})
	is("patched, with nothing", s, err, given...)
	apply := applycorev1.Service("given", "default").WithSpec(applycorev1.ServiceSpec().WithSelector(map[string]string{"app": "web"}))
	s, err = services.Apply(t.Context(), apply, metav1.ApplyOptions{FieldManager: "flux", Force: true})
	is("applied", s, err, given...)
	s, err = services.Apply(t.Context(), applycorev1.Service("given", "default"), metav1.ApplyOptions{FieldManager: "flux", Force: true})
	is("applied with nothing in it", s, err, given...)
	s, err = services.Patch(t.Context(), "given", types.MergePatchType, []byte(`{"spec":{"type":"ExternalName","externalName":"web.example.com"}}`), metav1.PatchOptions{})
	is("made a name", s, err)
	s, err = services.Patch(t.Context(), "given", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP","externalName":null}}`), metav1.PatchOptions{})
	is("and back", s, err, given...)
	for _, to := range []string{"None", "10.96.0.1"} {
		if _, err = services.Patch(t.Context(), "given", types.MergePatchType, []byte(`{"spec":{"clusterIP":"`+to+`"}}`), metav1.PatchOptions{}); err == nil {
			t.Errorf("a user changes the cluster IP to %s", to)
		}
	}
	unsaved, err := services.Patch(t.Context(), "given", types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.ClusterSetIPAnnotation+`":"auto"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
	is("asks for a clusterset IP", unsaved, err)
}

// A Service from before the federation gave cluster IPs gets one without anybody's doing.
func TestServicesOfBeforeAreGivenClusterIPs(t *testing.T) {
	services := shared.kube.CoreV1().Services("default")
	made, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "of-before"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(shared.dataDir, "etcd.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	const key = "/registry/services/specs/default/of-before"
	stored, err := client.Get(t.Context(), key)
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("%v, %d values", err, len(stored.Kvs))
	}
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	before := &corev1.Service{}
	if _, _, err := serializer.Decode(stored.Kvs[0].Value, nil, before); err != nil {
		t.Fatal(err)
	}
	before.Spec.ClusterIP, before.Spec.ClusterIPs = "", nil
	value, err := runtime.Encode(serializer, before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), key, string(value)); err != nil {
		t.Fatal(err)
	}
	if s, err := services.Get(t.Context(), "of-before", metav1.GetOptions{}); err != nil || s.Spec.ClusterIP != "" {
		t.Fatalf("%q, %v", s.Spec.ClusterIP, err)
	}
	if err := housekeeping.GiveClusterIPs(t.Context(), shared.kube.CoreV1()); err != nil {
		t.Fatal(err)
	}
	given, err := services.Get(t.Context(), "of-before", metav1.GetOptions{})
	if err != nil || given.Spec.ClusterIP != made.Spec.ClusterIP {
		t.Errorf("%q, %v; want %q", given.Spec.ClusterIP, err, made.Spec.ClusterIP)
	}
	if err := housekeeping.GiveClusterIPs(t.Context(), shared.kube.CoreV1()); err != nil {
		t.Fatal(err)
	}
	if again, err := services.Get(t.Context(), "of-before", metav1.GetOptions{}); err != nil || again.ResourceVersion != given.ResourceVersion {
		t.Errorf("it is written again: %v", err)
	}
}
