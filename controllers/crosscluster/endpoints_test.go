package crosscluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
)

// own writes a slice of the member itself for shop/web.
func (a *api) own(t *testing.T, name string, ready bool, address string) {
	t.Helper()
	a.create(t, endpointSlices, fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {namespace: shop, name: %s, labels: {federation.kubernetes.io/managed-by: fed, kubernetes.io/service-name: web}},
  ports: [{name: http, protocol: TCP, port: 8080}], endpoints: [{addresses: [%s], conditions: {ready: %v}}]}`, name, address, ready))
}

// clusters are those of a federation: "NAME NETWORK", or "!NAME NETWORK" for one that is lost.
func podOffers(clusters ...string) []plan.Offer {
	var all []plan.Cluster
	for _, c := range clusters {
		var name, network string
		_, _ = fmt.Sscan(c, &name, &network)
		lost := name[0] == '!'
		if lost {
			name = name[1:]
		}
		all = append(all, plan.Cluster{Name: name, Network: network, Ready: !lost, Weight: 100})
	}
	return plan.OffersOfPods(all, nil)
}

// connect engages a member of a controller until the returned function is called.
func (f *fleet) connect(t *testing.T, c *Controller, name string) (disconnect func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	client := f.members[name].Client("federation", f.members[name].carry)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = v1beta1.ManagedByLabel + "=fed" })
	err := c.Engage(ctx, Member{Name: name, Client: client, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		return factory.ForResource(r).Informer()
	}})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	return func() { stop(); factory.Shutdown() }
}

// TestPodsGoToOtherMembers: what a member has goes to those of its network, with one write for each change there.
func TestPodsGoToOtherMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east", "north", "west")
		for _, m := range f.members {
			m.service(t, "web")
		}
		east := f.members["east"]
		east.own(t, "web-1", true, "10.0.0.1")
		f.set("shop/web", podOffers("east n", "north n", "west other"))
		c := New(Options{Offers: f.offers, Federation: "fed", Recorder: f.events})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		disconnect := map[string]func(){}
		for name := range f.members {
			disconnect[name] = f.connect(t, c, name)
		}
		f.wrote(t, "at first", "north: create web.east.v4")
		east.own(t, "web-2", true, "10.0.0.2")
		f.wrote(t, "a further slice", "north: update web.east.v4")
		east.own(t, "web-3", false, "10.0.0.3")
		f.wrote(t, "one without a ready endpoint")
		f.members["west"].own(t, "web-1", true, "10.0.1.1")
		f.wrote(t, "a cluster in another network")
		f.set("shop/web", podOffers("east n", "north n", "west n"))
		f.wrote(t, "it is in that network now", "east: create web.west.v4", "north: create web.west.v4", "west: create web.east.v4")

		for i := range 100 { // for 10 s
			east.patch(t, endpointSlices, "web-2", fmt.Sprintf(`{"endpoints": [{"addresses": ["10.0.0.%d"]}]}`, 2+i%2))
			time.Sleep(100 * time.Millisecond)
		}
		calm()
		if n := strings.Count(f.members["north"].read(), "update"); n < 10 || n > 23 {
			t.Errorf("endpoints that come and go for 10 s: %d writes in another member, want two a second at most", n)
		}
		f.members["west"].read()

		disconnect["east"]()
		f.wrote(t, "not reached from here; west knows no better one", "north: update web.east.v4")
		f.set("shop/web", podOffers("!east n", "north n", "west n"))
		f.wrote(t, "and lost")
		east.remove(t, endpointSlices, "web-2")
		f.set("shop/web", podOffers("east n", "north n", "west n"))
		f.wrote(t, "back, and not connected yet")
		disconnect["east"] = f.connect(t, c, "east")
		f.wrote(t, "connected", "north: update web.east.v4", "west: update web.east.v4") // with the slice that is gone
		disconnect["east"]()
		f.wrote(t, "not reached again", "north: update web.east.v4")
		f.set("shop/web", podOffers("east other", "north n", "west n"))
		f.wrote(t, "and in another network meanwhile")
		disconnect["east"] = f.connect(t, c, "east")
		f.wrote(t, "connected: nobody of the old network reaches its pods", "east: delete web.west.v4", "north: delete web.east.v4", "west: delete web.east.v4")
		f.set("shop/web", podOffers("east n", "north n", "west n"))
		f.wrote(t, "back in the network", "east: create web.west.v4", "north: create web.east.v4", "west: create web.east.v4")
		east.remove(t, services, "web")
		f.wrote(t, "its copy is gone, and with it what it was given", "east: delete web.west.v4", "north: delete web.east.v4", "west: delete web.east.v4")

		for _, end := range disconnect {
			end()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestExportedServicesGoByLoadBalancers: where the networks differ, by that of the Service which was made for the exported one.
func TestExportedServicesGoByLoadBalancers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("east", "west")
		east := f.members["east"]
		east.service(t, "web")
		f.members["west"].service(t, "web")
		east.own(t, "web-1", true, "10.0.0.1")
		f.set("shop/web", podOffers("east n", "west m"))
		f.run(t, Options{}, func() {
			f.wrote(t, "before it is exported")
			east.create(t, services, `{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: exported-web, labels: {federation.kubernetes.io/managed-by: fed, federation.kubernetes.io/exported-service: web}}, spec: {type: LoadBalancer}}`)
			f.wrote(t, "exported, and its load balancer has no address yet")
			if _, err := east.others.Resource(services).Namespace("shop").Patch(t.Context(), "exported-web", types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			f.wrote(t, "exported", "west: create web.east.v4")
			east.patch(t, endpointSlices, "web-1", `{"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]}`)
			f.wrote(t, "no pod is ready", "west: delete web.east.v4")
			east.patch(t, endpointSlices, "web-1", `{"endpoints": [{"addresses": ["10.0.0.1"]}]}`)
			f.wrote(t, "ready again", "west: create web.east.v4")
			east.remove(t, services, "exported-web")
			f.wrote(t, "exported no more", "west: delete web.east.v4")
		})
	})
}
