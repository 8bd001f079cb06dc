#!/usr/bin/env bash
# Renders hack/kustomize from the charts, so that there is one source; with an argument into that folder.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/build-helm.sh v4.2.4 >&2
declare -A namespaces=([federation]=federation [federation-lb]=federation-lb [federation-member]=federation-system)
for chart in "${!namespaces[@]}"; do
  to=${1:-hack/kustomize}/$chart
  mkdir -p "$to"
  {
    echo "# Rendered from hack/charts/$chart by hack/update-kustomize.sh: change that."
    _output/bin/helm-v4.2.4 template "$chart" "hack/charts/$chart" --namespace "${namespaces[$chart]}" -f "hack/kustomize/$chart/values.yaml" |
      sed -e '/^ *helm.sh\/chart: /d' -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^ *annotations:$/{N;/helm.sh\/resource-policy/d}' -e '/^# Source: /d' -e '/^$/d'
  } >"$to/resources.yaml"
done
