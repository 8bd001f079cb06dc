// Package loadbalancer keeps a proxy in line with the federation: it watches Ingresses of the federation's class, Services, and what
// clusters have of them, and hands tables, pools and certificates to package proxy, which sends requests.
//
//	Ingresses, Services, grants, owners of hosts ─▶ plan.Tables ─▶ table     the hosts that a change is about, some changes at once
//	offers of servicedns, Services, policies     ─▶ pools                    those that changed, each by itself
//	Secrets that the table names                 ─▶ certificates             at once, then each minute
//
// What cannot be read any more stays as it was: while the federation is away, requests go on.
package loadbalancer
