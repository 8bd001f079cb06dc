package servicedns

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// ownedHosts tracks which namespaces own hosts (ADR 90). All processes read it, the leader writes it.
type ownedHosts struct {
	// kube is a client of the federation. Nil: a host belongs to the object that wants it, and to no namespace
	// afterwards.
	kube kubernetes.Interface
	// changed is called when the ConfigMap has changed.
	changed func()
	// due has an element when there is something to write.
	due supervisor.Wake

	mu    sync.Mutex
	leads bool
	// written is the ConfigMap as last read, hosts its parsed content. They are replaced, never changed in place.
	written *corev1.ConfigMap
	hosts   map[string]plan.Keep
	// wanted are the changes of written to be made, as of the last pass.
	wanted map[string]*string
}

// settleHosts is how often hosts are checked for release.
const settleHosts = time.Minute

func newKept(kube kubernetes.Interface, changed func()) *ownedHosts {
	return &ownedHosts{kube: kube, changed: changed, due: supervisor.NewWake(), written: &corev1.ConfigMap{}, hosts: map[string]plan.Keep{}}
}

// owners returns the owners of hosts. The caller must not change the map.
func (k *ownedHosts) owners() map[string]plan.Keep {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hosts
}

// watchConfigMap reads the ConfigMap until ctx ends. synced reports whether it has been read once.
func (k *ownedHosts) watchConfigMap(ctx context.Context, running *sync.WaitGroup) (synced cache.InformerSynced) {
	return followConfigMap(ctx, running, k.kube, v1beta1.DNSHostsConfigMap, k.handleConfigMap)
}

// handleConfigMap takes in the ConfigMap.
func (k *ownedHosts) handleConfigMap(written *corev1.ConfigMap) {
	hosts := plan.ParseKept(written.Data)
	k.mu.Lock()
	same := maps.Equal(hosts, k.hosts) && written.ResourceVersion == k.written.ResourceVersion
	k.written, k.hosts = written, hosts
	k.mu.Unlock()
	if !same {
		k.changed()
	}
}

// setWanted takes in the changes to write, after all seen changes have been planned.
func (k *ownedHosts) setWanted(claims *plan.Claims) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.leads {
		return
	}
	if k.wanted = claims.Settle(time.Now()); len(k.wanted) > 0 {
		k.due.Signal()
	}
}

// runLeader writes until ctx ends.
func (k *ownedHosts) runLeader(ctx context.Context) {
	k.setLeads(true)
	defer k.setLeads(false)
	tick := time.NewTicker(settleHosts)
	defer tick.Stop()
	k.changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.changed()
		case <-k.due:
			if err := k.writeConfigMap(ctx); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Failed to update owners of hosts, will retry", "configMap", v1beta1.DNSHostsConfigMap)
				waitFor(ctx, writeAgain)
				k.changed()
			}
			waitFor(ctx, writePause)
		}
	}
}

func (k *ownedHosts) setLeads(leads bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leads = leads
}

// writeConfigMap writes the wanted changes if the ConfigMap has not changed since they were decided.
func (k *ownedHosts) writeConfigMap(ctx context.Context) error {
	k.mu.Lock()
	written, changes := k.written, k.wanted
	k.wanted = nil
	k.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	configMaps := k.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	if written.Name == "" {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.DNSHostsConfigMap}, Data: map[string]string{}}
		for name, text := range changes {
			if text != nil {
				m.Data[name] = *text
			}
		}
		_, err := configMaps.Create(ctx, m, metav1.CreateOptions{FieldManager: FieldManager})
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": written.ResourceVersion}, "data": changes})
	if err != nil {
		return err
	}
	_, err = configMaps.Patch(ctx, v1beta1.DNSHostsConfigMap, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsConflict(err) {
		return nil // its event comes, and a new decision
	}
	return err
}
