package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
)

// fleet makes the objects of a generated fleet: an administrator makes them, and what is decided is written in the name
// of the federation's controllers, which do not run.
type fleet struct {
	admin, controllers dynamic.Interface
	kube               kubernetes.Interface
}

// member returns the Cluster number i of a fleet of n: each region has two zones of up to 32 clusters.
func member(i, n int) *v1beta1.Cluster {
	size := max(1, min(32, n/4))
	place := i / size
	region, zone := fmt.Sprintf("region-%c", 'a'+place/2%26), fmt.Sprintf("%c", 'a'+place%2)
	c := &v1beta1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%02d", strings.TrimPrefix(region, "region-"), zone, i%size)},
		Spec:       v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "127.0.0.1:9"}}},
	}
	since := metav1.NewTime(time.Now().Add(-12 * 24 * time.Hour).Truncate(time.Second))
	amounts := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods)}
	}
	c.Status = v1beta1.ClusterStatus{
		Region: region, Zones: []string{zone}, KubernetesVersion: "v1.36.3", UID: fmt.Sprint(i),
		Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonClusterReady, LastTransitionTime: since}},
		Capacity:   &v1beta1.ClusterCapacity{ObservedAt: since, Nodes: 50, Allocatable: amounts("400", "1600Gi", "5500"), Requested: amounts(fmt.Sprint(200+i%150), "900Gi", "2100")},
		Failover:   &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Since: since},
	}
	return c
}

// lose makes a cluster look lost in one of the ways that there are.
func lose(c *v1beta1.Cluster, phase v1beta1.FailoverPhase, message string) {
	since := metav1.NewTime(time.Now().Add(-4 * time.Minute).Truncate(time.Second))
	if phase != v1beta1.PhaseFailingBack {
		c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse, Reason: v1beta1.ReasonClusterNotReachable, LastTransitionTime: since, Message: "dial tcp 127.0.0.1:9: connection refused"}}
	}
	c.Status.Failover = &v1beta1.ClusterFailover{Phase: phase, Since: since, Percent: 10, Message: message}
}

// clusters makes n Clusters; each changes them before they are made.
func (f *fleet) clusters(n int, each func(i int, c *v1beta1.Cluster)) error {
	group := &errgroup.Group{}
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			c := member(i, n)
			if each != nil {
				each(i, c)
			}
			return f.put(c)
		})
	}
	return group.Wait()
}

// put makes a Cluster with its status, or gives one that exists that status.
func (f *fleet) put(c *v1beta1.Cluster) error {
	return retryOnce(func() error {
		if _, err := f.admin.Resource(v1beta1.ClustersResource).Create(context.Background(), unstructuredOf(c), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		return f.change(c)
	})
}

// change gives a Cluster that exists its status.
func (f *fleet) change(c *v1beta1.Cluster) error {
	patch, err := json.Marshal(map[string]any{"status": c.Status})
	if err != nil {
		return err
	}
	_, err = f.controllers.Resource(v1beta1.ClustersResource).Patch(context.Background(), c.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func retryOnce(do func() error) error {
	if err := do(); err == nil || !apierrors.IsConflict(err) {
		return err
	}
	return do()
}

// deployment makes a Deployment of as many replicas as the placement has.
func (f *fleet) deployment(namespace, name string, placement map[string]int64, why string) error {
	d, placed := deploymentOf(namespace, name, placement, why)
	if _, err := f.kube.AppsV1().Deployments(namespace).Create(context.Background(), d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.annotate(appsv1.SchemeGroupVersion.WithResource("deployments"), namespace, name, v1beta1.PlacementAnnotation, placed)
}

// deploymentOf returns a Deployment of as many replicas as the placement has, and what the federation writes of the placement.
func deploymentOf(namespace, name string, placement map[string]int64, why string) (d *appsv1.Deployment, placed string) {
	replicas := int32(0)
	for _, n := range placement {
		replicas += int32(n)
	}
	p := &v1beta1.Placement{Clusters: placement, History: []v1beta1.PlacementDecision{{At: metav1.NewTime(time.Now().Add(-2 * time.Hour).Truncate(time.Second)), Cause: why}}}
	for cluster, n := range placement {
		p.History[0].Changes = append(p.History[0].Changes, v1beta1.PlacementChange{Cluster: cluster, To: n})
	}
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		}},
	}, p.String()
}

// teams is how many namespaces objects are made in.
const teams = 100

// objects makes n objects: namespaces, and Deployments in them, each in three of as many clusters.
func (f *fleet) objects(n, clusters int) error {
	for i := range teams {
		if err := f.namespace(fmt.Sprintf("team-%02d", i)); err != nil {
			return err
		}
	}
	group := &errgroup.Group{}
	group.SetLimit(32)
	for i := range n - teams {
		group.Go(func() error {
			placement := map[string]int64{}
			for j := range 3 {
				placement[member((i+j*clusters/3)%clusters, clusters).Name] = int64(1 + i%5)
			}
			d, placed := deploymentOf(fmt.Sprintf("team-%02d", i%teams), fmt.Sprintf("service-%05d", i), placement, "created")
			d.Annotations = map[string]string{v1beta1.PlacementAnnotation: placed}
			_, err := f.controllers.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(d.Namespace).Create(context.Background(), unstructuredOf(d), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// info publishes the federation's configuration, as its controllers do.
func (f *fleet) info() error {
	info := v1beta1.Info{Name: "prod", DNSZone: "example.com", DNSTTL: 15 * time.Second, FailoverMaxZones: 1, FailoverWindow: time.Minute, CrossClusterEndpoints: true}
	m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap}, Data: info.ConfigMapData()}
	_, err := f.controllers.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(m.Namespace).Create(context.Background(), unstructuredOf(m), metav1.CreateOptions{})
	return err
}

// service makes a Service of type LoadBalancer with an address in each of the clusters.
func (f *fleet) service(namespace, name string, clusters ...string) error {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	if _, err := f.kube.CoreV1().Services(namespace).Create(context.Background(), s, metav1.CreateOptions{}); err != nil {
		return err
	}
	serve := v1beta1.ServiceIngresses{}
	for i, c := range clusters {
		serve.Items = append(serve.Items, v1beta1.ClusterServiceIngress{Cluster: c, Items: []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("192.0.2.%d", i+1)}}})
	}
	return f.annotate(corev1.SchemeGroupVersion.WithResource("services"), namespace, name, v1beta1.ServiceIngressesAnnotation, serve.String())
}

// ingress makes an Ingress of class federation with two paths of a host: to a Service, and to one that does not exist.
func (f *fleet) ingress(namespace, name, service string) error {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: new(v1beta1.IngressClassName)}}
	paths := &networkingv1.HTTPIngressRuleValue{}
	for _, to := range []struct{ path, service string }{{"/", service}, {"/old", "old"}} {
		paths.Paths = append(paths.Paths, networkingv1.HTTPIngressPath{Path: to.path, PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: to.service, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}})
	}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: "www.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: paths}}}
	_, err := f.kube.NetworkingV1().Ingresses(namespace).Create(context.Background(), i, metav1.CreateOptions{})
	return err
}

// balancer registers one of the federation's load balancers, which died that long ago; 0 keeps it alive for longer than a test takes.
func (f *fleet) balancer(name, region string, ago time.Duration) error {
	if ago == 0 {
		ago = -time.Hour
	}
	says := fmt.Sprintf(`{"region":%q,"zone":"a","addresses":["192.0.2.80"]}`, region)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.LoadBalancersNamespace, Name: name, Annotations: map[string]string{v1beta1.LoadBalancerAnnotation: says}}}
	l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-ago)))
	_, err := f.kube.CoordinationV1().Leases(l.Namespace).Create(context.Background(), l, metav1.CreateOptions{})
	return err
}

// annotate writes what the federation has decided about an object.
func (f *fleet) annotate(r schema.GroupVersionResource, namespace, name, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	_, err = f.controllers.Resource(r).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// readiness makes a FailoverReadiness.
func (f *fleet) readiness(spec v1beta1.FailoverReadinessSpec, status v1beta1.FailoverReadinessStatus) error {
	r := &v1beta1.FailoverReadiness{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverReadiness"}, ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ReadinessName(spec)}, Spec: spec}
	return f.withStatus(f.controllers, unstructuredOf(r), status, v1beta1.ReadinessResource)
}

// withStatus has a client make one of our objects, and gives it its status.
func (f *fleet) withStatus(by dynamic.Interface, u *unstructured.Unstructured, status any, r schema.GroupVersionResource) error {
	if _, err := by.Resource(r).Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = f.controllers.Resource(r).Patch(context.Background(), u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// event makes an event of an object.
func (f *fleet) event(namespace string, of corev1.ObjectReference, reason, message string) error {
	now := metav1.Now()
	_, err := f.kube.CoreV1().Events(namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "event-"}, InvolvedObject: of, Reason: reason, Message: message, Type: corev1.EventTypeWarning,
		FirstTimestamp: now, LastTimestamp: now, Count: 3,
	}, metav1.CreateOptions{})
	return err
}

func (f *fleet) namespace(name string) error {
	_, err := f.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func unstructuredOf(object any) *unstructured.Unstructured {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	delete(m, "status")
	return &unstructured.Unstructured{Object: m}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
