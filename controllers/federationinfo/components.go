package federationinfo

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// ReportComponents writes which components of this process have failed to a ConfigMap, until ctx ends: under the name of this machine,
// in letters that names of objects have, so that a process that is restarted replaces what was said before.
func ReportComponents(ctx context.Context, kube kubernetes.Interface, host string, parts *supervisor.Supervisor) {
	log := klog.FromContext(ctx)
	for {
		if err := writeFailures(ctx, kube, host, parts.Failures()); err != nil && ctx.Err() == nil {
			log.V(1).Info("Failed to report failed components, will retry", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-parts.Changed():
		}
	}
}

func writeFailures(ctx context.Context, kube kubernetes.Interface, host string, failures []supervisor.Failure) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	data := map[string]string{}
	for _, failure := range failures {
		text, err := json.Marshal(failure)
		if err != nil {
			return err
		}
		data[host+"."+keyOf(failure.Component)] = string(text)
	}
	want := applycorev1.ConfigMap(v1beta1.ComponentsConfigMap, v1beta1.FederationNamespace).WithData(data)
	_, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Apply(ctx, want, metav1.ApplyOptions{FieldManager: "federation-components-" + host, Force: true})
	return err
}

// keyOf returns the name of a component in the letters that keys of a ConfigMap have.
func keyOf(component string) string {
	key := []byte(component)
	for i, c := range key {
		if c == ' ' {
			key[i] = '_'
		}
	}
	return string(key)
}
