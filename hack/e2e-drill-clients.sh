#!/usr/bin/env bash
# Runs a drill of each method on three clusters with real nodes, whose Services the node agent serves, while a client outside sends 100 requests a second
# to the global name. The client behaves as most do: it keeps an answer for its TTL and tries no second address. No request may fail in Shift, Evacuate and
# Isolate; in Blackhole requests fail for no longer than detection (4 s), the TTL and a second. Acceptance tests 3 and 4 of drills.
#
#   hack/e2e-drill-clients.sh [METHOD ...]   shift, evacuate, isolate, blackhole; all by default
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-drill-clients images=$PWD/_output/bin/images dns=10.64.255.254 ttl=15 hold=60
methods=${*:-shift evacuate isolate blackhole}
stack()  { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
fail()   { echo "error: $*; logs: $root/logs, $root/members/*/nodes" >&2; exit 1; }
drill()  { kubectl get failoverdrill "$1" -o jsonpath="{$2}"; }
phase_is() { [ "$(drill "$1" .status.phase)" = "$2" ]; }
ready()    { [ "$(kubectl get replicaset web -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
in_dns()   { [ "$($INTERNET dig +short +tries=1 +time=1 @$dns "$name" A | grep -cE '^[0-9.]+$')" = 3 ]; }

# joins CLUSTER: has it join with a node agent that may drop traffic from outside during drills.
joins() {
  local server
  server=$(member "$1" get endpointslices kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
  kubectl federation join "$1" --member-kubeconfig "$root/members/$1/kubeconfig" --with-nodeagent --allow-blackhole \
    --nodeagent-image nodeagent-blackhole:1 --nodeagent-server "$server"
  member "$1" -n federation-system rollout status daemonset federation-nodeagent --timeout 3m || fail "$1: the DaemonSet is not ready"
}

# drills METHOD: runs a drill of east-a, and marks its begin and end in the table of the client.
drills() {
  local method=$1 kind=${1^}
  echo "$kind: from the fault on" >&"$visitor"
  kubectl apply -f - <<END
apiVersion: federation/v1beta1
kind: FailoverDrill
metadata: {name: $method}
spec:
  scope: {clusters: [east-a]}
  method: $kind
  reason: a test
  baselineSeconds: 5
  holdSeconds: $hold
  recoverySeconds: 120
  allow: [Quiet, Rested]
END
  wait_for 120 "the fault of $method" phase_is "$method" Holding
  wait_for 300 "the end of $method" phase_is "$method" Finished
  kubectl federation drill report "$method"
  [ "$(drill "$method" .status.outcome)" = Succeeded ] || fail "$method: $(drill "$method" .status.outcome), $(drill "$method" .status.reason): $(drill "$method" .status.message)"
  echo "after $kind" >&"$visitor"
  wait_for 60 "all replicas, after $method" ready
  wait_for 60 "three addresses, after $method" in_dns
  sleep $((ttl + 2))
}

# seen METHOD: prints the requests that the client sent during a drill, those that failed, and within how many seconds.
seen() {
  awk -v name="${1^}: from the fault on" 'index($0, "  " name) == 1 {
    rest = substr($0, length(name) + 3); n = split(rest, f, " "); split(rest, w, "begun "); split(w[2], s, " ")
    for (i = 1; i <= n; i++) { if (f[i] ~ /^[0-9]+,?$/) { failed = f[i] + 0 } else break }
    printf "%d %d %.1f\n", f[1], failed, s[3] - s[1]; exit }' "$table"
}

table=$(mktemp)
trap 'stack down >/dev/null; rm -f "$images/nodeagent-blackhole.tar" "$table"' EXIT
_output/bin/image --out "$images/nodeagent-blackhole.tar" --tag nodeagent-blackhole:1 --entrypoint /federation-nodeagent /federation-nodeagent=_output/bin/federation-nodeagent
echo "three clusters with a node each, on which Services do not work"
stack up --real --clusters 3 --nodes 1 --service-proxy none >/dev/null
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
name=web.default.$FEDERATION_NAME.svc.$DNS_ZONE
for m in $MEMBERS; do joins "$m"; done
kubectl apply -f hack/demo/real.yaml
wait_for 180 "6 ready replicas" ready
wait_for 60 "three addresses in the global name" in_dns
exec {visitor}> >(exec $INTERNET _output/bin/visitor --dns $dns:53 --name "$name" >"$table")
visitor_pid=$!
echo "before" >&"$visitor"
sleep 5
for method in $methods; do drills "$method"; done
exec {visitor}>&-
wait "$visitor_pid" || fail "the visitor ended with an error"
cat "$table"
for method in $methods; do
  read -r requests failed within < <(seen "$method") || fail "the client's table has no line of $method"
  printf '%-10s %6d requests, %5d failed: %5d of 10,000, within %s s\n' "$method" "$requests" "$failed" $((failed * 10000 / requests)) "$within"
  case $method in
    blackhole)
      [ "$failed" -gt 0 ] || fail "$method: the client has noticed nothing"
      awk -v w="$within" -v most=$((4 + ttl + 1)) 'BEGIN { exit !(w <= most) }' || fail "$method: requests failed for $within s, may for $((4 + ttl + 1))" ;;
    *) [ "$failed" = 0 ] || fail "$method: $failed requests failed" ;;
  esac
done
