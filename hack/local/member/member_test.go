package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// asMember makes the test's own program be a member: a member can be killed only if it is a process.
const asMember = "TEST_AS_MEMBER"

func TestMain(m *testing.M) {
	if os.Getenv(asMember) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// testMember is a member in a process of its own.
type testMember struct {
	t    *testing.T
	dir  string
	port int
	cmd  *exec.Cmd
	kube kubernetes.Interface
}

func newTestMember(t *testing.T) *testMember {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &testMember{t: t, dir: t.TempDir(), port: l.Addr().(*net.TCPAddr).Port}
}

func (m *testMember) start() {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(os.Args[0], "--name=east-a", "--region=east", "--zone=a", "--data-dir="+m.dir,
		"--port="+strconv.Itoa(m.port), "--lb-cidr=192.0.2.0/24", "--nodes=2")
	m.cmd.Env = append(os.Environ(), asMember+"=yes")
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(m.kill)
	m.eventually("the API answers", func() error {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(m.dir, "kubeconfig"))
		if err != nil {
			return err
		}
		config.QPS = -1
		if m.kube, err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
		_, err = m.kube.CoreV1().ServiceAccounts("default").Get(context.Background(), "default", metav1.GetOptions{})
		return err
	})
}

func (m *testMember) kill() {
	_ = m.cmd.Process.Kill() // it may be dead already
	_ = m.cmd.Wait()
}

func (m *testMember) eventually(what string, check func() error) {
	m.t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	m.t.Fatalf("never: %s: %v\n%s", what, err, log[max(0, len(log)-4000):])
}

// readyEndpoints counts the endpoints of the Service web that are ready.
func (m *testMember) readyEndpoints(want int) func() error {
	return func() error {
		slices, err := m.kube.DiscoveryV1().EndpointSlices("default").List(context.Background(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if *e.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != want {
			return fmt.Errorf("%d endpoints are ready, want %d", ready, want)
		}
		return nil
	}
}

// addresses are those of the Service and the Ingress web.
func (m *testMember) addresses() (service, ingress string, err error) {
	s, err := m.kube.CoreV1().Services("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		return "", "", err
	}
	i, err := m.kube.NetworkingV1().Ingresses("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		return "", "", err
	}
	if len(s.Status.LoadBalancer.Ingress) != 1 || len(i.Status.LoadBalancer.Ingress) != 1 {
		return "", "", fmt.Errorf("Service has %v, Ingress %v", s.Status.LoadBalancer.Ingress, i.Status.LoadBalancer.Ingress)
	}
	return s.Status.LoadBalancer.Ingress[0].IP, i.Status.LoadBalancer.Ingress[0].IP, nil
}

func (m *testMember) createWeb(replicas int32) {
	m.t.Helper()
	labels := map[string]string{"app": "web"}
	own := map[string]string{"app": "web", "of": "deployment"} // so that it adopts no other pod
	meta := metav1.ObjectMeta{Name: "web", Labels: labels}
	backend := networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}
	ctx, opts := context.Background(), metav1.CreateOptions{}
	_, err := m.kube.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: own},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}},
	}}, opts)
	if err == nil {
		_, err = m.kube.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: labels,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}}, opts)
	}
	if err == nil {
		_, err = m.kube.NetworkingV1().Ingresses("default").Create(ctx, &networkingv1.Ingress{ObjectMeta: meta,
			Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &backend}}}, opts)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// breakPods writes into the status of n pods that they are not ready.
func (m *testMember) breakPods(n int) {
	m.t.Helper()
	pods, err := m.kube.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, pod := range pods.Items[:n] {
		_, err := m.kube.CoreV1().Pods("default").Patch(context.Background(), pod.Name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestMemberIsACluster(t *testing.T) {
	m := newTestMember(t)
	m.start()
	m.createWeb(5)
	m.eventually("five endpoints are ready", m.readyEndpoints(5))
	var service, ingress string
	m.eventually("Service and Ingress get addresses", func() (err error) {
		service, ingress, err = m.addresses()
		return err
	})
	if service == ingress {
		t.Errorf("Service and Ingress share the address %s", service)
	}
	m.breakPods(2)
	m.eventually("two endpoints are not ready", m.readyEndpoints(3))
	nodes, err := m.kube.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{
		LabelSelector: corev1.LabelTopologyRegion + "=east," + corev1.LabelTopologyZone + "=a"})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("want 2 nodes in region east, zone a, have %d: %v", len(nodes.Items), err)
	}

	m.kill()
	m.start()
	m.createPod() // it becomes ready, so the simulated kubelets are at work again
	m.eventually("what was not ready before the kill still is not", m.readyEndpoints(4))
	if s, i, err := m.addresses(); err != nil || s != service || i != ingress {
		t.Errorf("addresses were %s and %s, after a kill they are %s and %s: %v", service, ingress, s, i, err)
	}
}

// createPod makes one more pod behind the Service web, which is not the Deployment's.
func (m *testMember) createPod() {
	m.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one-more", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
	if _, err := m.kube.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}
