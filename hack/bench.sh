#!/usr/bin/env bash
# Starts member clusters of its own, measures, and writes the tables into docs/performance.md, in the section
# for as many clusters. bench.sh [CLUSTERS [FLAGS OF bench…]]; with more than 3 clusters only spreading is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
clusters=${1:-3}
shift || true
dir=_output/bench-stack
nodes=6 # of 1000 pods: without room for all, objects are placed anew as they are counted
[ "$clusters" -le 3 ] || nodes=3
planner=$(mktemp)
go build -o _output/bin/bench ./hack/bench
trap 'rm -f "$planner"; _output/bin/local down --root "$dir" >/dev/null' EXIT
_output/bin/local down --root "$dir" >/dev/null
_output/bin/local up --members-only --root "$dir" --clusters "$clusters" --nodes "$nodes" --timeout 15m
go test ./scheduler/apportion -run '^$' -bench Plan | awk '/^Benchmark/ {sub(/.*\//, "", $1); sub(/-[0-9]+$/, "", $1); printf "| %s | %.3f ms |\n", $1, $3 / 1e6}' >"$planner"
scenarios=bphacd
[ "$clusters" -le 3 ] || scenarios=ba
_output/bin/bench --root "$dir" --scenarios "$scenarios" --into docs/performance.md --planner "$planner" "$@"
