#!/usr/bin/env bash
# Measures federation-dns beside Knot, NSD, BIND and CoreDNS, and writes the tables into
# docs/performance.md. bench-dns.sh [FLAGS OF benchdns…]
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 PATH=$PWD/_output/bin:$PATH
coredns=v1.12.4
if [ ! -x _output/bin/coredns ]; then
  echo "building CoreDNS $coredns from its module (once, some minutes)"
  GOBIN=$PWD/_output/bin go install "github.com/coredns/coredns@$coredns"
fi
go build -o _output/bin/ ./hack/benchdns ./cmd/federation-dns
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
_output/bin/benchdns --dir "$dir" --into docs/performance.md "$@"
