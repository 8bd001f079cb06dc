#!/usr/bin/env bash
# Fails when hack/kustomize is not what hack/update-kustomize.sh makes of the charts.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
hack/update-kustomize.sh "$made"
for chart in federation federation-lb federation-member; do
  diff -u "hack/kustomize/$chart/resources.yaml" "$made/$chart/resources.yaml" || { echo "hack/kustomize is stale: run hack/update-kustomize.sh" >&2; exit 1; }
done
