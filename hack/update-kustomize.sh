#!/usr/bin/env bash
# Renders hack/kustomize from the charts, so that there is one source; with an argument into that folder.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/build-helm.sh v4.2.4 >&2
for chart in federation federation-member; do
  to=${1:-hack/kustomize}/$chart
  namespace=federation
  [ $chart = federation ] || namespace=federation-system
  mkdir -p "$to"
  {
    echo "# Rendered from hack/charts/$chart by hack/update-kustomize.sh: change that."
    _output/bin/helm-v4.2.4 template federation "hack/charts/$chart" --namespace $namespace -f "hack/kustomize/$chart/values.yaml" |
      sed -e '/^ *helm.sh\/chart: /d' -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^ *annotations:$/{N;/helm.sh\/resource-policy/d}' -e '/^# Source: /d' -e '/^$/d'
  } >"$to/resources.yaml"
done
