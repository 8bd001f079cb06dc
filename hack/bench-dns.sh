#!/usr/bin/env bash
# Measures federation-dns beside Knot, NSD, BIND and CoreDNS, and writes the tables into
# docs/performance.md. bench-dns.sh [FLAGS OF benchdns…]
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 PATH=$PWD/_output/bin:$PATH
hack/build-coredns.sh
go build -o _output/bin/ ./hack/benchdns ./cmd/federation-dns
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
_output/bin/benchdns --dir "$dir" --into docs/performance.md "$@"
