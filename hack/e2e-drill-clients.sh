#!/usr/bin/env bash
# Runs a drill of each method on clusters with real nodes, whose Services the node agent serves, while two clients outside send requests.
# - One asks for the global name 100 times a second, as most clients do: it keeps an answer for its TTL and tries no second address. No request may fail in
#   Shift, Evacuate and Isolate; in Blackhole requests fail for no longer than detection (4 s), the TTL and a second.
# - The other asks for the name of the drilled zone, and looks it up each time. A probe of the drill does the same, and reports the outage of the same length.
# Acceptance tests 3 and 4 of drills.
#
#   [CLUSTERS=6] hack/e2e-drill-clients.sh [METHOD ...]   shift, evacuate, isolate, blackhole; all by default
#
# All of it is in a network namespace of its own, which has a route to the load balancers, as the federation's machine has in a company.
set -euo pipefail
[ -n "${DRILLS_INSIDE:-}" ] || exec env DRILLS_INSIDE=1 unshare --net "$0" "$@"
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-drill-clients images=$PWD/_output/bin/images dns=10.64.255.254 ttl=15 hold=60 clusters=${CLUSTERS:-3}
methods=${*:-shift evacuate isolate blackhole}
stack()  { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
fail()   { echo "error: $*; logs: $root/logs, $root/members/*/nodes" >&2; exit 1; }
drill()  { kubectl get failoverdrill "$1" -o jsonpath="{$2}"; }
phase_is() { [ "$(drill "$1" .status.phase)" = "$2" ]; }
ready()    { [ "$(kubectl get replicaset web -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
in_dns()   { [ "$($INTERNET dig +short +tries=1 +time=1 @$dns "$name" A | grep -cE '^[0-9.]+$')" = "$clusters" ]; }

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
  echo "$kind: from the fault on" | tee /dev/fd/"$visitor" >/dev/fd/"$neighbour"
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
  probes: [{name: zone, host: $zone, type: HTTP, mode: Fresh, timeoutSeconds: 1}]
END
  wait_for 120 "the fault of $method" phase_is "$method" Holding
  wait_for 300 "the end of $method" phase_is "$method" Finished
  kubectl federation drill report "$method"
  [ "$(drill "$method" .status.outcome)" = Succeeded ] || fail "$method: $(drill "$method" .status.outcome), $(drill "$method" .status.reason): $(drill "$method" .status.message)"
  echo "after $kind" | tee /dev/fd/"$visitor" >/dev/fd/"$neighbour"
  wait_for 60 "all replicas, after $method" ready
  wait_for 60 "all addresses, after $method" in_dns
  sleep $((ttl + 2))
}

# seen METHOD TABLE: prints the requests that a client sent during a drill, those that failed, within how many seconds, and for how many none was answered.
seen() {
  awk -v name="${1^}: from the fault on" 'index($0, "  " name) == 1 {
    rest = substr($0, length(name) + 3); n = split(rest, f, " "); split(rest, w, "begun "); split(w[2], s, " "); split(rest, w, "answered for "); split(w[2], none, " ")
    for (i = 1; i <= n; i++) { if (f[i] ~ /^[0-9]+,?$/) { failed = f[i] + 0 } else break }
    printf "%d %d %.1f %.1f\n", f[1], failed, s[3] - s[1], none[1]; exit }' "$2"
}

table=$(mktemp) zone_table=$(mktemp)
trap 'stack down >/dev/null; rm -f "$images/nodeagent-blackhole.tar" "$table" "$zone_table"' EXIT
ip link set lo up
_output/bin/image --out "$images/nodeagent-blackhole.tar" --tag nodeagent-blackhole:1 --entrypoint /federation-nodeagent /federation-nodeagent=_output/bin/federation-nodeagent
echo "$clusters clusters with a node each, on which Services do not work"
stack up --real --clusters "$clusters" --nodes 1 --service-proxy none >/dev/null
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
name=web.default.$FEDERATION_NAME.svc.$DNS_ZONE zone=web.default.$FEDERATION_NAME.svc.a.east.$DNS_ZONE
internet=$(cat "$root/internet/pid")
ip link add internet type veth peer name federation netns "$internet"
nsenter -t "$internet" -n ip link set federation master internet up
ip address add 10.64.254.1/16 dev internet
ip link set internet up
for addresses in 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 198.18.0.0/15; do ip route add $addresses via $dns; done
for m in $MEMBERS; do joins "$m"; done
kubectl apply -f hack/demo/real.yaml
wait_for 180 "6 ready replicas" ready
wait_for 60 "all addresses in the global name" in_dns
exec {visitor}> >(exec $INTERNET _output/bin/visitor --dns $dns:53 --name "$name" >"$table")
visitor_pid=$!
exec {neighbour}> >(exec $INTERNET _output/bin/visitor --dns $dns:53 --name "$zone" --fresh --rate 20 >"$zone_table")
neighbour_pid=$!
echo "before" | tee /dev/fd/"$visitor" >/dev/fd/"$neighbour"
sleep 5
for method in $methods; do drills "$method"; done
exec {visitor}>&- {neighbour}>&-
wait "$visitor_pid" && wait "$neighbour_pid" || fail "a client ended with an error"
cat "$table" "$zone_table"
for method in $methods; do
  read -r requests failed within _ < <(seen "$method" "$table") || fail "the client's table has no line of $method"
  printf '%-10s %6d requests, %5d failed: %5d of 10,000, within %s s\n' "$method" "$requests" "$failed" $((failed * 10000 / requests)) "$within"
  read -r _ failed_there _ outage < <(seen "$method" "$zone_table") || fail "the zone's table has no line of $method"
  reported=$(drill "$method" .status.report.probes[0].longestOutageMilliseconds | awk '{ ms = $1 } END { printf "%.1f", ms / 1000 }')
  printf '%-10s of the zone: %d requests failed, none was answered for %s s; the report says %s s\n' "" "$failed_there" "$outage" "$reported"
  awk -v saw="$outage" -v says="$reported" 'BEGIN { exit !(says - saw <= 1 && saw - says <= 1) }' || fail "$method: the report and the client differ by more than a second"
  case $method in
    blackhole)
      [ "$failed" -gt 0 ] || fail "$method: the client has noticed nothing"
      awk -v w="$within" -v most=$((4 + ttl + 1)) 'BEGIN { exit !(w <= most) }' || fail "$method: requests failed for $within s, may for $((4 + ttl + 1))" ;;
    *) [ "$failed" = 0 ] || fail "$method: $failed requests failed" ;;
  esac
done
