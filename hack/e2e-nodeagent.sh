#!/usr/bin/env bash
# Has `kubectl federation join --with-nodeagent` install the node agent on the real nodes of two clusters, in which nothing else
# makes Services work: mode nftables in one, iptables in the other. In both a client outside and one in a pod are answered, the other
# cluster answers while this one has no pod of the Service, the DaemonSet has no right but what its mode needs, and leaving
# ends it: its rules serve on, until --cleanup takes them away.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-nodeagent images=$PWD/_output/bin/images
declare -A mode=([east-a]=nftables [east-b]=iptables) other=([east-a]=east-b [east-b]=east-a)
declare -A rights=([nftables]='0000000000001000, which is NET_ADMIN' [iptables]='0000000000003000, which is NET_ADMIN and NET_RAW')
stack()  { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
fail() {
  for m in "${!mode[@]}"; do
    member "$m" -n federation-system describe pods >&2 || true
    dataplane "$m" >&2 || true
  done
  echo "error: $*; logs: $root/logs, $root/members/*/nodes" >&2
  exit 1
}

# An image for each mode, of what lies on this machine: iptables comes with its extensions, and has a name for each thing that it does.
make_images() {
  local files=() command
  _output/bin/image --out "$images/nodeagent-nftables.tar" --tag nodeagent-nftables:1 --entrypoint /federation-nodeagent \
    /federation-nodeagent=_output/bin/federation-nodeagent
  for command in {iptables,ip6tables}{,-nft,-nft-save,-nft-restore}; do
    files+=("/usr/sbin/$command=$(command -v "$command")")
  done
  for extension in /usr/lib/*/xtables/*.so; do files+=("$extension=$extension"); done
  _output/bin/image --out "$images/nodeagent-iptables.tar" --tag nodeagent-iptables:1 --libraries --entrypoint /federation-nodeagent \
    /federation-nodeagent=_output/bin/federation-nodeagent "${files[@]}"
}

pods_of()      { [ "$(member "$1" get replicaset web -o jsonpath='{.status.readyReplicas}')" = 2 ]; }
cluster_ip()   { member "$1" get service web -o jsonpath='{.spec.clusterIP}'; }
balancer_of()  { member "$1" get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}'; }
has_balancer() { [ -n "$(balancer_of "$1")" ]; }
outside()      { $INTERNET curl -s -m 1 "http://$(balancer_of "$1")" | grep -q " on $1-node-"; }
asked()        { member "$1" exec client -- /pod get "http://$(cluster_ip "$1")" 2>&1 || true; }
from_a_pod()   { asked "$1" | grep -q " on $2-node-"; }
serves_on()    { from_a_pod "$1" "$1" && from_a_pod "$1" "$1" && from_a_pod "$1" "$1"; }
unanswered()   { asked "$1" | grep -q '^pod: error: '; }
node_of()      { pgrep -f "node --name=$1-node-$2 --data-dir=$root/"; }
agent_on()     { pgrep --ns "$(node_of "$1" "$2")" --nslist net -f '^/federation-nodeagent '; }
no_agents()    { ! agent_on "$1" 1 && ! agent_on "$1" 2; } >/dev/null
gone()         { ! member "$@" >/dev/null 2>&1; }

# dataplane CLUSTER: what a client in a pod is told, and what it should have been told by, for those who look into a failure.
dataplane() {
  local node
  echo "--- $1: a client in a pod that asks $(cluster_ip "$1") is told: $(asked "$1")"
  member "$1" get pods,endpointslices -o wide
  for node in 1 2; do
    echo "--- $1-node-$node: its rules"
    nsenter -t "$(node_of "$1" $node)" -n nft list ruleset
  done
}

# joins CLUSTER: with the node agent.
joins() {
  local server
  server=$(member "$1" get endpointslices kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
  kubectl federation join "$1" --member-kubeconfig "$root/members/$1/kubeconfig" --with-nodeagent --nodeagent-mode "${mode[$1]}" \
    --nodeagent-image "nodeagent-${mode[$1]}:1" --nodeagent-server "$server"
  member "$1" -n federation-system rollout status daemonset federation-nodeagent --timeout 2m || fail "$1: the DaemonSet is not ready"
  member "$1" run client --image local/pod:1 -- pause
}

# serves CLUSTER: Services lead to its pods, and while it has none to the other's.
serves() {
  wait_for 30 "an answer of $1 to a client outside" outside "$1"
  wait_for 30 "an answer of $1 to a client in one of its pods" from_a_pod "$1" "$1"
  kubectl federation drain "$1"
  wait_for 60 "an answer of ${other[$1]} to a client in a pod of $1" from_a_pod "$1" "${other[$1]}"
  kubectl federation undrain "$1"
  wait_for 60 "an answer of $1 to a client in one of its pods, after its return" from_a_pod "$1" "$1"
  wait_for 60 "two ready pods in $1 again" pods_of "$1"
}

# least_rights CLUSTER: on both nodes.
least_rights() {
  local node pid has want=${rights[${mode[$1]}]}
  for node in 1 2; do
    pid=$(agent_on "$1" $node) || fail "$1: no process of the DaemonSet is to be seen on node $node"
    has=$(awk '/^CapEff/ {print $2}' "/proc/$pid/status")
    [ "$has" = "${want%%,*}" ] || fail "$1: process $pid has the capabilities $has, want $want, and no other"
  done
}

# leaves CLUSTER: the agent ends, its rules serve on until they are taken away.
leaves() {
  local node
  kubectl federation unjoin "$1" --yes
  wait_for 60 "the end of the DaemonSet of $1" gone "$1" -n federation-system get daemonset federation-nodeagent
  wait_for 60 "the end of its account's rights" gone "$1" get clusterrole federation-nodeagent
  wait_for 60 "the end of its processes" no_agents "$1"
  # Nobody is left to put rules right, so that an answer after seconds proves as much as one at once: what may fail meanwhile is kubectl exec,
  # or a client that has only two seconds, on a machine where much ends just now. Three in a row, for rules may lead to the wrong place now and then.
  wait_for 10 "three answers in a row to a client in a pod of $1, which has left," serves_on "$1"
  for node in 1 2; do
    nsenter -t "$(node_of "$1" $node)" -m -n -p /run/bin/federation-nodeagent --cleanup --proxy-mode "${mode[$1]}"
  done
  unanswered "$1" || fail "$1: a client in a pod was not refused the Service after --cleanup, but told: $(asked "$1")"
}

trap 'stack down >/dev/null; rm -f "$images"/nodeagent-{nftables,iptables}.tar' EXIT
make_images
echo "two clusters with two nodes each, on which Services do not work"
stack up --real --clusters 2 --nodes 2 --service-proxy none >/dev/null
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
for m in $MEMBERS; do joins "$m"; done
sed 's/replicas: 6/replicas: 4/' hack/demo/real.yaml | kubectl apply -f -
for m in $MEMBERS; do
  wait_for 60 "two ready pods in $m" pods_of "$m"
  wait_for 30 "an address of the load balancer in $m" has_balancer "$m"
done
for m in $MEMBERS; do serves "$m"; least_rights "$m"; done
for m in $MEMBERS; do leaves "$m"; done
echo "the DaemonSet makes Services work in both modes, across clusters, with no right but NET_ADMIN (mode iptables: and NET_RAW), and goes as it came"
