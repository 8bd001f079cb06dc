#!/usr/bin/env bash
# Builds Helm at the pinned version from its module, where it is not there yet, into _output/bin: an end-to-end test installs a chart with it.
# It is not in our go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v4.2.4
tool=_output/bin/helm
[ -x $tool-$version ] || {
  echo "building Helm $version (once, about two minutes)"
  CGO_ENABLED=0 GOBIN=$PWD/_output/bin go install "helm.sh/helm/v4/cmd/helm@$version"
  mv $tool $tool-$version
}
ln -sf "helm-$version" $tool
