package supportbundle

import (
	"context"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain"
)

// parts are the files of a bundle, in their order.
func parts(f *client.Federation) []part {
	all := []part{
		{"version.json", raw(f, "/version")},
		{"status.json", func(ctx context.Context) ([]byte, error) { return marshalled(explain.ReadStatus(ctx, f)) }},
		{"readyz.txt", raw(f, "/readyz?verbose")},
		{"livez.txt", raw(f, "/livez?verbose")},
		{"metrics.txt", raw(f, "/metrics")},
		{"events.json", objects(f, schema.GroupVersionResource{Version: "v1", Resource: "events"}, "", whole)},
		{"leases.json", objects(f, schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, v1beta1.FederationNamespace, whole)},
		{"components.json", func(ctx context.Context) ([]byte, error) { return marshalled(f.Components(ctx)) }},
	}
	for _, resource := range []string{"clusters", "placementpolicies", "dnsnamegrants", "failoverreadinesses", "failoverdrills", "failoverdrillschedules"} {
		all = append(all, part{"federation/" + resource + ".json", objects(f, v1beta1.SchemeGroupVersion.WithResource(resource), "", withoutValues)})
	}
	for _, k := range v1beta1.FederatedKinds {
		read := objects(f, k.Resource, "", withoutSpec)
		if k.Resource.Group == "" && (k.Resource.Resource == "secrets" || k.Resource.Resource == "configmaps") {
			read = metadataOnly(f, k.Resource)
		}
		all = append(all, part{"objects/" + k.Resource.GroupResource().String() + ".json", read})
	}
	return all
}

func marshalled(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(v, "", "  ")
}

// raw reads a path of the API.
func raw(f *client.Federation, path string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		body, err := f.REST.Get().RequestURI(path).DoRaw(ctx)
		if apierrors.IsInternalError(err) && len(body) > 0 { // not ready: it says why
			return body, nil
		}
		return body, err
	}
}

// objects lists objects, of all namespaces if it is empty, as scrub leaves them.
func objects(f *client.Federation, r schema.GroupVersionResource, namespace string, scrub func(map[string]any)) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		items := []any{}
		err := client.ListPages(ctx, f.Dynamic.Resource(r).Namespace(namespace), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			u.SetManagedFields(nil)
			u.SetAnnotations(ownAnnotations(u.GetAnnotations()))
			scrub(u.Object)
			items = append(items, u.Object)
			return nil
		})
		return marshalled(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, err)
	}
}

// metadataOnly lists the metadata of objects; their data is not even requested.
func metadataOnly(f *client.Federation, r schema.GroupVersionResource) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		items := []any{}
		err := f.ListMetadata(ctx, r, func(o metav1.Object) {
			items = append(items, map[string]any{"metadata": map[string]any{
				"namespace": o.GetNamespace(), "name": o.GetName(), "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "creationTimestamp": o.GetCreationTimestamp(),
				"deletionTimestamp": o.GetDeletionTimestamp(), "finalizers": o.GetFinalizers(), "labels": o.GetLabels(), "annotations": ownAnnotations(o.GetAnnotations()),
			}})
		})
		return marshalled(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, err)
	}
}

const leftOut = "(left out)"

// ownAnnotations keeps the values of the federation's annotations: kubectl's have whole objects.
func ownAnnotations(all map[string]string) map[string]string {
	for key := range all {
		if domain, _, _ := strings.Cut(key, "/"); domain != "federation" && !strings.HasPrefix(domain, "federation.") {
			all[key] = leftOut
		}
	}
	return all
}

func whole(map[string]any) {}

// withoutSpec leaves metadata and status of an object.
func withoutSpec(object map[string]any) {
	for field := range object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			object[field] = leftOut
		}
	}
}

// withoutValues leaves out what a policy would set in objects.
func withoutValues(object map[string]any) {
	for field, is := range object {
		switch is := is.(type) {
		case map[string]any:
			withoutValues(is)
		case []any:
			for _, one := range is {
				if one, ok := one.(map[string]any); ok {
					withoutValues(one)
				}
			}
		}
		if field == "value" {
			object[field] = leftOut
		}
	}
}
