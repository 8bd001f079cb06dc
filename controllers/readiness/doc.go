// Package readiness keeps a FailoverReadiness for each zone and region: whether its loss would be survived now.
//
// It runs in the leader, reads only informers, and acts on nothing. It takes in changes once a second. A domain that something
// changed in is evaluated when its turn comes, at most once in 30 s; all evaluations together take a tenth of a core. It writes
// nothing without a change, and at most one status per domain and minute (ADR 99).
package readiness
