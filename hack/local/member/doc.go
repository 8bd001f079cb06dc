// Command member is one whole, real Kubernetes cluster in one process: etcd, kube-apiserver,
// kube-controller-manager with all its controllers, kube-scheduler, and for simulated nodes
// Kubernetes' own service controller over a small cloud that hands out load balancer addresses, a
// controller that gives Ingresses addresses, and kwok, which plays the kubelets. Real nodes, and the
// load balancer provider beside them, are processes that it starts and that die with it.
//
//	member --name east-a --data-dir DIR --port 20443 --region east --zone a --lb-cidr 192.0.2.0/24
//
// makes its certificates at first start, writes DIR/kubeconfig, and runs until SIGTERM. The same
// data directory brings the same cluster back, also after a kill -9.
//
// Why one process: SIGSTOP or SIGKILL to it is what the loss of a zone is, and twenty of them fit
// on a laptop. Its price: simulated pods run nothing and answer no traffic; etcd does not fsync (a power
// cut may lose the cluster, the death of the process does not); every component uses the one admin
// credential; and nodes are never declared lost (see nodeGracePeriod).
package main
