package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
)

// probe says why something is not ready yet, or nil.
type probe func(ctx context.Context) error

// wait asks the probe until it is content. It ends early when the process behind it does.
func (r *running) wait(ctx context.Context, ready probe) error {
	for {
		look, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := ready(look)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-r.exited:
			return fmt.Errorf("%s ended; the end of %s:\n%s", r.name, r.logFile, r.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w, %v; the end of %s:\n%s", r.name, context.Cause(ctx), err, r.logFile, r.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// client reads a kubeconfig anew: at a first start it is not there yet.
func client(kubeconfig string) (*rest.Config, dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	d, err := dynamic.NewForConfig(config)
	return config, d, err
}

// federationUID returns the UID by which members know a federation.
func federationUID(ctx context.Context, federation dynamic.Interface) (string, error) {
	system, err := federation.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return string(system.GetUID()), nil
}

// apiReady is content when the API behind the kubeconfig says that it is ready.
func apiReady(kubeconfig string) probe {
	return func(ctx context.Context) error {
		config, _, err := client(kubeconfig)
		if err != nil {
			return err
		}
		config.GroupVersion = &schema.GroupVersion{}
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		c, err := rest.UnversionedRESTClientFor(config)
		if err != nil {
			return err
		}
		return c.Get().AbsPath("/readyz").Do(ctx).Error()
	}
}

// memberReady is content when a member can take work: its API is ready, pods can be made in its
// namespace default, and so many nodes can run them.
func memberReady(kubeconfig string, nodes int) probe {
	ready := apiReady(kubeconfig)
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		_, d, err := client(kubeconfig)
		if err != nil {
			return err
		}
		accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
		if _, err := d.Resource(accounts).Namespace("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		list, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if n := len(withReady(list.Items)); n < nodes {
			return fmt.Errorf("%d of %d nodes are ready", n, nodes)
		}
		return nil
	}
}

// clustersReady is content when the federation sees all the members as ready.
func clustersReady(kubeconfig string, names []string) probe {
	return func(ctx context.Context) error {
		_, d, err := client(kubeconfig)
		if err != nil {
			return err
		}
		list, err := d.Resource(v1beta1.ClustersResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := withReady(list.Items)
		var missing []string
		for _, name := range names {
			if !ready[name] {
				missing = append(missing, name)
			}
		}
		sort.Strings(missing)
		if len(missing) > 0 {
			return fmt.Errorf("clusters that are not ready: %s", strings.Join(missing, ", "))
		}
		return nil
	}
}

// withReady is the set of the names of the objects whose condition Ready is True.
func withReady(items []unstructured.Unstructured) map[string]bool {
	names := map[string]bool{}
	for _, item := range items {
		conditions, _, _ := unstructured.NestedSlice(item.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				names[item.GetName()] = true
			}
		}
	}
	return names
}

// dnsReady is content when the server answers for the zone.
func dnsReady(address, zone string) probe {
	return func(ctx context.Context) error {
		q := new(dns.Msg).SetQuestion(dns.Fqdn(zone), dns.TypeSOA)
		a, _, err := (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, q, address)
		if err != nil {
			return err
		}
		if a.Rcode != dns.RcodeSuccess || len(a.Answer) == 0 {
			return fmt.Errorf("DNS answers %s for the zone %s", dns.RcodeToString[a.Rcode], zone)
		}
		return nil
	}
}
