#!/usr/bin/env bash
# An application of twelve Services that call each other (hack/demo/app.yaml), on three clusters with real nodes. By default it is whole in one cluster. Policies
# then tear it apart, a third in each cluster, then each third in two clusters, while a client outside sends requests that each take all Services.
# Then a cluster is killed: requests fail for no longer than its detection, and none after. Prints the client's table.
#
#   hack/e2e-app.sh [MODE]   what makes Services work in a cluster, as of hack/e2e-mcs.sh: nftables by default
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
source hack/mcs.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin CGO_ENABLED=0
mode=${1:-nftables} root=$PWD/_output/e2e-app images=$PWD/_output/bin/images dns=10.64.255.254 rate=${RATE:-5}
within=5 # seconds from the kill in which requests may begin that fail: 4 until the cluster counts as lost, one until nothing leads there
work=$(mktemp -d)
trap '_output/bin/local --root "$root" down >/dev/null; rm -rf "$images/part.tar" "$work"' EXIT

fail()   { kubectl -n shop get deployments,pods -o wide >&2 || true; cat "$work/table" >&2 || true; echo "error: $*; logs: $root.log, $root/logs, $root/members/*/nodes" >&2; exit 1; }
shop()   { kubectl -n shop "$@"; }
# where: for each cluster that has pods of the application, how many are ready, and of how many Deployments.
where() {
  local m
  for m in $MEMBERS; do
    mcs_member "$root" "$m" -n shop get deployments -o jsonpath='{range .items[*]}{.status.readyReplicas}{"\n"}{end}' |
      awk -v m="$m" '$1 > 0 { parts++; pods += $1 } END { if (parts) printf "%s: %d pods of %d Services\n", m, pods, parts }'
  done
}
is_where()    { [ "$(where)" = "$1" ]; }
has_parts()   { [ "$(where | wc -l)" = "$1" ] && [ "$(where | awk '{ pods += $2 } END { print pods }')" = "$2" ]; }
ask()         { $INTERNET curl -sf -m 2 "http://$($INTERNET dig +short +tries=1 +time=1 "@$dns" "$name" A | grep -E '^[0-9.]+$' | head -1)"; }
answers()     { [ "$(ask | grep -c " on .*-node-")" = 21 ]; } # web, and 20 below it: some are called by several
failed_over() { [ "$(kubectl get cluster east-a -o jsonpath='{.status.failover.phase}')" = FailedOver ]; }
phase()       { echo "$*"; echo "$*" >&"$visitor"; }
# of PHASE: the client's requests in a phase, those that failed, and when the last of these began.
of() {
  awk -v name="  $1" 'index($0, name) == 1 { rest = substr($0, length(name) + 1); last = 0; failed = 0
    if (match(rest, / [0-9]+, begun /)) { split(substr(rest, RSTART), f, " "); failed = f[1] + 0; last = f[5] }
    split(rest, n, " "); print n[1], failed, last; exit }' "$work/table"
}

go build -o _output/bin/ -ldflags='-s -w' ./hack/demo/part ./hack/demo/visitor
_output/bin/image --out "$images/part.tar" --tag local/part:1 --entrypoint /part /part=_output/bin/part
mcs_images
echo "three clusters with a node each, with $mode; log $root.log"
mcs_stack "$root" "$mode" >"$root.log" 2>&1
name=web.shop.$FEDERATION_NAME.svc.$DNS_ZONE

kubectl apply -f hack/demo/app.yaml >>"$root.log"
wait_for 180 "12 Services ready in one cluster" has_parts 1 12
echo "By default the application is whole in one cluster:"
where
wait_for 60 "an answer of all Services" answers
ask

exec {visitor}> >(exec $INTERNET _output/bin/visitor --dns $dns:53 --name "$name" --fresh --rate "$rate" --patience 2s >"$work/table")
visitor_pid=$!
phase "whole in one cluster"
sleep 10
phase "torn apart by policies"
kubectl apply -f hack/demo/app-thirds.yaml >>"$root.log"
wait_for 180 "a third in each cluster" is_where $'east-a: 4 pods of 4 Services\neast-b: 4 pods of 4 Services\nwest-a: 4 pods of 4 Services'
where
phase "a third in each cluster"
sleep 10
phase "each third gets a second cluster"
for third in a:east-a,east-b b:east-b,west-a c:west-a,east-a; do
  shop patch placementpolicy "third-${third%%:*}" --type merge -p '{"spec": {"clusters": {"names": ["'"$(sed 's/^.*://; s/,/", "/' <<<"$third")"'"]}}}' >>"$root.log"
done
shop scale deployments --all --replicas 2 >>"$root.log"
wait_for 180 "two thirds in each cluster" is_where $'east-a: 8 pods of 8 Services\neast-b: 8 pods of 8 Services\nwest-a: 8 pods of 8 Services'
where
phase "two thirds in each cluster"
sleep 10
phase "east-a is killed"
sleep 1 # so that what is under way when it dies has begun in this phase
kill -KILL "$(cat "$root/members/east-a/pid")"
sleep $within
phase "after $within s"
wait_for 60 "the failover of east-a" failed_over
MEMBERS='east-b west-a'
wait_for 180 "24 pods in the other two clusters" has_parts 2 24
where
phase "its replicas are elsewhere"
sleep 10
exec {visitor}>&-
wait "$visitor_pid" || fail "the client ended with an error"
cat "$work/table"
for part in "whole in one cluster" "torn apart by policies" "a third in each cluster" "each third gets a second cluster" "two thirds in each cluster" "after $within s" "its replicas are elsewhere"; do
  read -r requests failed _ < <(of "$part") || fail "the client's table has no line of: $part"
  [ "$requests" -gt 0 ] && [ "$failed" = 0 ] || fail "$part: $failed of $requests requests failed"
done
read -r requests failed last < <(of "east-a is killed")
[ "$failed" -gt 0 ] || fail "the client has noticed nothing of the kill"
echo "The kill: $failed of $requests requests failed, the last of them begun $(awk -v last="$last" 'BEGIN { print last - 1 }') s after it."
