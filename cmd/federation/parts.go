package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// reportParts writes which parts of this process have failed to a ConfigMap, until ctx ends: under the name of this machine, so that
// a process that is restarted replaces what was said before.
func (o *controllersOptions) reportParts(ctx context.Context, config *rest.Config) {
	log := klog.FromContext(ctx)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Error(err, "Failed components will not be reported")
		return
	}
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	for {
		if err := o.writeParts(ctx, kube, asName(host)); err != nil && ctx.Err() == nil {
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
		case <-o.parts.Changed():
		}
	}
}

func (o *controllersOptions) writeParts(ctx context.Context, kube kubernetes.Interface, host string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	data := map[string]string{}
	for _, failure := range o.parts.Failures() {
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
