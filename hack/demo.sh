#!/usr/bin/env bash
# The main job as a story, on the stack that `make up` started. Each step is checked; the first that
# does not happen ends the story with the reason and a non-zero exit. Times are measured on the way.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
# shellcheck disable=SC1091
source _output/local/env
export KUBECONFIG=$FEDERATION_KUBECONFIG
dns_ip=${DNS_ADDRESS%:*} dns_port=${DNS_ADDRESS##*:}
name=web.default.$FEDERATION_NAME.svc
declare -A names=([zone]=$name.a.east.$DNS_ZONE [region]=$name.east.$DNS_ZONE [global]=$name.$DNS_ZONE)
times=()

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
say()  { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; "$@"; }
now()  { date +%s%3N; }
member() { kubectl --kubeconfig "_output/local/members/$1/kubeconfig" "${@:2}"; }

answer()   { dig +short +tries=1 +time=1 "@$dns_ip" -p "$dns_port" "$1" A | sort | tr '\n' ' '; }
addresses(){ answer "$1" | tr ' ' '\n' | grep -E '^[0-9.]+$' | tr '\n' ' ' || true; }
count()    { wc -w <<<"$1"; }
ready()    { kubectl get replicaset web -o jsonpath='{.status.readyReplicas}' 2>/dev/null || true; }
placed()   { kubectl get replicaset web -o jsonpath='{.metadata.annotations.federation\.kubernetes\.io/placement}' 2>/dev/null || true; }
lb_of()    { member "$1" get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}' 2>/dev/null || true; }

fail() {
  printf '\n%sThe demo failed: %s%s\nLogs: _output/local/logs/; placement: %s; ready: %s; global name: %s\n' \
    "$bold" "$*" "$plain" "$(placed)" "$(ready)" "$(answer "${names[global]}")" >&2
  exit 1
}
# note WHAT [WHEN]: what has happened, just now or then, some time after $start.
note() { times+=("$(printf '%-62s %7s ms' "$1" $((${2:-$(now)} - start)))"); }

all_ready()     { [ "$(ready)" = 30 ]; }
spread()        { [[ "$(placed)" == "{\"clusters\":{$1}"* ]]; }
spread_home()   { spread '"east-a":20,"east-b":5,"west-a":5'; }
spread_away()   { spread '"east-b":15,"west-a":15'; }
returned()      { [[ "$(placed)" == *"cluster east-a failing back, $1 %"* ]]; } # its history says so also when it has more already
in_dns()        { grep -qw "$1" <<<"$(addresses "${names[global]}")"; }
out_of_dns()    { local a; a=$(addresses "${names[global]}"); [ -n "$a" ] && ! grep -qw "$1" <<<"$a"; }
three_in_dns()  { [ "$(count "$(addresses "${names[global]}")")" = 3 ]; }
zone_is_cname() { [ "$(dig +short +tries=1 +time=1 "@$dns_ip" -p "$dns_port" "${names[zone]}" CNAME)" = "${names[region]}." ]; }
member_has()    { [ "$(member "$1" get replicaset web -o jsonpath='{.spec.replicas}/{.status.readyReplicas}' 2>/dev/null)" = "$2/$2" ]; }
cluster_is()    { [ "$(kubectl get cluster "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
others_ready()  { local a b; a=$(member east-b get replicaset web -o jsonpath='{.status.readyReplicas}'); b=$(member west-a get replicaset web -o jsonpath='{.status.readyReplicas}'); [ "${a:-0}" -eq 15 ] && [ "${b:-0}" -eq 15 ]; }

show_names() {
  for level in zone region global; do show dig +noall +answer "@$dns_ip" -p "$dns_port" "${names[$level]}" A; done
}
show_members() {
  for m in "$@"; do printf '%s$ kubectl --kubeconfig _output/local/members/%s/kubeconfig get replicaset web%s\n' "$dim" "$m" "$plain"; member "$m" get replicaset web --no-headers; done
}

stopped=''
in_dns_since=''
cleanup() { rm -f "$in_dns_since"; [ -z "$stopped" ] || kill -CONT "$stopped" 2>/dev/null || true; }
trap cleanup EXIT

[ "$MEMBERS" = "east-a east-b west-a" ] ||
  fail "the story is told with the clusters east-a, east-b and west-a, but these run: $MEMBERS. Start with: make down demo"

say "1. Three Kubernetes clusters in two regions, behind one API"
show kubectl get clusters

say "2. An ordinary ReplicaSet of 30 and a Service, applied once"
start=$(now)
show kubectl apply -f hack/demo/web.yaml
wait_for 60 "the spread 20/5/5 of the preferences" spread_home; note "kubectl apply → replicas placed"
wait_for 60 "30 ready replicas" all_ready;                      note "kubectl apply → 30 replicas ready in three clusters"
wait_for 60 "three addresses in the global name" three_in_dns;  note "kubectl apply → global name with three addresses"
show kubectl get replicaset,service web -o wide
echo "Where the replicas went:"
show_members east-a east-b west-a
echo "And their pods, of one cluster here:"
show kubectl get pods -l federation.kubernetes.io/cluster=east-b
[ "$(kubectl get pods -l app=web -o name | wc -l)" = 30 ] || fail "the federation does not show 30 pods"

say "3. One name for the zone, the region and the world"
show_names
east_a=$(lb_of east-a)
[ -n "$east_a" ] || fail "east-a has no load balancer address"

say "4. What if east-a were lost? And why is everything where it is?"
show kubectl federation plan failover --cluster east-a
show kubectl federation explain replicaset/web

say "5. east-a is lost: its control plane, nodes and load balancer stop answering"
stopped=$(cat _output/local/members/east-a/pid)
start=$(now)
show kill -STOP "$stopped"
wait_for 20 "the end of $east_a in the global name" out_of_dns "$east_a"; note "east-a stops → its address is out of the global name"
wait_for 20 "the zone name as a CNAME of the region's" zone_is_cname
cluster_is east-a False || fail "the Cluster east-a is not marked as not ready"
show kubectl get clusters
show kubectl get pods -l 'federation.kubernetes.io/cluster in (east-a,east-b)'
show_names
echo "Its replicas stay where they are for a grace period of 30 s, in case it comes back. Waiting."
wait_for 90 "the move of the replicas to east-b and west-a" spread_away;  note "east-a stops → its replicas are placed elsewhere"
wait_for 60 "15 ready replicas in east-b and in west-a" others_ready;     note "east-a stops → 30 replicas ready elsewhere"
wait_for 30 "30 ready replicas in the federation's status" all_ready
show kubectl get replicaset web
show_members east-b west-a

say "6. east-a comes back, and gets its replicas back in three steps, each after it has been ready for 3 s (by default a minute)"
start=$(now)
show kill -CONT "$stopped"; stopped=''
wait_for 30 "the Cluster east-a being ready" cluster_is east-a True;  note "east-a returns → the cluster is ready again"
echo "Its address is given out again when its nodes have been heard of, for pods may have died with them."
in_dns_since=$(mktemp) # that comes beside the steps
{ wait_for 60 "the return of $east_a to the global name" in_dns "$east_a" && now >"$in_dns_since"; } & watcher=$!
for share in 10 50; do
  wait_for 30 "a share of $share %" returned $share; note "east-a returns → it gets $share % of what it had"
  show kubectl get replicaset web -o wide
done
wait_for 60 "the spread 20/5/5" spread_home; note "east-a returns → it gets all of what it had"
wait_for 60 "20 ready replicas in east-a" member_has east-a 20
wait_for 60 "5 ready replicas in east-b" member_has east-b 5;         note "east-a returns → replicas as the preferences say"
wait "$watcher"; note "east-a returns → its address is back in the global name" "$(<"$in_dns_since")"
wait_for 60 "30 ready replicas in the federation's status" all_ready
show kubectl get clusters
show_names
show_members east-a east-b west-a

say "7. The same on purpose: a drill cuts the federation off from zone east/a, measures what comes of it, and undoes it"
show kubectl get failoverreadiness
kubectl delete failoverdrill first --ignore-not-found >/dev/null # of an earlier demo
show kubectl federation drill run first --zone east/a --method isolate --reason "our first drill" --baseline 5s --hold 40s --detected 5s --out-of-dns 10s --yes ||
  fail "the drill did not succeed"
show kubectl federation drill report first
show_members east-a east-b west-a

say "Measured"
printf '  %s\n' "${times[@]}"
cat <<END

${bold}Everything happened as it should.${plain} The stack goes on running:
  export KUBECONFIG=$FEDERATION_KUBECONFIG
  kubectl get clusters,replicasets,services
  kubectl federation explain replicaset/web
  kubectl federation drain east-a; kubectl federation undrain east-a
  kubectl federation drill report first -o html > drill.html
  dig @$dns_ip -p $dns_port ${names[global]}
Stop it with: make down
END
