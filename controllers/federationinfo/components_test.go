package federationinfo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// TestReportComponents_FailuresAreSeen: a part that fails makes /readyz fail while it does not run, and is in the ConfigMap that kubectl federation status reads.
func TestReportComponents_FailuresAreSeen(t *testing.T) {
	parts, kube := supervisor.New(), fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	broken, began := true, make(chan struct{}, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- parts.Run(ctx, "propagation of widgets", func(ctx context.Context) error {
			began <- struct{}{}
			if broken {
				broken = false
				return errors.New("the definition is gone")
			}
			<-ctx.Done()
			return nil
		})
	}()
	<-began
	<-parts.Changed()
	if err := parts.Check(); err == nil || !strings.Contains(err.Error(), "propagation of widgets does not run (restarts: 1): the definition is gone") {
		t.Errorf("/readyz while it does not run: %v", err)
	}
	if err := writeFailures(ctx, kube, "host", parts.Failures()); err != nil {
		t.Fatal(err)
	}
	m, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.ComponentsConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var failure supervisor.Failure
	if err := json.Unmarshal([]byte(m.Data["host.propagation_of_widgets"]), &failure); err != nil || failure.Message != "the definition is gone" || failure.Running {
		t.Errorf("%v: %v", m.Data, err)
	}
	<-began
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return parts.Check() == nil, nil }); err != nil {
		t.Errorf("/readyz while it runs again: %v", parts.Check())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
