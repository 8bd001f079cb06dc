package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
)

// federation is the API of a federation without controllers: what these and users write, the bench writes.
type federation struct {
	dir    string
	server *process
	// admin and controllers are clients of the administrator, and of the federation's controllers.
	admin, controllers kubernetes.Interface
}

const namespace = "shop"

// startFederation starts an API server, which keeps its data in dir, and fills it with clusters.
func startFederation(ctx context.Context, bin, dir string) (f *federation, err error) {
	f = &federation{dir: dir}
	if f.server, err = start(exec.Command(filepath.Join(bin, "federation"), "apiserver", "--data-dir", dir, "--bind-address", "127.0.0.1", "--secure-port", "0"), filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := f.fill(ctx); err != nil {
		f.stop()
		return nil, f.server.fault(err)
	}
	return f, nil
}

func (f *federation) stop() { f.server.end() }

// kubeconfig is that of the administrator.
func (f *federation) kubeconfig() string { return filepath.Join(f.dir, "admin.kubeconfig") }

// fill writes what there is before any host: how the federation is set up, and its clusters.
func (f *federation) fill(ctx context.Context) error {
	if err := f.connect(ctx); err != nil {
		return err
	}
	info := v1beta1.Info{Name: "bench", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverWindow: time.Minute}
	if _, err := f.admin.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.InfoConfigMap}, Data: info.ConfigMapData()}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := f.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig())
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	clusters := client.Resource(v1beta1.ClustersResource)
	for n := range manyClusters {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.Cluster{
			TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: clusterName(n)},
			Spec: v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: clusterAddress(n) + ":6443"}}, SecretRef: &corev1.LocalObjectReference{Name: clusterName(n)}},
			Status: v1beta1.ClusterStatus{
				Region: fmt.Sprint("r", n/10), Zones: []string{fmt.Sprint("z", n)},
				Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
			},
		})
		if err != nil {
			return err
		}
		made, err := clusters.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Object["status"] = content["status"]
		if _, err := clusters.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// connect waits until the API server is ready.
func (f *federation) connect(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		for file, client := range map[string]*kubernetes.Interface{f.kubeconfig(): &f.admin, filepath.Join(f.dir, "controllers.kubeconfig"): &f.controllers} {
			config, err := clientcmd.BuildConfigFromFlags("", file)
			if err != nil {
				return false, nil // the file is not there yet
			}
			config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
			if *client, err = kubernetes.NewForConfig(config); err != nil {
				return false, err
			}
		}
		return f.admin.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

func clusterName(n int) string    { return fmt.Sprint("c", n) }
func clusterAddress(n int) string { return fmt.Sprint("192.0.2.", n+1) }

// clusterNetwork has the addresses of clusters, all of which are the bench's own.
const clusterNetwork = "192.0.2.0/24"

// hostName is the n-th host; the first is the one that the load asks for.
func hostName(n int) string {
	if n == 0 {
		return host
	}
	return fmt.Sprintf("h%d.example.test", n)
}

func serviceName(n int) string { return fmt.Sprint("web", n) }

// ingressOf is the n-th Ingress. Its generations differ by a path.
func ingressOf(n, generation int) *networkingv1.Ingress {
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: serviceName(n), Port: networkingv1.ServiceBackendPort{Number: backendPort}}}
	path := func(path string) networkingv1.HTTPIngressPath {
		return networkingv1.HTTPIngressPath{Path: path, PathType: new(networkingv1.PathTypePrefix), Backend: backend}
	}
	i := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName(n)},
		Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName), Rules: []networkingv1.IngressRule{{
			Host: hostName(n), IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path("/some"), path(generationPath(generation))}}},
		}}},
	}
	if n == 0 {
		i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: certificateSecret}}
	}
	return i
}

func generationPath(generation int) string { return fmt.Sprint("/v", generation) }

const certificateSecret = "certificate"

// reported is what the federation says that clusters have of a Service.
func reported(clusters ...int) (all v1beta1.ServiceIngresses) {
	for _, n := range clusters {
		all.Items = append(all.Items, v1beta1.ClusterServiceIngress{Cluster: clusterName(n), Items: []corev1.LoadBalancerIngress{{IP: clusterAddress(n)}}})
	}
	return all
}

func allClusters() (all []int) {
	for n := range manyClusters {
		all = append(all, n)
	}
	return all
}

// addHost adds the n-th Ingress and its Service, which these clusters have.
func (f *federation) addHost(ctx context.Context, n int, clusters ...int) error {
	if _, err := f.admin.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(n)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": serviceName(n)}, Ports: []corev1.ServicePort{{Port: backendPort}}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := f.report(ctx, n, clusters...); err != nil {
		return err
	}
	_, err := f.admin.NetworkingV1().Ingresses(namespace).Create(ctx, ingressOf(n, 1), metav1.CreateOptions{})
	return err
}

// report writes what the federation does: that these clusters have the n-th Service.
func (f *federation) report(ctx context.Context, n int, clusters ...int) error {
	return f.reportOf(ctx, serviceName(n), clusters...)
}

func (f *federation) reportOf(ctx context.Context, service string, clusters ...int) error {
	return f.reportItems(ctx, service, reported(clusters...))
}

func (f *federation) reportItems(ctx context.Context, service string, items v1beta1.ServiceIngresses) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.ServiceIngressesAnnotation: items.String()}}})
	if err != nil {
		return err
	}
	_, err = f.controllers.CoreV1().Services(namespace).Patch(ctx, service, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// addCertificate adds the Secret that the first Ingress names.
func (f *federation) addCertificate(ctx context.Context, c *certificate) error {
	_, err := f.admin.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: certificateSecret}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: c.public, corev1.TLSPrivateKeyKey: c.private},
	}, metav1.CreateOptions{})
	return err
}
