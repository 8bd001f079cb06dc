# shellcheck shell=bash
# To be sourced by scripts that run load balancers of the federation. They have functions fail MESSAGE and inside COMMAND..., which runs a command on the
# load balancers' machine, and the variable host, a name in the federation's zone. What is below asks the load balancer with metrics at port 9154.

lb_ready()  { inside curl -fs -o /dev/null "http://127.0.0.1:$1/readyz"; }
share()     { inside _output/bin/federation-lb trace --host "$host" --metrics-address 127.0.0.1:9154 | awk -v c="$1" '$3 == c { sum += $1 } END { print int(sum + 0.5) }'; }
share_is()  { [ "$(share "$1")" = "$2" ]; }
gets_some() { [ "$(share "$1")" -gt 0 ]; }

# lb_kubeconfig FILE ACCOUNT: writes a kubeconfig of an account of load balancers, made if need be.
lb_kubeconfig() {
  kubectl -n federation-load-balancers create serviceaccount "$2" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
  kubectl config view --minify --flatten >"$1"
  kubectl config --kubeconfig "$1" set-credentials "$2" --token "$(kubectl -n federation-load-balancers create token "$2" --duration 2h)" >/dev/null
  kubectl config --kubeconfig "$1" set-context --current --user "$2" >/dev/null
}

# lb_kubeconfig_at FILE ADDRESS: has a kubeconfig reach the federation at another address than that of this machine.
lb_kubeconfig_at() {
  local cluster
  cluster=$(kubectl config --kubeconfig "$1" view --minify -o jsonpath='{.clusters[0].name}')
  kubectl config --kubeconfig "$1" set-cluster "$cluster" --server "https://$2" --tls-server-name 127.0.0.1 >/dev/null
}

# failed TABLE PHASE: how many requests of a client failed in a phase.
failed() { awk -v p="$2" 'index($0, p "  ") == 1 { for (i = 1; i <= NF; i++) if ($i == "failed,") print $(i - 1) }' "$1"; }

# none_failed TABLE: fails unless all requests succeeded but those that were under way when a load balancer was killed, whose number is in broken then.
none_failed() {
  ! grep -vE ' 0 failed,|^a load balancer is killed|^ +[0-9]+ × .*(connection reset by peer|EOF)$' "$1" || fail "requests failed"
  broken=$(failed "$1" "a load balancer is killed")
  [ "$broken" -le 20 ] || fail "$broken requests failed when a load balancer was killed: more than can have been under way"
}
