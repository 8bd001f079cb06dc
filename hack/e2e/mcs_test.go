package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	mcsGroup       = schema.GroupVersion{Group: mcsv1beta1.GroupName, Version: mcsv1beta1.GroupVersion.Version}
	serviceExports = mcsGroup.WithResource(mcsv1beta1.ServiceExportPluralName)
	serviceImports = mcsGroup.WithResource(mcsv1beta1.ServiceImportPluralName)
)

// takePart has all members join so that Services are exported and imported, until the test ends.
func takePart(t *testing.T) {
	t.Helper()
	for _, member := range names {
		t.Cleanup(func() { joinAgain(t, member, "--with-mcs=false") })
		joinAgain(t, member, "--with-mcs", "--network", "flat")
	}
}

// export exports a Service of a cluster until the test ends.
func export(t *testing.T, at dynamic.Interface, namespace, name string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": mcsGroup.String(), "kind": "ServiceExport", "metadata": map[string]any{"name": name}}}
	exports := at.Resource(serviceExports).Namespace(namespace)
	if _, err := exports.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return exports.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// imported returns the ServiceImport of a member, or what is wrong with it: it is to have an address, that of the derived Service.
func imported(t *testing.T, member, namespace, name string) (is *mcsv1beta1.ServiceImport, wrong string) {
	t.Helper()
	u, err := s.members[member].dyn.Resource(serviceImports).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Sprintf("%s: %v", member, err)
	}
	is = &mcsv1beta1.ServiceImport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, is); err != nil {
		t.Fatal(err)
	}
	derived, err := s.members[member].client.CoreV1().Services(namespace).Get(t.Context(), v1beta1.DerivedServicePrefix+name, metav1.GetOptions{})
	if err != nil || !slices.Equal(is.Spec.IPs, derived.Spec.ClusterIPs) || !meta.IsStatusConditionTrue(is.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
		return is, fmt.Sprintf("%s: import %+v, derived Service %+v, %v", member, is.Spec, derived, err)
	}
	return is, ""
}

// exportedEndpoints waits until the members have so many ready endpoints of each cluster for a Service, and returns how long that took.
func exportedEndpoints(t *testing.T, namespace, name string, want map[string]int, members ...string) time.Duration {
	t.Helper()
	return eventually(t, 60*time.Second, func() string {
		for _, member := range members {
			list, err := s.members[member].client.DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + v1beta1.DerivedServicePrefix + name})
			if err != nil {
				return err.Error()
			}
			got := map[string]int{}
			for _, slice := range list.Items {
				for _, e := range slice.Endpoints {
					if *e.Conditions.Ready {
						got[slice.Labels[mcsv1beta1.LabelSourceCluster]]++
					}
				}
			}
			if !maps.Equal(got, want) {
				return fmt.Sprintf("%s has ready endpoints %v, want %v", member, got, want)
			}
		}
		return ""
	})
}

// TestServicesAreExportedAndImported: what is exported in a member, in a namespace that knows nothing of the federation, is imported into the members that
// have the namespace; what is exported at the federation, from all that have the Service. A lost cluster's endpoints go out of use; while the
// federation is away, nothing changes.
func TestServicesAreExportedAndImported(t *testing.T) {
	out, err := s.kubectl(t, "", "api-resources", "--api-group="+mcsv1beta1.GroupName, "-o", "name")
	for _, kind := range []string{"serviceexports", "serviceimports", "clusterprofiles"} {
		if err != nil || !strings.Contains(out, kind) {
			t.Errorf("no %s: %v: %s", kind, err, out)
		}
	}
	takePart(t)
	const namespace, name = "theirs", "mcs"
	exportInMember(t, namespace, name)
	t.Run("fences", func(t *testing.T) { fencesOfImports(t, namespace) })
	exportAtFederation(t, name)
}

// exportInMember has east-a export a Service from a namespace of its own.
func exportInMember(t *testing.T, namespace, name string) {
	t.Helper()
	for _, member := range []string{"east-a", "east-b"} {
		if _, err := s.members[member].client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		remove(t, func(ctx context.Context) error {
			return s.members[member].client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		})
	}
	at := s.members["east-a"]
	if _, err := at.client.AppsV1().ReplicaSets(namespace).Create(t.Context(), replicaSet(name, 2, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := loadBalancer(name)
	service.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err := at.client.CoreV1().Services(namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	export(t, at.dyn, namespace, name)
	t.Logf("exported → imported: %s", exportedEndpoints(t, namespace, name, map[string]int{"east-a": 2}, "east-a", "east-b").Round(time.Millisecond))
	for _, member := range []string{"east-a", "east-b"} {
		eventually(t, 30*time.Second, func() string { _, wrong := imported(t, member, namespace, name); return wrong })
	}
	if _, err := s.members["west-a"].dyn.Resource(serviceImports).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		t.Error("west-a has not got the namespace, but the import")
	}
}

// exportAtFederation has the federation export a Service that each member has, through the loss of a member and of the federation.
func exportAtFederation(t *testing.T, name string) {
	t.Helper()
	everywhere(t, name)
	export(t, s.fed.dyn, ns, name)
	all := map[string]int{"east-a": 1, "east-b": 1, "west-a": 1}
	t.Logf("exported at the federation → imported everywhere: %s", exportedEndpoints(t, ns, name, all, names...).Round(time.Millisecond))
	eventually(t, 30*time.Second, func() string {
		for _, condition := range []string{"Valid=True", "Ready=True", "Conflict=False"} {
			key, value, _ := strings.Cut(condition, "=")
			if out, err := s.kubectl(t, "", "get", "serviceexport", name, "-n", ns, "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].status}`, key)); err != nil || out != value {
				return fmt.Sprintf("%s is %q, want %s: %v", key, out, value, err)
			}
		}
		if out, err := s.kubectl(t, "", "get", "serviceimport", name, "-n", ns, "-o", "jsonpath={.status.clusters[*].cluster}"); err != nil || out != "east-a east-b west-a" {
			return fmt.Sprintf("at the federation it is of %q: %v", out, err)
		}
		return ""
	})

	resume := s.stop(t, "east-a")
	t.Logf("API gone → endpoints out of use: %s", exportedEndpoints(t, ns, name, map[string]int{"east-b": 1, "west-a": 1}, "east-b", "west-a").Round(time.Millisecond))
	resume()
	exportedEndpoints(t, ns, name, all, names...)

	before, _ := imported(t, "west-a", ns, name)
	s.signal(t, syscall.SIGKILL, "federation.pid")
	t.Cleanup(func() { up(t) })
	if err := s.members["east-a"].dyn.Resource(serviceExports).Namespace(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	exportedEndpoints(t, ns, name, all, names...)
	up(t)
	exportedEndpoints(t, ns, name, all, names...) // and the federation exports it there again
	if after, wrong := imported(t, "west-a", ns, name); wrong != "" || after.UID != before.UID || !slices.Equal(after.Spec.IPs, before.Spec.IPs) {
		t.Errorf("the import is another one after a restart: %+v, was %+v; %s", after, before, wrong)
	}

	if err := s.fed.dyn.Resource(serviceExports).Namespace(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		for _, member := range names {
			if _, wrong := imported(t, member, ns, name); !strings.Contains(wrong, "not found") {
				return member + " has the import still"
			}
			if _, err := s.members[member].dyn.Resource(serviceExports).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
				return member + " exports it still"
			}
		}
		return ""
	})
}

// fencesOfImports: with the federation's credential somebody can import, but give nobody's Service other endpoints, nor take an address.
func fencesOfImports(t *testing.T, namespace string) {
	thief, uid := stolen(t, "east-a")
	ours := map[string]string{v1beta1.ManagedByLabel: uid, mcsv1beta1.LabelServiceName: "mcs", mcsv1beta1.LabelSourceCluster: "east-b"}
	slice := func(of string) error {
		labels := maps.Clone(ours)
		labels[discoveryv1.LabelServiceName] = of
		_, err := thief.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "thief-", Labels: labels}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	service := func(change func(*corev1.Service)) error {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.DerivedServicePrefix + "thief", Labels: ours}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		change(o)
		_, err := thief.CoreV1().Services(namespace).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := slice(v1beta1.DerivedServicePrefix + "mcs"); err != nil {
		t.Errorf("a slice of a derived Service: %v", err)
	}
	if err := service(func(*corev1.Service) {}); err != nil {
		t.Errorf("a derived Service: %v", err)
	}
	for name, err := range map[string]error{
		"a slice of somebody's Service":       slice("mcs"),
		"a derived Service that selects pods": service(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "mcs"} }),
		"one with an external IP":             service(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.99"} }),
		"one of type LoadBalancer":            service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }),
		"one of another name":                 service(func(s *corev1.Service) { s.Name = "thief" }),
		"a Service that is none":              service(func(s *corev1.Service) { delete(s.Labels, mcsv1beta1.LabelServiceName) }),
		"a derived Service that gets a selector": func() error {
			_, err := thief.CoreV1().Services(namespace).Patch(t.Context(), v1beta1.DerivedServicePrefix+"mcs", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+mcsv1beta1.LabelServiceName+`":null}},"spec":{"selector":{"app":"mcs"}}}`), metav1.PatchOptions{})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}
