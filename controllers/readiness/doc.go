// Package readiness keeps a FailoverReadiness for each zone and region: whether its loss would be survived as the world is now.
//
// It runs where the leader is, reads informers only, and acts on nothing. What changed is taken in once a second; a domain of which something changed
// is evaluated when its turn comes, at most once in 30 s, and all evaluations together take a tenth of a core. Nothing is written where nothing
// changed, and at most one status a domain and minute (ADR 99).
package readiness
