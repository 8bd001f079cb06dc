// Package readiness stores FailoverReadinesses: what the federation says of each zone and region.
package readiness
