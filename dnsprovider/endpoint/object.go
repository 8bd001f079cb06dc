package endpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/dnsprovider"
	"federation/dnsprovider/externaldns"
)

// object is a DNSEndpoint: as it is there, and with which endpoints.
type object struct {
	name string
	// there is the object as it was read; nil for a new one. It does not change.
	there     *unstructured.Unstructured
	endpoints []externaldns.Endpoint
}

func (o *object) exists() bool { return o.there != nil }

// parseObject fails when the endpoints are not what the definition of external-dns says.
func parseObject(there *unstructured.Unstructured) (*object, error) {
	text, err := json.Marshal(there.Object["spec"])
	if err != nil {
		return nil, err
	}
	var spec struct{ Endpoints []externaldns.Endpoint }
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("object %s: spec: %w", there.GetName(), err)
	}
	return &object{name: there.GetName(), there: there, endpoints: spec.Endpoints}, nil
}

// body returns the object as it shall be, of the version that was read.
func (o *object) body(label string) (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": Resource.GroupVersion().String(), "kind": "DNSEndpoint"}}
	if o.exists() {
		body = o.there.DeepCopy()
	}
	body.SetName(o.name)
	body.SetLabels(mergedLabel(body.GetLabels(), label))
	text, err := json.Marshal(o.endpoints)
	if err != nil {
		return nil, err
	}
	var endpoints []any
	if err := json.Unmarshal(text, &endpoints); err != nil {
		return nil, err
	}
	return body, unstructured.SetNestedSlice(body.Object, endpoints, "spec", "endpoints")
}

func mergedLabel(labels map[string]string, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = value
	return labels
}

// placeChanges puts the changes into objects: a name stays in its object, new ones go where there is room. It returns the
// changed objects, sorted by name, and leaves those in there as they are.
func placeChanges(prefix string, there map[string]*object, changes dnsprovider.ChangeSet) []*object {
	objects, where := maps.Clone(there), map[string]string{}
	if objects == nil {
		objects = map[string]*object{}
	}
	for name, o := range there {
		for _, e := range o.endpoints {
			if set, ok := e.Set(); ok {
				where[set.Name] = name
			}
		}
	}
	changed := map[string]*object{}
	number := 0 // of the first object that may have room
	for _, step := range changes {
		name, ok := where[step.Name]
		for ; !ok; number++ {
			name = fmt.Sprintf("%s-%d", prefix, number)
			if o := objects[name]; o == nil || len(o.endpoints)+len(step.New) <= maxEndpoints {
				break
			}
		}
		o := objects[name]
		if changed[name] == nil {
			o = &object{name: name}
			if was := objects[name]; was != nil {
				o.there, o.endpoints = was.there, slices.Clone(was.endpoints)
			}
			objects[name], changed[name] = o, o
		}
		o.change(step)
	}
	return slices.SortedFunc(maps.Values(changed), func(a, b *object) int { return cmp.Compare(a.name, b.name) })
}

// change replaces the sets of a step. What else is in the object stays.
func (o *object) change(step dnsprovider.Step) {
	o.endpoints = slices.DeleteFunc(o.endpoints, func(e externaldns.Endpoint) bool {
		set, ok := e.Set()
		return ok && slices.ContainsFunc(step.Old, set.Equal)
	})
	for _, set := range step.New {
		o.endpoints = append(o.endpoints, externaldns.Of(set))
	}
	slices.SortFunc(o.endpoints, func(a, b externaldns.Endpoint) int {
		return cmp.Or(cmp.Compare(a.DNSName, b.DNSName), cmp.Compare(a.RecordType, b.RecordType))
	})
}
