package clusterregistry

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
	"federation/controllers/supervisor"
)

// How often nodes and version are read: soon after a connection, when nodes may just be joining, then
// ever less. Only the metadata of nodes is read.
const (
	inventoryFirst = time.Second
	inventoryLast  = 30 * time.Second
)

// keepInventory reads nodes and version once, so that a cluster that becomes ready has its zones, and
// goes on in the background until the member is lost.
func (k *keeper) keepInventory(m *Member, l *link) {
	ctx := m.ctx
	k.takeInventory(m, l, k.registry.options.Timeout)
	go supervisor.Keep(ctx, "registry", func(ctx context.Context) {
		for every := inventoryFirst; ; every = min(2*every, inventoryLast) {
			select {
			case <-ctx.Done():
				return
			case <-m.joined: // its fences may be others
				m.asked, every = time.Time{}, inventoryFirst
			case <-time.After(every):
			}
			m.askFences(ctx)
			if k.takeInventory(m, l, inventoryLast) {
				k.checkNow() // to report it
			}
		}
	})
}

// takeInventory reports whether there is something new.
func (k *keeper) takeInventory(m *Member, l *link, timeout time.Duration) bool {
	ctx := m.ctx
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	inv, err := l.inventory(timed)
	if err == nil {
		err = l.identify(timed)
	}
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot read nodes, version and identity", "err", err)
		}
		return false
	}
	inv.Forbidden, inv.Unfenced = m.Forbidden(), m.unfenced
	return !reflect.DeepEqual(k.inventory.Swap(inv), inv) || l.identity() != m.uid
}

func (l *link) inventory(ctx context.Context) (*health.Inventory, error) {
	_, body, err := l.get(ctx, l.probe, "/version")
	if err != nil {
		return nil, err
	}
	var v version.Info
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfigAndClient(metadata.ConfigFor(l.config), l.client)
	if err != nil {
		return nil, err
	}
	// Resource version 0: from the member's cache, not from its etcd.
	nodes, err := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	labels := make([]map[string]string, len(nodes.Items))
	for i := range nodes.Items {
		labels[i] = nodes.Items[i].Labels
	}
	zones, region := health.Topology(labels)
	return &health.Inventory{Zones: zones, Region: region, Version: v1beta1.Printable(v.GitVersion)}, nil
}
