#!/usr/bin/env bash
# Starts a stack of its own, measures, and writes the tables into docs/performance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
dir=_output/bench-stack
go build -o _output/bin/bench ./hack/bench
trap '_output/bin/local down --root "$dir" >/dev/null' EXIT
_output/bin/local down --root "$dir" >/dev/null
_output/bin/local up --root "$dir" --clusters 3 --nodes 3
spread=$(_output/bin/bench --dir "$dir" "$@")
planner=$(go test ./scheduler -run '^$' -bench Plan | awk '/^Benchmark/ {sub(/BenchmarkPlan\//, "", $1); sub(/-[0-9]+$/, "", $1); printf "| %s | %.3f ms |\n", $1, $3 / 1e6}')
cat > docs/performance.md <<END
# Performance

Written by \`make bench\` ($(date -u +%F), $(nproc) cores, $(awk '/MemTotal/ {printf "%d GiB", $2 / 1048576 + 0.5}' /proc/meminfo) of memory, Linux $(uname -r | cut -d- -f1)). The members, the
federation and the measuring program share the cores, so what counts are the ratios to the bare client, a client-go program that
sends the same requests (server-side applies) straight to the same members in the same run.

## From apply to the object in all members

$spread

## The planner

| clusters | one plan |
|---|---|
$planner
END
echo; cat docs/performance.md
