// Package readiness stores FailoverReadinesses: the federation's report on each zone and region.
package readiness
