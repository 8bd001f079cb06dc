package propagation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// A member's webhook hangs for one kind with many objects. Other kinds still get through, and deletions do.
func TestAKindThatHangsHoldsUpNoOther(t *testing.T) {
	const many = 500
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "east-a")
		f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: before}, data: {key: value}}`)
		for i := range many {
			f.federation.create(t, replicaSets, "default", strings.Replace(webSet, "name: web", fmt.Sprintf("name: web-%03d", i), 1))
		}
		m := f.members["east-a"]
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); calm(); calm() }()
		client := m.Client("federation", func(ctx context.Context, r memapi.Request, do func() error) error {
			if r.Resource == replicaSets && r.Verb == "apply" {
				<-ctx.Done()
				return ctx.Err()
			}
			return do()
		})
		c, err := New(Options{Client: f.federation.Client("federation", f.federation.count), Informers: f.federation.informers(ctx, f.federation.others, ""), Federation: "fed", Recorder: record.NewFakeRecorder(1000)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Engage(ctx, Member{Name: "east-a", Client: client, Informers: m.informers(ctx, client, v1beta1.ManagedByLabel+"=fed")}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = c.Run(ctx) }()
		time.Sleep(12 * time.Second) // at first that is unknown
		if m.Get(configMaps, "default", "before") == nil {
			t.Error("an object of another kind waits")
		}
		time.Sleep(time.Minute)
		f.federation.create(t, configMaps, "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: after}, data: {key: value}}`)
		name := fmt.Sprintf("web-%03d", many-1)
		if err := f.federation.others.Resource(replicaSets).Namespace("default").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		calm()
		if m.Get(configMaps, "default", "after") == nil {
			t.Error("a new object of another kind waits")
		}
		time.Sleep(10 * time.Second) // its last write may have been in flight
		if f.federation.Get(replicaSets, "default", name) != nil {
			t.Error("a delete of an object of that kind waits")
		}
	})
}
