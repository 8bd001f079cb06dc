#!/usr/bin/env bash
# Runs Kubernetes' own tests of Services against a member with two real nodes, once for each thing that makes
# Services work there, and writes what passed into docs/dataplane-conformance.md, in which the columns of others stay:
#
#   hack/e2e-dataplane.sh "kube-proxy-iptables iptables nftables" '\[sig-network\] Services'
#
# What came of other tests than all of these is only printed.
set -euo pipefail
cd "$(dirname "$0")/.."
modes=$1 focus=$2 all='\[sig-network\] Services'
export PATH=$PWD/_output/bin:$PATH
reports=$PWD/_output/e2e-dataplane
mkdir -p "$reports"
failed=''

for mode in $modes; do
  root=$reports/$mode
  trap '_output/bin/local --root "$root" down >/dev/null' EXIT
  echo "$mode: a member with two nodes"
  _output/bin/local --root "$root" up --real --clusters 1 --nodes 2 --members-only --service-proxy "$mode" >"$reports/$mode.log"
  export KUBECONFIG=$root/members/east-a/kubeconfig
  kubectl apply -f hack/services/coredns.yaml >>"$reports/$mode.log"
  kubectl -n kube-system rollout status deployment/coredns --timeout=2m >>"$reports/$mode.log"
  echo "$mode: tests, some minutes; their log is $reports/$mode.log"
  ginkgo --procs="${PROCS:-4}" --silence-skips --no-color --focus="$focus" --skip='\[Serial\]|\[Disruptive\]|\[Feature:|\[Slow\]' \
    --output-dir="$reports" --json-report="$mode.json" _output/bin/services.test -- \
    --provider=skeleton --kubeconfig="$KUBECONFIG" --num-nodes=2 --allowed-not-ready-nodes=0 >>"$reports/$mode.log" 2>&1 || failed+=" $mode"
  grep -E '^(Ran|PASS|FAIL|.*Passed)' "$reports/$mode.log" | tail -3
  _output/bin/local --root "$root" down >/dev/null
  trap - EXIT
done
commit=$(git log -1 --format=%h -- nodeagent cmd/federation-nodeagent)
columns=()
for mode in kube-proxy-iptables kube-proxy-nftables iptables nftables; do
  column=$mode
  if [[ " $modes " == *" $mode "* ]]; then
    [[ $mode == kube-proxy-* ]] || column+=", $commit"
    column+="=$reports/$mode.json"
  fi
  columns+=("$column")
done
go build -o _output/bin/table ./hack/services/table
doc=docs/dataplane-conformance.md before=()
[ "$focus" != "$all" ] || before=(--before $doc)
_output/bin/table "${before[@]}" "${columns[@]}" >"$reports/table.md"
if [ "$focus" = "$all" ]; then
  cat - "$reports/table.md" >$doc <<END
# Kubernetes' own tests of Services

Written by \`make e2e-dataplane\`: the end-to-end tests \`[sig-network] Services\` of Kubernetes v1.36.3, without those that are serial, slow, or need a feature
or a cloud, against a member with two real nodes (\`make up REAL=1\`) and nothing but the named program to make Services work. \`iptables\` and \`nftables\` are
ours in these modes, as of the commit beside the name. Tests that skip themselves there are left out. Seconds are how long a test took on a machine shared with other work; they compare nothing.

END
fi
cat "$reports/table.md"
[ -z "$failed" ] || { echo "some tests failed with:$failed" >&2; exit 1; }
