package plan

import (
	"net/netip"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

func ingressesOf(u *unstructured.Unstructured) []any {
	if u == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
	return list
}

// loadBalancer returns the union of the copies' load balancer addresses, sorted, without duplicates and without those
// that no load balancer can have: DNS, which reports why, leaves them out too. If they are very many, it takes fewer of
// each copy.
func loadBalancer(copies []Copy) map[string]any {
	seen, each := map[string]any{}, max(1, maxUnion/max(1, len(copies)))
	for _, c := range copies {
		list := ingressesOf(c.Object)
		for _, item := range list[:min(len(list), each)] {
			m, _ := item.(map[string]any)
			ip, _ := m["ip"].(string)
			host, _ := m["hostname"].(string)
			if addr, err := netip.ParseAddr(ip); err == nil && v1beta1.RefuseAddress(addr) != nil {
				continue
			}
			seen[ip+" "+host] = m
		}
	}
	keys := make([]string, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	keys = keys[:min(len(keys), maxUnion)]
	union := make([]any, len(keys))
	for i, key := range keys {
		union[i] = seen[key]
	}
	if len(union) == 0 {
		return map[string]any{}
	}
	return map[string]any{"ingress": union}
}

// ingressStatus has no addresses for the class of the federation's own load balancers: these report theirs.
func ingressStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	if class, _, _ := unstructured.NestedString(federated.Object, "spec", "ingressClassName"); class == v1beta1.IngressClassName {
		return map[string]any{}
	}
	return map[string]any{"loadBalancer": loadBalancer(copies)}
}

func serviceStatus(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	if kind, _, _ := unstructured.NestedString(federated.Object, "spec", "type"); kind != string(corev1.ServiceTypeLoadBalancer) {
		return map[string]any{} // the API allows addresses for this type only
	}
	if class, _, _ := unstructured.NestedString(federated.Object, "spec", "loadBalancerClass"); class == v1beta1.LoadBalancerClassName {
		return map[string]any{} // the federation's own load balancers report theirs
	}
	return map[string]any{"loadBalancer": loadBalancer(copies)}
}

// serviceIngresses returns the value of the annotation from which DNS learns what serves where. For a cluster that
// cannot be seen, or that does not let us list, it keeps the last known value: readers know whether the cluster is
// there, except for one that only this process does not reach. If there is none, the other clusters keep what they have of it.
func serviceIngresses(k *Kind, federated *unstructured.Unstructured, copies []Copy) string {
	before := map[string]v1beta1.ClusterServiceIngress{}
	for _, item := range v1beta1.ParseServiceIngresses(federated.GetAnnotations()[v1beta1.ServiceIngressesAnnotation]).Items {
		before[item.Cluster] = item
	}
	kind, _, _ := unstructured.NestedString(federated.Object, "spec", "type")
	offered := k.Endpoints && kind == string(corev1.ServiceTypeLoadBalancer) // to other clusters
	var out v1beta1.ServiceIngresses
	for _, c := range copies {
		was, known := before[c.Cluster]
		known = known && was.IsKnown()
		if c.State == Unreachable || c.Unlisted {
			if !known && offered {
				was = v1beta1.ClusterServiceIngress{Cluster: c.Cluster, Seen: new(false)}
			}
			if known && c.Alone {
				was.Seen = new(false)
			}
			if known || offered {
				out.Items = append(out.Items, was)
			}
			continue
		}
		list := ingressesOf(c.Object)
		if len(list) == 0 || c.EndpointsUnknown && !known {
			continue
		}
		ready := c.ReadyEndpoints || !k.Endpoints
		if c.EndpointsUnknown {
			ready = was.Items != nil
		}
		entry := v1beta1.ClusterServiceIngress{Cluster: c.Cluster}
		for _, item := range list {
			m, _ := item.(map[string]any)
			ip, _ := m["ip"].(string)
			host, _ := m["hostname"].(string)
			if ready {
				entry.Items = append(entry.Items, corev1.LoadBalancerIngress{IP: ip, Hostname: host})
			}
		}
		out.Items = append(out.Items, entry)
	}
	return fitIngresses(out, roomFor(federated, v1beta1.ServiceIngressesAnnotation))
}
