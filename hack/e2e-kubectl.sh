#!/usr/bin/env bash
# kubectl's verbs that reach into pods, through the federation, on the real nodes of two clusters: exec, cp, attach, port-forward and logs, over web sockets and over SPDY.
# With PULL=1 the clusters are joined in pull mode: each connection goes through an agent.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-kubectl image=$PWD/_output/bin/images/tools.tar work=$(mktemp -d)
trap '[ -n "${KEEP:-}" ] || _output/bin/local --root "$root" down >/dev/null; rm -rf "$image" "$work"' EXIT

fail() { kubectl get pods -o wide >&2 || true; echo "error: $*; logs: $root.log, $root/logs, $root/members/*/nodes" >&2; exit 1; }
# prints WANT COMMAND...
prints() {
  local want=$1 got; shift
  got=$("$@" 2>"$work/stderr") || fail "$*: exit code $?: $(cat "$work/stderr")"
  [ "$got" = "$want" ] || fail "$*: it prints '$got', not '$want': $(cat "$work/stderr")"
}
inside()       { kubectl exec "$pod" -c tools -- "$@"; }
pods()         { kubectl get pods -l app=tools -o jsonpath='{.items[*].metadata.name}'; }
all_run()      { [ "$(kubectl get pods -l app=tools --no-headers | grep -c ' 4/4 *Running ')" = 2 ]; }
lets_exec()    { inside sh -c : 2>/dev/null; }
forwards()     { port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$work/forward") && [ -n "$port" ]; }
web_answers()  { curl -sf -m 5 "http://127.0.0.1:$port"; }

make_image() {
  local tool files=(/bin/sh=/bin/dash)
  for tool in tar cat sleep sha256sum; do files+=("/bin/$tool=$(readlink -f "$(type -P "$tool")")"); done
  _output/bin/image --out "$image" --tag local/tools:1 --libraries "${files[@]}"
}

# Each node of each cluster has a pod. Its containers first and second give back what one who attaches sends.
workload() {
  cat <<'END'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: tools, namespace: default}
spec:
  selector: {matchLabels: {app: tools}}
  template:
    metadata: {labels: {app: tools}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: tools, image: "local/tools:1", command: [sh, -c, "while :; do echo tick; sleep 1; done"]}
        - {name: first, image: "local/tools:1", command: [cat], stdin: true, stdinOnce: true}
        - {name: second, image: "local/tools:1", command: [cat], stdin: true, stdinOnce: true}
        - {name: web, image: "local/pod:1", args: [web], env: [{name: POD, value: web}, {name: NODE, value: node}]}
END
}

# try CONTAINER: all verbs once; CONTAINER gives back what is sent.
try() {
  prints "$(sha256sum <"$work/file")" kubectl exec -i "$pod" -c tools -- sha256sum <"$work/file"
  local code=0
  inside sh -c 'exit 7' 2>"$work/stderr" || code=$?
  [ $code = 7 ] || fail "exec of what ends with 7: exit code $code: $(cat "$work/stderr")"
  prints "named by its workload" kubectl exec daemonset/tools -c tools -- sh -c 'echo named by its workload'

  rm -rf "$work"/*.back
  kubectl cp "$work/file" "$pod:/tmp/file" -c tools
  prints "$(sha256sum <"$work/file")" inside sh -c 'sha256sum </tmp/file'
  kubectl cp "$pod:/tmp/file" "$work/file.back" -c tools >/dev/null
  cmp "$work/file" "$work/file.back" || fail "a file that was copied there and back differs"
  kubectl cp "$work/dir" "$pod:/tmp/$1" -c tools
  kubectl cp "$pod:/tmp/$1" "$work/dir.back" -c tools >/dev/null
  diff -r "$work/dir" "$work/dir.back" || fail "a directory that was copied there and back differs"

  prints "sent by who attaches" kubectl attach -qi "$pod" -c "$1" <<<"sent by who attaches"

  kubectl port-forward "$pod" :8080 >"$work/forward" 2>&1 &
  local forwarder=$! n
  wait_for 20 "port-forward" forwards
  for n in 1 2 3; do prints "web on node" web_answers; done
  kill $forwarder; wait $forwarder || true

  n=$(timeout 5 kubectl logs -f "$pod" -c tools --tail 0 | grep -c tick) || true
  [ "$n" -ge 3 ] || fail "logs -f shows $n lines in 5 s, of one a second"
}

mkdir -p "$work/dir/a/b" "$work/dir/empty" "$root"
head -c 10485760 /dev/urandom >"$work/file"
cp "$work/file" "$work/dir/a/b/large"
echo small >"$work/dir/a name with spaces"
make_image
echo "two clusters with a node each; log $root.log"
_output/bin/local --root "$root" up --real --clusters 2 --nodes 1 ${PULL:+--pull} >"$root.log" 2>&1
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
workload | kubectl apply -f - >>"$root.log"
wait_for 120 "a pod on each node" all_run
read -r pod _ <<<"$(pods)"
refused=$(inside sh -c : 2>&1) && fail "exec in a cluster that joined without --allow-proxy: $refused"
[[ $refused == *"did not join with --allow-proxy"* ]] || fail "exec in a cluster that joined without --allow-proxy: $refused"
for m in $MEMBERS; do kubectl federation join "$m" --member-kubeconfig "$root/members/$m/kubeconfig" --pod-logs --allow-proxy ${PULL:+--pull} >>"$root.log" 2>&1; done
[ -z "${PULL:-}" ] || _output/bin/local --root "$root" agents >>"$root.log" 2>&1
for pod in $(pods); do wait_for 30 "exec in $pod" lets_exec; done
kubectl exec "$pod" -c tools -- sh -c 'sleep 75; echo still there' >"$work/long" 2>&1 & # longer than an ordinary request may take
long=$!
for sockets in true false; do
  export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=$sockets KUBECTL_PORT_FORWARD_WEBSOCKETS=$sockets
  if $sockets; then echo "web sockets"; try first; else echo "SPDY"; try second; fi
done
wait $long && [ "$(cat "$work/long")" = "still there" ] || fail "an exec of 75 s: $(cat "$work/long")"
echo "exec, cp, attach, port-forward and logs -f reach pods through the federation"
