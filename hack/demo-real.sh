#!/usr/bin/env bash
# The way of a request, as a story on the stack that `make up REAL=1` started: a client outside looks up the global
# name and is answered by a pod; a client in a pod is answered by another cluster while its own has no pod of the Service;
# a cluster is killed while two clients send 100 requests a second each, one by DNS alone and one by load balancers over the clusters, and comes back;
# then its zone is drilled. Each step is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
source hack/load-balancers.sh
# shellcheck disable=SC1091
source _output/local/env
export KUBECONFIG=$FEDERATION_KUBECONFIG
name=web.default.$FEDERATION_NAME.svc.$DNS_ZONE host=www.$DNS_ZONE
dns=10.64.255.254 balancers=(10.64.255.201 10.64.255.202)
pids=() work=$(mktemp -d)
cleanup() { [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"; }
trap cleanup EXIT

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
say()  { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; "$@"; }
fail() { printf '\n%sThe demo failed: %s%s\nLogs: _output/local/logs/, _output/local/members/*/nodes/*/\n' "$bold" "$*" "$plain" >&2; exit 1; }
member() { kubectl --kubeconfig "_output/local/members/$1/kubeconfig" "${@:2}"; }
inside() { $INTERNET "$@"; }
exec_inside() { exec $INTERNET "$@"; } # in the background: its process is the program's, so that it can be ended
# What a person would type, behind where: in a member, and at the client outside.
in_member() { printf '%s%s$ kubectl %s%s\n' "$dim" "$1" "${*:2}" "$plain"; member "$@"; }
outside()   { printf '%soutside$ %s%s\n' "$dim" "$*" "$plain"; inside "$@"; }
addresses() { inside dig +short +tries=1 +time=1 "@$dns" "${1:-$name}" A | grep -E '^[0-9.]+$' | sort; }

all_ready()    { [ "$(kubectl get replicaset web -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
in_dns()       { [ "$(addresses | wc -l)" = "$1" ]; }
lb_of()        { member "$1" get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}'; }
out_of_dns()   { local a; a=$(addresses) && ! grep -qx "$1" <<<"$a"; }
answers_from() { inside curl -s -m 1 "http://$1" | grep -q " on $2-node-"; }
balancers_in_dns() { [ "$(addresses "$host" | tr '\n' ' ')" = "${balancers[*]} " ]; }
balancer() { # ADDRESS: a load balancer over the clusters, as a machine outside of them would run it
  inside ip address replace "$1/16" dev internet
  exec_inside _output/bin/federation-lb --kubeconfig "$work/lb.kubeconfig" --name "lb-${1##*.}" --region east --addresses "$1" --http-bind-address "$1:80" --https-bind-address "" \
    --metrics-bind-address "127.0.0.1:9${1##*.}" >"_output/local/logs/lb-${1##*.}.log" 2>&1 &
  pids+=($!)
}
balanced_from() { inside curl -s -m 1 --resolve "$host:80:$1" "http://$host" | grep -q " on .*-node-"; }
# What a client in a pod of east-a is answered at the Service's cluster IP.
from_pod()     { member east-a exec client -- /pod get "http://$cluster_ip"; }
answered_by()  { from_pod 2>/dev/null | grep -q " on $1-node-"; }

[ -n "${INTERNET:-}" ] || fail "what is up has simulated nodes. Start with: make down demo REAL=1"

say "1. Three clusters with real nodes: kubelet, containerd, and our agent in place of kube-proxy"
show kubectl get clusters
in_member east-a get nodes

say "2. A ReplicaSet and a Service, applied once, become pods in all three"
show kubectl apply -f hack/demo/real.yaml
wait_for 120 "6 ready replicas" all_ready
wait_for 60 "three addresses in the global name" in_dns 3
show kubectl get pods -o wide
show kubectl logs replicaset/web

say "3. A client outside of all clusters looks up the global name, and a pod answers"
outside dig +noall +answer "@$dns" "$name" A
for m in $MEMBERS; do
  address=$(lb_of "$m")
  wait_for 30 "an answer of $m at $address" answers_from "$address" "$m"
  outside curl -s "http://$address"
done

say "4. A client in a pod of east-a connects to the Service's cluster IP: it is answered there"
member east-a get pod client >/dev/null 2>&1 || member east-a run client --image local/pod:1 -- pause >/dev/null
cluster_ip=$(member east-a get service web -o jsonpath='{.spec.clusterIP}')
wait_for 60 "an answer to the client in east-a" answered_by east-a
in_member east-a exec client -- /pod get "http://$cluster_ip"
echo "All pods of the Service leave east-a. The same address leads to another cluster, of the same region while there is one:"
show kubectl federation drain east-a
wait_for 30 "an answer of east-b to the client in east-a" answered_by east-b
in_member east-a exec client -- /pod get "http://$cluster_ip"
echo "They return, and so does the way:"
show kubectl federation undrain east-a
wait_for 60 "an answer of east-a to the client in east-a" answered_by east-a
in_member east-a exec client -- /pod get "http://$cluster_ip"
wait_for 60 "three addresses in the global name" in_dns 3

say "5. Two load balancers over the clusters take requests for an Ingress of class federation: http://$host"
lb_kubeconfig "$work/lb.kubeconfig" demo
lb_kubeconfig_at "$work/lb.kubeconfig" $dns
show cat hack/demo/ingress.yaml
sed "s/HOST/$host/" hack/demo/ingress.yaml | kubectl apply -f -
for a in "${balancers[@]}"; do balancer "$a"; done
for a in "${balancers[@]}"; do wait_for 60 "an answer by the load balancer at $a" balanced_from "$a"; done
wait_for 30 "both load balancers in the name of the Ingress" balancers_in_dns
outside dig +noall +answer "@$dns" "$host" A
inside _output/bin/federation-lb trace --host "$host" --metrics-address "127.0.0.1:9${balancers[0]##*.}"

say "6. Two clients send 100 requests a second each, each over a new connection: one by the global name, one by the load balancers. east-a is killed, all of it: control plane, nodes and pods"
visit() { inside _output/bin/visitor --dns $dns:53 --patience 2s --name "$1" >"$2" && touch "$2.over"; }
exec {visitor}> >(tee >(visit "$name" "$work/direct") | visit "$host" "$work/balanced")
visitor_pid=$!
echo "three clusters" >&"$visitor"
sleep 5
lost=$(lb_of east-a)
show kill -KILL "$(cat _output/local/members/east-a/pid)"
echo "east-a is killed" >&"$visitor"
start=$(date +%s%3N)
wait_for 30 "the end of $lost in the global name" out_of_dns "$lost"
outside dig +noall +answer "@$dns" "$name" A
printf 'Its address was out of the name after %d ms. The client, as clients do, keeps an answer for its time to live. Waiting.\n' $(($(date +%s%3N) - start))
sleep 18

say "7. It comes back, with its data, as after a power cut"
echo "east-a starts" >&"$visitor"
show _output/bin/local up --real --nodes 2 {visitor}>&- | grep ' east-a ' # what it starts is not to keep the visitor's input open
wait_for 120 "an answer of east-a at $lost" answers_from "$lost" east-a
wait_for 60 "the return of $lost to the global name" in_dns 3
echo "three clusters again" >&"$visitor"
sleep 20 # the client's old answer ends, and it asks again

say "8. The same on purpose, while the requests go on: a drill takes zone east/a out of service, and brings it back"
echo "zone east/a is drilled" >&"$visitor"
kubectl delete failoverdrill first --ignore-not-found >/dev/null # of an earlier demo
show kubectl federation drill run first --zone east/a --method evacuate --reason "our first drill" --baseline 5s --hold 60s --yes ||
  fail "the drill did not succeed"
show kubectl federation drill report first
echo "the drill is over" >&"$visitor"
sleep 5
exec {visitor}>&-
wait "$visitor_pid" || fail "the visitor ended with an error"

wait_for 10 "the end of the other visitor" test -e "$work/direct.over"
say "What the client saw that goes by DNS alone, by what was going on when a request began"
cat "$work/direct"
say "What the client saw that goes by the load balancers"
cat "$work/balanced"
cat <<END2

What failed after the kill went to the address of east-a, which the first client had from its last look at the name: an answer lives for 15 s.
A load balancer asks another cluster when one does not answer, and believes its own checks, so its client sees nothing of the kill.
The drill waits for old answers to end before it moves a pod: no request fails.
When east-a starts again, its address is not in the name until its nodes, too, have been heard of.

  More: a client outside is     $INTERNET curl http://$lost
  The rules of a node:          nsenter -t $(pgrep -f "node --name=east-a-node-1 --data-dir=$PWD/_output/local/") -n iptables-save -t nat
  Stop it with:                 make down
END2
