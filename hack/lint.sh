#!/usr/bin/env bash
# Runs golangci-lint at the pinned version, built from its module where it is not there yet: on the packages that are named, or all.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v2.5.0
export CGO_ENABLED=0
tool=_output/bin/golangci-lint-$version
if [ ! -x "$tool" ]; then
  echo "building golangci-lint $version (once, about three minutes)"
  GOBIN=$PWD/_output/bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
  mv _output/bin/golangci-lint "$tool"
fi
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "not formatted with gofmt:"; echo "$unformatted"; exit 1; }
[ $# -gt 0 ] || set -- ./...
"$tool" run --allow-parallel-runners --timeout 60m "$@" # another checkout may be linted meanwhile, and CI gives it what is left
