// Package memapi is a Kubernetes API in memory, good enough for the federation's controllers.
//
//	api := memapi.New(memapi.Options{Resources: resources})
//	client := api.Client("federation", nil) // a dynamic.Interface
//
// It has what the controllers rely on: resource versions that grow, UIDs, generations, watches with
// initial events and bookmarks, label selectors, finalizers and deletion, preconditions, merge and JSON
// patches, the subresource status, and server-side apply by the very field manager of Kubernetes, with the
// schemas of built-in kinds. Its parity test sends a table of requests to it and to a real API server
// and compares the answers.
//
// What was traded: objects are neither defaulted nor validated beyond their metadata, there is one version
// of each kind, lists are not paged, and watches do not time out by themselves. Whoever owns the API may
// do more when an object comes in (Options.Admit).
package memapi
