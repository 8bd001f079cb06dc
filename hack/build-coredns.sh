#!/usr/bin/env bash
# Builds CoreDNS at the pinned version from its module, where it is not there yet, into _output/bin: tests
# and measurements ask it. It is not in our go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.12.4
tool=_output/bin/coredns
[ -x $tool-$version ] || {
  echo "building CoreDNS $version (once, about three minutes)"
  CGO_ENABLED=0 GOBIN=$PWD/_output/bin go install "github.com/coredns/coredns@$version"
  mv $tool $tool-$version
}
ln -sf "coredns-$version" $tool
