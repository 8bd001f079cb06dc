#!/usr/bin/env bash
# Builds Helm 4 and Helm 3 at the pinned versions from their modules, where they are not there yet, into _output/bin as helm-VERSION: an end-to-end
# test installs a chart with each. They are not in our go.mod. Arguments are the versions to build.
set -euo pipefail
cd "$(dirname "$0")/.."
for version in ${*:-v4.2.4 v3.21.4}; do
  tool=_output/bin/helm-$version
  [ -x "$tool" ] && continue
  echo "building Helm $version (once, about two minutes)"
  rm -f _output/bin/helm # it may be a link to what was built
  CGO_ENABLED=0 GOBIN=$PWD/_output/bin go install "helm.sh/helm/${version%%.*}/cmd/helm@$version"
  mv _output/bin/helm "$tool"
done
