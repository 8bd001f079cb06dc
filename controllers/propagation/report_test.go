package propagation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"

	"federation/controllers/fleettest/memapi"
)

// A condition that another controller writes while our write is in flight stays, and ours arrives all the same.
func TestOthersConditionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		meanwhile := func() {
			f.federation.merge(t, services, "web", `{status: {conditions: [{type: DNSPublished, status: "True"}]}}`, "status")
		}
		client := f.federation.Client("federation", func(_ context.Context, r memapi.Request, do func() error) error {
			if r.Resource == services && r.Verb == "patch" && meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			return do()
		})
		c, err := New(Options{Client: client, Informers: f.federation.informers(t.Context(), client, ""), Federation: "fed", Recorder: record.NewFakeRecorder(10)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		f.federation.create(t, services, "default", `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`)
		time.Sleep(time.Minute)
		conditions, _, _ := unstructured.NestedSlice(f.federation.Get(services, "default", "web").Object, "status", "conditions")
		if meanwhile != nil || len(conditions) != 2 {
			t.Errorf("want the conditions of both, got %v", conditions)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		calm()
	})
}

// The addresses of a Service do not wait for a member that has just come and does not answer.
func TestAddressesDoNotWaitForAMemberThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a", "east-b")
		f.members["east-b"].hangs.Store(true)
		f.run(t, Options{}, func() {
			f.federation.create(t, services, "default", `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`)
			time.Sleep(time.Second)
			f.members["east-a"].merge(t, services, "web", `{status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, "status")
			time.Sleep(2 * time.Second)
			given, _, _ := unstructured.NestedSlice(f.federation.Get(services, "default", "web").Object, "status", "loadBalancer", "ingress")
			if len(given) != 1 {
				t.Errorf("addresses %v two seconds after a cluster gave one", given)
			}
		})
	})
}
