package fleettest

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

var leasesResource = memapi.Resource{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true}

// newLeases makes the API by which processes meet. It is one of its own, for what they write there says nothing of the fleet.
func newLeases() *memapi.API {
	return memapi.New(memapi.Options{Resources: []memapi.Resource{leasesResource}})
}

// configOf returns how typed clients reach the API of a client.
func configOf(client *memapi.Client) *rest.Config {
	return &rest.Config{Host: "http://memory", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, Transport: memapi.Transport{Client: client}}
}

// leasesOf returns a client of the Leases of the federation's namespace.
func leasesOf(client *memapi.Client) coordinationclient.LeaseInterface {
	return coordinationclient.NewForConfigOrDie(configOf(client)).Leases(v1beta1.FederationNamespace)
}
