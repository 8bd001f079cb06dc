#!/usr/bin/env bash
# Measures federation-nodeagent beside kube-proxy, and writes the tables into docs/performance.md.
# bench-dataplane.sh [FLAGS OF benchdataplane…]
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 PATH=$PWD/_output/bin:$PATH:/usr/sbin
go build -o _output/bin/ ./hack/benchdataplane k8s.io/kubernetes/cmd/kube-proxy # as make build made the agent and the member
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
_output/bin/benchdataplane --dir "$dir" --into docs/performance.md "$@"
