#!/usr/bin/env bash
# Pins k8s.io/kubernetes and its staging modules to one Kubernetes release.
#
#   hack/update-kubernetes.sh v1.36.3
#
# k8s.io/kubernetes requires its staging modules at v0.0.0 and relies on `replace`
# lines, which Go honours only in the main module: so we repeat them here.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: hack/update-kubernetes.sh v1.MINOR.PATCH}
staging=v0.${version#v1.}

gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
go mod edit -require="k8s.io/kubernetes@$version"
sed -n 's#^\t*\(k8s.io/[a-z-]*\) => ./staging.*#\1#p' "$gomod" | while read -r module; do
  go mod edit -replace="$module=$module@$staging"
done
go mod tidy
