#!/usr/bin/env bash
# What clients of federation-lb see when a cluster is killed, hangs, is cut off, is drained and comes back, and when one of two load balancers is killed
# or replaced: no GET may fail, but those whose bytes were on their way to the load balancer that is killed. 100 requests a second come over new connections, 100 over kept-alive ones.
#
# The same through a Service of the load balancers' class, over new connections alone (layer 4): none may fail but those that are open when a cluster or
# load balancer goes, and none at all in other phases. Of the two phases in which a cluster is there and does not answer, what clients see is only shown.
#
# The same by TLS to a host whose Ingress has it passed on: none may fail but those that are open when a cluster or load balancer goes.
#
# SERVICE_PROXY_MODE=nftables has the kernel pass these connections on, of one of the two load balancers at a time, since they are on one machine.
#
# Clusters are real API servers with simulated nodes; at the address that each gives its Service an HTTP server stands for its load balancer and pods.
# All of it is in a network namespace of its own.
set -euo pipefail
[ -n "${LB_INSIDE:-}" ] || exec env LB_INSIDE=1 unshare --net "$0" "$@"
cd "$(dirname "$0")/.."
source hack/wait.sh
source hack/load-balancers.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-lb
pids=()
stack()  { _output/bin/local --root "$root" "$@"; }
member() { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
inside() { "$@"; }
fail()   { echo "error: $*; logs: $root" >&2; exit 1; }
vip()    { member "$1" get service "$2" -o jsonpath='{.status.loadBalancer.ingress[0].ip}' 2>/dev/null; }
has_vip() { [ -n "$(vip "$1" "$2")" ]; }
serve()  { # all Services' servers of a cluster
  _output/bin/lbclient serve --address "${vips[$1]}:80" --name "$1" & servers[$1]=$!; pids+=($!)
  _output/bin/lbclient serve --address "${raw[$1]}:5000" --name "$1" & servers[$1]+=" $!"; pids+=($!)
  _output/bin/lbclient serve --address "${secure[$1]}:8443" --name "$1" --tls & servers[$1]+=" $!"; pids+=($!)
}
signal() { # shellcheck disable=SC2086
  kill "-$1" ${servers[$2]}
}
balancer() { # NAME ADDRESS METRICS
  _output/bin/federation-lb --kubeconfig "$root/lb.kubeconfig" --name "$1" --region east --addresses "$2" --http-bind-address "$2:80" --https-bind-address "$2:443" --service-bind-address "$2" --service-ports 5000 --service-proxy-mode "${SERVICE_PROXY_MODE:-userspace}" --local-targets "$(printf '%s/32,' "${vips[@]}" "${raw[@]}" "${secure[@]}" | sed 's/,$//')" \
    --metrics-bind-address "127.0.0.1:$3" --drain-delay 5s --drain-timeout 10s >>"$root/$1.log" 2>&1 &
  balancers[$1]=$!; pids+=($!)
}
status_has() { [ "$(kubectl get ingress web -o jsonpath='{.status.loadBalancer.ingress[*].ip}')" = "$1" ]; }
raw_has() { [ "$(kubectl get service raw -o jsonpath='{.status.loadBalancer.ingress[*].ip}')" = "$1" ]; }
dns_has() { [ "$(dig +short +tries=1 +time=1 "@${DNS_ADDRESS%:*}" -p "${DNS_ADDRESS##*:}" "$host" A | sort | tr '\n' ' ')" = "$1 " ]; }
says()   { kubectl federation "${@:2}" | grep -q "$1"; }
cut()    { nft -f - <<<"table inet cut { chain out { type filter hook output priority 0; ip daddr { $1 } drop; ip saddr { $1 } drop; }; }"; }
phase()  { # what is under way when something happens belongs to its phase
  echo "$*" | tee /dev/fd/"$visitor" /dev/fd/"$raw_visitor" /dev/fd/"$secure_visitor"; sleep 0.2
}

declare -A vips raw secure servers balancers
cleanup() { kill -CONT "${pids[@]}" 2>/dev/null || true; kill -KILL "${pids[@]}" 2>/dev/null || true; stack down >/dev/null; }
trap cleanup EXIT
mkdir -p "$root"
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1
go build -o _output/bin/ ./hack/lbclient
stack up --clusters 2 --nodes 1 >/dev/null
# shellcheck disable=SC1091
source "$root/env"
export KUBECONFIG=$FEDERATION_KUBECONFIG
host=www.$DNS_ZONE secure_host=secure.$DNS_ZONE
kubectl apply -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  annotations: {federation.kubernetes.io/deployment-preferences: '{"rebalance": true, "clusters": {"*": {"weight": 1}}}'}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: raw, namespace: default}
spec: {type: LoadBalancer, loadBalancerClass: federation.kubernetes.io/cross-cluster, selector: {app: web}, ports: [{port: 5000}]}
---
apiVersion: v1
kind: Service
metadata: {name: secure, namespace: default}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 8443}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: secure, namespace: default, annotations: {federation.kubernetes.io/ssl-passthrough: "true"}}
spec:
  ingressClassName: federation
  rules: [{host: $secure_host, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: secure, port: {number: 8443}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  ingressClassName: federation
  rules: [{host: $host, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
END
for m in $MEMBERS; do
  for service in web raw secure; do wait_for 60 "an address of the Service $service in $m" has_vip "$m" $service; done
  vips[$m]=$(vip "$m" web) raw[$m]=$(vip "$m" raw) secure[$m]=$(vip "$m" secure)
  for a in "${vips[$m]}" "${raw[$m]}" "${secure[$m]}"; do ip address add "$a/32" dev lo; done
  serve "$m"
done
lb_kubeconfig "$root/lb.kubeconfig" lb
one=192.0.2.201 two=192.0.2.202
for a in $one $two; do ip address add $a/32 dev lo; done
balancer one $one 9154
balancer two $two 9155
wait_for 60 "load balancer one, which is ready" lb_ready 9154
wait_for 60 "load balancer two, which is ready" lb_ready 9155
wait_for 60 "a share of each cluster" share_is east-a 50
wait_for 30 "both load balancers in the Ingress' status" status_has "$one $two"
wait_for 30 "both load balancers in DNS" dns_has "$one $two"
wait_for 10 "explain, which has both" says '^Requests to default/web:80 (http), by one, two:' explain ingress/web
wait_for 30 "both load balancers in the Service's status" raw_has "$one $two"
wait_for 10 "a trace of the port" eval "_output/bin/federation-lb trace --port 5000 --metrics-address 127.0.0.1:9154 | grep -q '^   50.0 %  east-a'"
wait_for 10 "a trace of TLS that is passed on" eval "_output/bin/federation-lb trace --host $secure_host --metrics-address 127.0.0.1:9154 | grep -q '^TLS: passed on as it is, by Ingress default/secure'"
wait_for 10 "explain, which says so" says "^$secure_host  *TLS, passed on " explain ingress/secure
# East-a says that its load balancer is where one of the federation is, and east-b that it is at an address of their machine: both are refused.
kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Service
metadata: {name: circle, namespace: default}
spec: {type: LoadBalancer, loadBalancerClass: example.com/none, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: circle, namespace: default}
spec:
  ingressClassName: federation
  rules: [{host: circle.$DNS_ZONE, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: circle, port: {number: 80}}}}]}}]
END
ip address add 192.0.2.203/32 dev lo
pretend() { member "$1" patch service circle --subresource=status --type=merge -p "{\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"$2\"}]}}}" >/dev/null 2>&1; }
wait_for 60 "the Service in east-a" pretend east-a $one
wait_for 60 "the Service in east-b" pretend east-b 192.0.2.203
wait_for 30 "explain, which says why it goes nowhere" says "Note: east-a: address $one is not used: it is that of the federation's load balancer one" explain ingress/circle
wait_for 30 "explain, which says why it goes nowhere" says "Note: east-b: address 192.0.2.203 is not used: it is one of the load balancer's own machine" explain ingress/circle
[ "$(curl -s -o /dev/null -w '%{http_code}' -H "Host: circle.$DNS_ZONE" http://$one)" = 503 ] || fail "requests go in a circle"
[ "$(curl -fs http://127.0.0.1:9154/metrics | grep -c '^federation_lb_targets_refused{.*} 1$')" = 2 ] || fail "the metric does not say which targets are refused"
[ "$(curl -s -o /dev/null -w '%{http_code}' -H "Host: $host" -H "CDN-Loop: federation-lb, federation-lb, federation-lb, federation-lb, federation-lb" http://$one)" = 508 ] || fail "a request that has come by load balancers again and again goes on"
secure_table=$root/secure-table
exec {secure_visitor}> >(exec _output/bin/lbclient visit --addresses $one:443,$two:443 --host "$secure_host" --kept 0 --tls >"$secure_table")
secure_pid=$!
table=$root/table raw_table=$root/raw-table
exec {visitor}> >(exec _output/bin/lbclient visit --addresses $one:80,$two:80 --host "$host" >"$table")
visitor_pid=$!
exec {raw_visitor}> >(exec _output/bin/lbclient visit --addresses $one:5000,$two:5000 --host "$host" --kept 0 >"$raw_table")
raw_pid=$!
back() { wait_for 60 "the return of east-a" gets_some east-a; sleep 2; }

phase before; sleep 5
phase "east-a is killed"; signal KILL east-a; sleep 6
phase "east-a comes back"; serve east-a; back
phase "east-a hangs (SIGSTOP)"; signal STOP east-a; sleep 8
phase "east-a goes on"; signal CONT east-a; back
phase "east-a is cut off"; cut "${vips[east-a]}, ${raw[east-a]}, ${secure[east-a]}"; sleep 6; wait_for 10 "explain, which says why it gets nothing" says 'out: its checks fail' explain ingress/web
phase "east-a is reached again"; nft delete table inet cut; back
phase "east-a is drained"; kubectl federation drain east-a >/dev/null; wait_for 60 "no share of east-a" share_is east-a 0; sleep 3
phase "east-a is undrained"; kubectl federation undrain east-a >/dev/null; back
phase "its control plane is stopped"; kill -STOP "$(cat "$root/members/east-a/pid")"; wait_for 30 "no share of east-a" share_is east-a 0; sleep 3
phase "it goes on"; kill -CONT "$(cat "$root/members/east-a/pid")"; back
phase "a load balancer is replaced"; old=${balancers[two]}; balancer two $two 9156; wait_for 30 "the new one" lb_ready 9156; kill -TERM "$old"; wait "$old" || fail "it ended with an error"; sleep 2
phase "a load balancer is killed"; kill -KILL "${balancers[two]}"; wait_for 10 "its end in DNS" dns_has "$one"; wait_for 10 "its end in the status" status_has "$one"; wait_for 10 "its end in the status of the Service" raw_has "$one"; wait_for 10 "its end in kubectl federation status" says '1 of 2 alive' status; sleep 2
phase end
wait "$visitor_pid" || fail "the client ended with an error"
wait "$raw_pid" || fail "the client of the Service ended with an error"
wait "$secure_pid" || fail "the client by TLS ended with an error"
cat "$table"
echo "Service (layer 4), new connections:"
cat "$raw_table"
echo "TLS that is passed on, new connections:"
cat "$secure_table"
for p in before "east-a comes back" "east-a is reached again" "east-a is drained" "east-a is undrained" "its control plane is stopped" "it goes on" "a load balancer is replaced"; do
  for at in "$raw_table" "$secure_table"; do [ "$(failed "$at" "$p")" = 0 ] || fail "$at: $(failed "$at" "$p") connections failed: $p"; done
done
for p in "east-a is killed" "a load balancer is killed"; do
  for at in "$raw_table" "$secure_table"; do [ "$(failed "$at" "$p")" -le 10 ] || fail "$at: $(failed "$at" "$p") connections failed: $p"; done
done
for p in "east-a hangs (SIGSTOP)" "east-a is cut off"; do [ "$(failed "$secure_table" "$p")" -le 10 ] || fail "TLS: $(failed "$secure_table" "$p") connections failed: $p"; done
none_failed "$table"
echo "No request failed but $broken that were under way when a load balancer was killed."
