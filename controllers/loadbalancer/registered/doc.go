// Package registered has load balancers known to the federation, so that Ingresses and DNS have their addresses.
//
//	federation-lb   Announce: its Lease, renewed each second, deleted when it drains
//	the leader      Keeper: Leases ─▶ plan.Alive ─▶ ConfigMap load-balancers, status of Ingresses
//	servicedns      reads the ConfigMap ─▶ addresses of hosts, by Nearest
package registered
