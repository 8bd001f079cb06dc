package endpoint

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/servertest"
	"federation/dnsprovider"
	"federation/dnsprovider/providertest"
)

const zone = "example.com."

// client is one of a real API server.
var client dynamic.Interface

// errUndefined is what reading said before the server had DNSEndpoints.
var errUndefined error

func TestMain(m *testing.M) {
	servertest.Main(m, func(ctx context.Context, r *servertest.Running) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		client = r.Dynamic
		p, err := New(Options{Client: client, Namespace: "default", Name: "none", Zone: zone})
		if err != nil {
			return err
		}
		_, errUndefined = p.Records(ctx, zone)
		return define(ctx)
	})
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

type fields = map[string]any

// define installs DNSEndpoint with the fields and limits of external-dns's own definition.
func define(ctx context.Context) error {
	text := func(most int64) fields { return fields{"type": "string", "minLength": int64(1), "maxLength": most} }
	texts := fields{"type": "object", "additionalProperties": fields{"type": "string"}}
	endpoint := fields{"type": "object", "required": []any{"dnsName", "recordType"}, "properties": fields{
		"dnsName": text(254), "setIdentifier": text(255), "labels": texts,
		"recordType": fields{"type": "string", "enum": []any{"A", "AAAA", "CNAME", "TXT", "NS", "SRV", "MX"}},
		"recordTTL":  fields{"type": "integer", "format": "int64", "minimum": int64(0), "maximum": int64(1<<31 - 1)},
		"targets":    fields{"type": "array", "maxItems": int64(1000), "items": text(4096)},
		"providerSpecific": fields{"type": "array", "maxItems": int64(100), "items": fields{"type": "object", "required": []any{"name"},
			"properties": fields{"name": text(253), "value": fields{"type": "string"}}}},
	}}
	spec := fields{"type": "object", "properties": fields{"endpoints": fields{"type": "array", "maxItems": int64(1000), "items": endpoint}}}
	status := fields{"type": "object", "properties": fields{"observedGeneration": fields{"type": "integer", "format": "int64"}}}
	crd := &unstructured.Unstructured{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": "dnsendpoints.externaldns.k8s.io", "annotations": fields{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": fields{"group": Resource.Group, "scope": "Namespaced",
			"names": fields{"kind": "DNSEndpoint", "listKind": "DNSEndpointList", "plural": "dnsendpoints", "singular": "dnsendpoint"},
			"versions": []any{fields{"name": "v1alpha1", "served": true, "storage": true, "subresources": fields{"status": fields{}},
				"schema": fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{"spec": spec, "status": status}}}}}}}}
	if _, err := client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	for ; ; time.Sleep(50 * time.Millisecond) {
		_, err := client.Resource(Resource).List(ctx, metav1.ListOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func TestMissingDefinitionIsSaid(t *testing.T) {
	if err := errUndefined; err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition must be installed") {
		t.Errorf("error %v, want what is missing", err)
	}
}

func connect(t *testing.T, name string) dnsprovider.Provider {
	t.Helper()
	p, err := New(Options{Client: client, Namespace: "default", Name: name, Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fresh returns a provider with a name that no other has.
func fresh(t *testing.T) (dnsprovider.Provider, string) {
	t.Helper()
	names++
	name := fmt.Sprintf("p%d", names)
	return connect(t, name), name
}

var names int

func TestEndpointConforms(t *testing.T) {
	providertest.Run(t, zone, func(t *testing.T) dnsprovider.Provider {
		p, _ := fresh(t)
		return p
	})
}

func objects(t *testing.T, name string) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := client.Resource(Resource).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: Label + "=" + name})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		byName[list.Items[i].GetName()] = &list.Items[i]
	}
	return byName
}

func apply(t *testing.T, p dnsprovider.Provider, from, to []dnsprovider.RRSet) {
	t.Helper()
	if err := p.Apply(t.Context(), zone, dnsprovider.Diff(from, to)); err != nil {
		t.Fatal(err)
	}
}

func TestObjectIsWhatExternalDNSReads(t *testing.T) {
	p, name := fresh(t)
	apply(t, p, nil, []dnsprovider.RRSet{providertest.Set(t, "a.example.com", dnsprovider.A, "192.0.2.1", "192.0.2.2"), providertest.Set(t, "b.example.com", dnsprovider.CNAME, "a.example.com")})
	o := objects(t, name)[name+"-0"]
	got := fmt.Sprint(o.Object["spec"])
	want := "map[endpoints:[map[dnsName:a.example.com recordTTL:15 recordType:A targets:[192.0.2.1 192.0.2.2]] map[dnsName:b.example.com recordTTL:15 recordType:CNAME targets:[a.example.com]]]]"
	if got != want {
		t.Errorf("spec\n%s, want\n%s", got, want)
	}
}

func TestChangeWritesTheObjectsThatItTouches(t *testing.T) {
	p, name := fresh(t)
	var sets []dnsprovider.RRSet
	for i := range 1200 {
		sets = append(sets, providertest.Set(t, fmt.Sprintf("n%04d.example.com", i), dnsprovider.A, "192.0.2.1"))
	}
	apply(t, p, nil, sets)
	before := objects(t, name)
	apply(t, p, sets[700:701], []dnsprovider.RRSet{providertest.Set(t, "n0700.example.com", dnsprovider.A, "192.0.2.2")})
	after := objects(t, name)
	for i, changed := range []bool{false, true, false} {
		object := fmt.Sprintf("%s-%d", name, i)
		if len(before) != 3 || (before[object].GetResourceVersion() != after[object].GetResourceVersion()) != changed {
			t.Errorf("of %d objects %s has changed, or not: want %t", len(before), object, changed)
		}
	}
	apply(t, p, sets[:500], nil)
	if left := objects(t, name); len(left) != 2 {
		t.Errorf("%d objects are left, want 2: the empty one goes", len(left))
	}
	apply(t, p, nil, sets[:1])
	if again := objects(t, name); again[name+"-0"] == nil {
		t.Error("the first object is not there again")
	}
}

// TestEndpointKeepsForeignObjects has objects of somebody else, and something of somebody else in ours.
func TestEndpointKeepsForeignObjects(t *testing.T) {
	p, name := fresh(t)
	other := &unstructured.Unstructured{Object: fields{"apiVersion": "externaldns.k8s.io/v1alpha1", "kind": "DNSEndpoint", "metadata": fields{"name": "other-" + name},
		"spec": fields{"endpoints": []any{fields{"dnsName": "a.example.com", "recordType": "A", "targets": []any{"192.0.2.7"}}}}}}
	there, err := client.Resource(Resource).Namespace("default").Create(t.Context(), other, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	web := []dnsprovider.RRSet{providertest.Set(t, "web.example.com", dnsprovider.A, "192.0.2.1")}
	apply(t, p, nil, web)
	ours := objects(t, name)[name+"-0"]
	list, _, _ := unstructured.NestedSlice(ours.Object, "spec", "endpoints")
	list = append(list, fields{"dnsName": "*.example.com", "recordType": "A", "targets": []any{"192.0.2.8"}, "labels": fields{"by": "hand"}})
	if err := unstructured.SetNestedSlice(ours.Object, list, "spec", "endpoints"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(Resource).Namespace("default").Update(t.Context(), ours, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(t, p, web, nil)
	if left := fmt.Sprint(objects(t, name)[name+"-0"].Object["spec"]); left != "map[endpoints:[map[dnsName:*.example.com labels:map[by:hand] recordType:A targets:[192.0.2.8]]]]" {
		t.Errorf("what somebody else wrote is now %s", left)
	}
	if now, err := client.Resource(Resource).Namespace("default").Get(t.Context(), other.GetName(), metav1.GetOptions{}); err != nil || now.GetResourceVersion() != there.GetResourceVersion() {
		t.Errorf("another's object was changed: %v", err)
	}
}

func TestEndpointNewRefuses(t *testing.T) {
	for _, o := range []Options{{Name: "a", Zone: zone}, {Namespace: "a", Zone: zone}, {Namespace: "a", Name: "A_", Zone: zone}, {Namespace: "a", Name: "a"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
