#!/usr/bin/env bash
# Makes docs/reference from the code and from the help of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
out=${1:-docs/reference}
hack/build.sh >&2
go run ./hack/reference -bin _output/bin -out "$out"
