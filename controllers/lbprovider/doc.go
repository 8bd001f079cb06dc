// Package lbprovider is the load balancer provider of one cluster: it gives Services of type LoadBalancer addresses of its pools, and
// leads connections to these to node ports.
//
//	Services ──────────────▶ plan.Allocate ─▶ status, events      the provider that holds the Lease
//	Services, Nodes, slices ─▶ plan.Ports ──▶ Writer (nftables)   all providers: who takes over is ready
//	addresses on record ────────────────────▶ Holder (package vip) the one that holds the Lease
//	checks of nodes ─▶ plan.Members
//
// The addresses lapse by themselves some seconds after a provider's end. While the API is away its holder goes on: nobody else can take the Lease then.
package lbprovider
