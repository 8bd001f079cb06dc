#!/usr/bin/env bash
# What clients of federation-lb see on clusters with real nodes and pods when a cluster is killed, hangs, is cut off, is drained and comes back, and when one
# of two load balancers is killed or replaced: no GET may fail, but those whose bytes were on their way to the load balancer that is killed, and none may take
# two seconds. 100 requests a second come over new connections, 100 over 200 kept-alive ones.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
source hack/load-balancers.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin CGO_ENABLED=0
root=$PWD/_output/e2e-lb-real table=$PWD/_output/e2e-lb-real.table
dns=10.64.255.254 one=10.64.255.201 two=10.64.255.202
stack()   { _output/bin/local --root "$root" "$@"; }
up()      { stack up --real --clusters 2 --nodes 1 {visitor}>&- >/dev/null; }
member()  { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
inside()  { $INTERNET "$@"; }
fail()    { cat "$table" >&2 || true; echo "error: $*; logs: $root" >&2; exit 1; }
lb_of()   { member "$1" get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}' 2>/dev/null | grep .; }
processes() { local p; for p in $(pgrep -P "$1"); do processes "$p"; done; echo "$1"; } # of a process, with all below it
cluster() { processes "$(cat "$root/members/$1/pid")"; }
balancer() { # NAME ADDRESS METRICS-PORT
  $INTERNET _output/bin/federation-lb --kubeconfig "$root/lb.kubeconfig" --name "$1" --region east --addresses "$2" --http-bind-address "$2:80" --https-bind-address "" \
    --metrics-bind-address "127.0.0.1:$3" --drain-delay 5s --drain-timeout 10s {visitor}>&- >>"$root/logs/$1.log" 2>&1 &
  balancers[$1]=$!
}
all_ready() { [ "$(kubectl get replicaset web -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
back()      { wait_for 120 "the return of east-a" gets_some east-a; sleep 3; }
phase()     { echo "$*" | tee /dev/fd/"$visitor"; sleep 0.2; } # what is under way when something happens belongs to its phase

declare -A balancers
visitor=9 # until it is a client's
trap 'kill -KILL "${balancers[@]}" 2>/dev/null || true; kill -CONT $(cluster east-a) 2>/dev/null || true; stack down >/dev/null' EXIT
go build -o _output/bin/ ./hack/lbclient
up
mkdir -p "$root/logs"
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
host=www.$DNS_ZONE
kubectl apply -f hack/demo/real.yaml >/dev/null
sed "s/HOST/$host/" hack/demo/ingress.yaml | kubectl apply -f - >/dev/null
wait_for 180 "6 ready pods" all_ready
for m in $MEMBERS; do wait_for 60 "an address of the Service in $m" lb_of "$m"; done
lb_kubeconfig "$root/lb.kubeconfig" lb
lb_kubeconfig_at "$root/lb.kubeconfig" $dns
for a in $one $two; do inside ip address replace "$a/16" dev internet; done
balancer one $one 9154
balancer two $two 9155
for port in 9154 9155; do wait_for 60 "the load balancer of port $port, which is ready" lb_ready $port; done
wait_for 60 "a share of each cluster" share_is east-a 50
exec {visitor}> >($INTERNET _output/bin/lbclient visit --addresses $one:80,$two:80 --host "$host" --kept 200 >"$table")
visitor_pid=$!

phase before; sleep 10
phase "east-a is killed"; kill -KILL "$(cat "$root/members/east-a/pid")"; sleep 10
phase "east-a comes back"; up; back
phase "east-a hangs (SIGSTOP)"; hung=$(cluster east-a); kill -STOP $hung; sleep 10
phase "east-a goes on"; kill -CONT $hung; back
address=$(lb_of east-a)
phase "east-a is cut off"; inside nft -f - <<<"table inet cut { chain out { type filter hook output priority 0; ip daddr $address drop; }; chain in { type filter hook input priority 0; ip saddr $address drop; }; }"; sleep 10
phase "east-a is reached again"; inside nft delete table inet cut; back
phase "east-a is drained"; kubectl federation drain east-a >/dev/null; wait_for 60 "no share of east-a" share_is east-a 0; sleep 3
phase "east-a is undrained"; kubectl federation undrain east-a >/dev/null; back
phase "a load balancer is replaced"; old=${balancers[two]}; balancer two $two 9156; wait_for 30 "the new one" lb_ready 9156; kill -TERM "$old"; wait "$old" || fail "it ended with an error"; sleep 2
phase "a load balancer is killed"; kill -KILL "${balancers[two]}"; sleep 6
phase end
wait "$visitor_pid" || fail "the client ended with an error"
cat "$table"
none_failed "$table"
slowest=$(awk '{ for (i = 1; i <= NF; i++) if ($i == "slowest" && $(i + 1) > most) most = $(i + 1) } END { print most }' "$table")
[ "$slowest" -le 2000 ] || fail "a request took $slowest ms"
echo "No request failed but $broken that were under way when a load balancer was killed; the slowest took $slowest ms."
