package main

import (
	_ "github.com/miekg/dns"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/bbolt"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/cloud-provider/controllers/service"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/pkg/controlplane/apiserver"
	_ "sigs.k8s.io/kwok/pkg/kwok/cmd"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
)

func main() {}
