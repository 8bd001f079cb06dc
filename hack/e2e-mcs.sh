#!/usr/bin/env bash
# Has pods of three clusters, on real nodes, use each other's Services by the Multi-Cluster Services API, with what is named to make Services work in
# a cluster: iptables or nftables (our node agent), kube-proxy-iptables, kube-proxy-nftables, federated (kube-proxy, and our agent beside it). The clauses are those of SIG
# Multicluster's conformance suite, in hack/mcs. With SUITE=FILE that suite itself is run instead, RUNS times in a row, a test program built from the module
# conformance of github.com/kubernetes-sigs/mcs-api; its reports are left in _output/e2e-mcs.
#
#   hack/e2e-mcs.sh "nftables kube-proxy-iptables"
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/mcs.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin CGO_ENABLED=0
modes=$1 reports=$PWD/_output/e2e-mcs images=$PWD/_output/bin/images
mkdir -p "$reports"

# The images that the suite names, of what lies on this machine: a shell and what is called from it.
make_images() {
  local tool files=(/bin/sh=/bin/dash)
  for tool in socat nc nslookup grep awk tr head tail sleep cat echo; do
    files+=("/bin/$tool=$(readlink -f "$(type -P "$tool")")")
  done
  _output/bin/image --out "$images/mcs.tar" --tag alpine/socat:1.7.4.4,nicolaka/netshoot:v0.15 --libraries "${files[@]}"
  mcs_images
}

# run_suite RUN: one run of the suite, whose result is printed.
run_suite() {
  local log=$reports/$mode-$1.log passed=0
  (cd "$reports/$mode" && "$SUITE" -test.timeout 1h --ginkgo.no-color --ginkgo.v ${FOCUS:+--ginkgo.focus="$FOCUS"} -contexts "${MEMBERS// /,}" -kubeconfig "$reports/$mode/all.kubeconfig" \
    -project federation -version "$(cat "$OLDPWD/hack/VERSION")") >"$log" 2>&1 || passed=1
  for report in html yaml; do cp "$reports/$mode/report.$report" "$reports/$mode-$1.$report" 2>/dev/null || true; done
  echo "$mode, run $1, log $log:"
  grep -E '^(Ran|PASS|FAIL|.*Passed)|\[FAIL\]' "$log" | tail -20
  return $passed
}

make_images
failed=''
for mode in $modes; do
  trap '_output/bin/local --root "$reports/$mode" down >/dev/null; rm -f "$images/mcs.tar"' EXIT
  echo "$mode: three clusters with a node each; log $reports/$mode.log"
  mcs_stack "$reports/$mode" "$mode" >"$reports/$mode.log" 2>&1
  echo "$mode: tests, some minutes"
  if [ -n "${SUITE:-}" ]; then
    for run in $(seq "${RUNS:-1}"); do run_suite "$run" || failed+=" $mode"; done
  else
    KUBECONFIG=$reports/$mode/all.kubeconfig MEMBERS=$MEMBERS go test -count=1 -v -timeout 30m ./hack/mcs -run "${FOCUS:-.}" >>"$reports/$mode.log" 2>&1 || failed+=" $mode"
    grep -E '^ *--- |^(ok|FAIL)' "$reports/$mode.log"
  fi
  [ -n "${KEEP:-}" ] || _output/bin/local --root "$reports/$mode" down >/dev/null
done
[ -n "${KEEP:-}" ] && trap - EXIT
[ -z "$failed" ] || { echo "some tests failed with:$failed" >&2; exit 1; }
