package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// IsReadyCopy reports whether a copy is as the object asks now, and all of it runs; a Service's, whether it has a ready endpoint.
func IsReadyCopy(k *Kind, federated *unstructured.Unstructured, c Copy) bool {
	return c.Object != nil && c.State == Synced && c.Looked == federated.GetGeneration() && (k.Healthy == nil || k.Healthy(c.Object)) && (!k.Endpoints || c.ReadyEndpoints)
}
