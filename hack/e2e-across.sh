#!/usr/bin/env bash
# An application of ten Services without load balancers, each of which asks the next one, over three clusters whose pods reach each other. First every
# cluster has all of it. Then it is torn apart by placement: each cluster has two of three Services. Then a cluster is killed, with a third of the pods.
# A client in one of the others asks the first Service 20 times a second: requests may fail only until the federation has noticed.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-across
stack()  { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
fail()   { echo "error: $*; logs: $root/logs, $root/members/*/nodes" >&2; kubectl federation explain service/s1 >&2 || true; exit 1; }
now()    { date +%s.%3N; }

services() { # before pods, whose environment has their addresses
  local i
  for i in {0..9}; do
    cat <<END
---
apiVersion: v1
kind: Service
metadata:
  name: s$i
  namespace: default
  annotations: {federation.kubernetes.io/fallback-below: "1%"} # pods that end are not asked any more while others are ready elsewhere
spec: {selector: {app: s$i}, ports: [{port: 80, targetPort: 8080}]}
END
  done
}

# deployments CLUSTER...: the I-th in clusters I and I+1 of three, or all everywhere if none is named.
deployments() {
  local i clusters=("$@")
  for i in {0..9}; do
    local where='"*": {"weight": 1}' next=''
    [ $# = 0 ] || where="\"${clusters[i % 3]}\": {\"weight\": 1}, \"${clusters[(i + 1) % 3]}\": {\"weight\": 1}"
    [ "$i" = 9 ] || next="s$((i + 1))"
    cat <<END
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: s$i
  namespace: default
  labels: {part: s$i}
  annotations: {federation.kubernetes.io/deployment-preferences: '{"rebalance": true, "clusters": {$where}}'}
spec:
  replicas: 4
  selector: {matchLabels: {app: s$i}}
  template:
    metadata: {labels: {app: s$i}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: web
          lifecycle: {preStop: {sleep: {seconds: 2}}} # it goes on answering until no node leads to it any more
          image: local/pod:1
          args: [web]
          env:
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
            - {name: NEXT, value: "$next"}
          readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
END
  done
}

all_ready()    { [ "$(kubectl get deployments -o jsonpath='{.items[*].status.readyReplicas}')" = "4 4 4 4 4 4 4 4 4 4" ]; }
services_in()  { [ "$(member "$1" get services -o name | grep -c /s)" = 10 ]; }
running()      { member "$1" get pods -o json | jq '[.items[] | select(.metadata.labels.app and .metadata.deletionTimestamp == null)] | length'; }
apart()        { all_ready && [ "$(running "$a") $(running "$b") $(running "$c")" = "14 14 12" ]; }
is_lost()      { [ "$(kubectl get cluster "$b" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" != True ]; }
moved()        { all_ready && [ $(($(running "$a") + $(running "$c"))) = 40 ]; }
answers()      { member "$a" logs client --since 3s 2>/dev/null | grep -q ' ok$'; }
# failed FROM TO: how many requests that began in this time failed, and how many there were.
failed()       { member "$a" logs client | awk -v from="$1" -v to="$2" '$1 >= from && $1 < to { n++; if ($2 != "ok") bad++ } END { printf "%d %d\n", bad, n }'; }
# none_failed WHAT FROM TO
none_failed() {
  local bad all
  read -r bad all <<<"$(failed "$2" "$3")"
  echo "$1: $bad of $all requests failed"
  [ "$all" -gt 0 ] || fail "$1: no request was sent"
  [ "$bad" = 0 ] || { member "$a" logs client | awk -v from="$2" -v to="$3" '$1 >= from && $1 < to && $2 != "ok" && n++ < 20' >&2; fail "$1: requests failed"; }
}

[ -n "${KEEP:-}" ] || trap 'stack down >/dev/null' EXIT
mkdir -p "$root"
echo "three clusters with a node each, whose pods reach each other"
stack up --real --clusters 3 --nodes 1 --federation-flag=--cluster-grace-period=10s >"$root/up.log"
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
read -r a b c <<<"$MEMBERS"
i=0
for m in $MEMBERS; do
  kubectl patch cluster "$m" --type merge -p "{\"spec\":{\"network\":\"local\",\"podCIDRs\":[\"10.$((128 + 4 * i++)).0.0/14\"]}}" >/dev/null
done
services | kubectl apply -f - >/dev/null
for m in $MEMBERS; do wait_for 60 "ten Services in $m" services_in "$m"; done
deployments | kubectl apply -f - >/dev/null
wait_for 180 "40 ready pods" all_ready
member "$a" run client --image local/pod:1 -- visit "http://$(member "$a" get service s0 -o jsonpath='{.spec.clusterIP}')" >/dev/null
wait_for 60 "an answer to the client in $a" answers
sleep 2; start=$(now); sleep 5
none_failed "every cluster has all of it" "$start" "$(now)"

start=$(now)
for i in {0..9}; do # one after another: many pods that start at once leave a small machine no time to answer
  deployments "$a" "$b" "$c" | kubectl apply --selector "part=s$i" -f - >/dev/null
  sleep 1; wait_for 120 "the pods of s$i" all_ready
done
wait_for 120 "pods of each Service in two clusters only" apart
sleep 3; end=$(now)
none_failed "while it is torn apart" "$start" "$end"
kubectl federation explain service/s1 | grep "^$a *$b .*yes .*in sync" || fail "explain shows no slice in $a of pods elsewhere"
sleep 5
none_failed "torn apart" "$end" "$(now)"

killed=$(now)
kill -KILL "$(cat "$root/members/$b/pid")"
wait_for 30 "the loss of $b" is_lost
noticed=$(now)
sleep 2
read -r bad all <<<"$(failed "$killed" "$(echo "$noticed + 1" | bc)")"
echo "$b is killed: $bad of $all requests failed in the $(echo "$noticed - $killed" | bc) s until it was noticed, and the second after"
wait_for 240 "40 ready pods in the two that are left" moved
sleep 3
none_failed "after it was noticed, while its pods move" "$(echo "$noticed + 1" | bc)" "$(now)"
