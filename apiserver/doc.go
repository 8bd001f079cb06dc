// Package apiserver is the federation's API: one server that speaks Kubernetes' API for the kinds that
// a federation has, with Kubernetes' own validation, defaults, access control and admission.
//
//	o := apiserver.NewOptions()
//	o.AddFlags(flags)
//	config, err := o.Complete()          // what is wrong with the flags
//	server, err := config.New(ctx)       // data directory, certificates, etcd; nothing serves yet
//	err = server.Run(ctx, func() { … })  // until ctx ends
//
// It stands on the generic control plane of k8s.io/kubernetes: a server for which Pods and Nodes do not
// exist. That costs memory (some 100 MB more than a bare apiserver library) and a look at these few
// files with each minor version of Kubernetes. It brings what users take for granted and nobody should
// write again: every field of a Deployment checked, server-side apply, RBAC, CRDs, webhooks, quota.
package apiserver
