// Package apiserver is the federation's API: one server for Kubernetes' API of the kinds that a federation has, with Kubernetes'
// own validation, defaults, access control and admission.
//
//	o := apiserver.NewOptions()
//	o.AddFlags(flags)
//	config, err := o.Complete()          // what is wrong with the flags
//	server, err := config.New(ctx)       // data directory, certificates, etcd; nothing serves yet
//	err = server.Run(ctx, func() { … })  // until ctx ends
//
// It builds on the generic control plane of k8s.io/kubernetes: a server without Pods and Nodes. That costs memory (some 100 MB
// more than a bare apiserver library) and a review of these few files with each minor version of Kubernetes. In return it
// has what users take for granted and nobody should write again: every field of a Deployment validated, server-side apply,
// RBAC, CRDs, webhooks, quota.
package apiserver
