#!/usr/bin/env bash
# Has `kubectl federation join --with-nodeagent` install the node agent on real nodes that nothing else makes Services work on,
# and checks that its DaemonSet does, with no right but NET_ADMIN.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/_output/bin:$PATH
root=$PWD/_output/e2e-nodeagent
stack() { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/east-a/kubeconfig" "$@"; }
fail() { echo "error: $*" >&2; member -n federation-system describe pods >&2 || true; exit 1; }

# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local limit=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do
    [ $SECONDS -lt "$limit" ] || fail "$what did not happen in time; logs: $root"
    sleep 0.2
  done
}
answers()     { $INTERNET curl -s -m 1 "http://$1" | grep -q ' on east-a-node-'; }
from_a_pod()  { member exec client -- /pod get "http://$1" 2>/dev/null | grep -q ' on east-a-node-'; }
two_ready()   { [ "$(member get replicaset web -o jsonpath='{.status.readyReplicas}')" = 2 ]; }
has_address() { [ -n "$(member get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}')" ]; }

_output/bin/image --out _output/bin/images/nodeagent.tar --tag federation-nodeagent:1 --entrypoint /federation-nodeagent \
  /federation-nodeagent=_output/bin/federation-nodeagent
trap 'stack down >/dev/null; rm -f _output/bin/images/nodeagent.tar' EXIT
echo "a member with two nodes, on which Services do not work"
stack up --real --clusters 1 --nodes 2 --service-proxy none >/dev/null
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
server=$(member get endpointslices kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
kubectl federation join east-a --member-kubeconfig "$root/members/east-a/kubeconfig" \
  --with-nodeagent --nodeagent-image federation-nodeagent:1 --nodeagent-server "$server"
member -n federation-system rollout status daemonset federation-nodeagent --timeout 2m || fail "the DaemonSet is not ready"

sed 's/replicas: 6/replicas: 2/' hack/demo/real.yaml | kubectl apply -f -
wait_for 60 "two ready pods" two_ready
wait_for 30 "an address of the load balancer" has_address
member run client --image local/pod:1 -- pause >/dev/null
wait_for 30 "an answer to a client outside" answers "$(member get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}')"
wait_for 30 "an answer to a client in a pod" from_a_pod "$(member get service web -o jsonpath='{.spec.clusterIP}')"

pids=$(pgrep -f '^/federation-nodeagent ') || fail "no process of the DaemonSet is to be seen"
for pid in $pids; do
  rights=$(awk '/^CapEff/ {print $2}' "/proc/$pid/status")
  [ "$rights" = 0000000000001000 ] || fail "process $pid has the capabilities $rights, want NET_ADMIN (1000) and no other"
done
echo "the DaemonSet makes Services work, with no right but NET_ADMIN"
