#!/usr/bin/env bash
# Has pods of three clusters, on real nodes, use each other's Services by the Multi-Cluster Services API, with what is named to make Services work in
# a cluster: iptables or nftables (our node agent), kube-proxy-iptables, kube-proxy-nftables. The clauses are those of SIG
# Multicluster's conformance suite, in hack/mcs. With SUITE=FILE that suite itself is run instead, a test program built from the module
# conformance of github.com/kubernetes-sigs/mcs-api; its reports are left in _output/e2e-mcs.
#
#   hack/e2e-mcs.sh "nftables kube-proxy-iptables"
set -euo pipefail
cd "$(dirname "$0")/.."
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
  _output/bin/image --out "$images/coredns.tar" --tag local/coredns:1 --entrypoint /coredns /coredns=_output/bin/coredns
}

stack()  { _output/bin/local --root "$reports/$mode" "$@"; }
member() { kubectl --kubeconfig "$reports/$mode/members/$1/kubeconfig" "${@:2}"; }

make_images
failed=''
for mode in $modes; do
  trap 'stack down >/dev/null; rm -f "$images/mcs.tar"' EXIT
  echo "$mode: three clusters with a node each"
  stack up --real --clusters 3 --nodes 1 --service-proxy "$mode" >"$reports/$mode.log"
  # shellcheck disable=SC1091,SC1090
  source "$reports/$mode/env"
  export KUBECONFIG=$FEDERATION_KUBECONFIG
  all=()
  for m in $MEMBERS; do
    first=$(member "$m" get service kubernetes -o jsonpath='{.spec.clusterIP}') # each cluster has a network of its own
    sed "s/10\.96\.0\.10$/${first}0/" hack/services/coredns.yaml | member "$m" apply -f - >>"$reports/$mode.log"
    kubectl federation join "$m" --member-kubeconfig "$reports/$mode/members/$m/kubeconfig" --with-mcs --patch-coredns --network local >>"$reports/$mode.log" 2>&1
    member "$m" -n kube-system rollout restart deployment/coredns >>"$reports/$mode.log"
    # One file with a context of the name of each cluster.
    sed -E "s/^( *-? *(name|cluster|user|current-context): ).*/\1$m/" "$reports/$mode/members/$m/kubeconfig" >"$reports/$mode/$m.kubeconfig"
    all+=("$reports/$mode/$m.kubeconfig")
  done
  for m in $MEMBERS; do member "$m" -n kube-system rollout status deployment/coredns --timeout=2m >>"$reports/$mode.log"; done
  (IFS=:; KUBECONFIG="${all[*]}" kubectl config view --flatten) >"$reports/$mode/all.kubeconfig"
  echo "$mode: tests, some minutes; their log is $reports/$mode.log"
  if [ -n "${SUITE:-}" ]; then
    (cd "$reports/$mode" && "$SUITE" -test.timeout 1h --ginkgo.no-color --ginkgo.v ${FOCUS:+--ginkgo.focus="$FOCUS"} -contexts "${MEMBERS// /,}" -kubeconfig "$reports/$mode/all.kubeconfig" \
      -project federation -version "$(cat "$OLDPWD/hack/VERSION")") >>"$reports/$mode.log" 2>&1 || failed+=" $mode"
    cp "$reports/$mode"/report.* "$reports/" 2>/dev/null || true
    grep -E '^(Ran|PASS|FAIL|.*Passed)|\[FAIL\]' "$reports/$mode.log" | tail -20
  else
    KUBECONFIG=$reports/$mode/all.kubeconfig MEMBERS=$MEMBERS go test -count=1 -v -timeout 30m ./hack/mcs -run "${FOCUS:-.}" >>"$reports/$mode.log" 2>&1 || failed+=" $mode"
    grep -E '^ *--- |^(ok|FAIL)' "$reports/$mode.log"
  fi
  [ -n "${KEEP:-}" ] || stack down >/dev/null
done
[ -n "${KEEP:-}" ] && trap - EXIT
[ -z "$failed" ] || { echo "some tests failed with:$failed" >&2; exit 1; }
