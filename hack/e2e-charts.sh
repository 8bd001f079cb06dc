#!/usr/bin/env bash
# Installs the charts on the real nodes of members, with the images of a release and nothing but them: the control plane with its etcd in it, the load
# balancer over the clusters, the agent of a cluster that the federation does not connect to, federation-dns, the node agent, and a control plane of two
# replicas over an external etcd. Each is installed with --wait in a namespace that enforces the restricted level of Pod Security, is upgraded under
# load without a lost write or a failed request, and leaves nothing but what is to be kept. What is upgraded under load was installed by the chart of an
# earlier commit: EARLIER=COMMIT, or else the last release, or else the first one whose charts know all values that are set here; the images are of now.
# Arguments are the parts to do: in_one_pod, on_nodes, over_etcd. HELM=_output/bin/helm-v3.21.4 takes another Helm.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
root=$PWD/_output/e2e-charts images=$PWD/_output/bin/images helm=${HELM:-_output/bin/helm-v4.2.4} version=$(<hack/VERSION)
earlier=${EARLIER:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git log --diff-filter=A --format=%h -- hack/charts/federation-member/templates/agent.yaml | tail -1)}
before=$root/before/hack/charts
dns=10.64.255.254 # clients outside, and what is beside the clusters, are at this address
stack()    { _output/bin/local --root "$root" "$@"; }
member()   { kubectl --kubeconfig "$root/members/$1/kubeconfig" "${@:2}"; }
host()     { member east-a -n federation "$@"; }
balancer() { member east-b -n federation-lb "$@"; }
chart()    { "$helm" --kubeconfig "$root/members/east-a/kubeconfig" -n federation "$@"; }
chart_b()  { "$helm" --kubeconfig "$root/members/east-b/kubeconfig" "$@"; }
outside()  { $INTERNET "$@"; }
fed()      { outside kubectl --kubeconfig "$root/federation.kubeconfig" --request-timeout 5s "$@"; }
fail() {
  for m in east-a east-b; do member $m get pods -A -o wide >&2; done
  host describe pods >&2 || true
  balancer logs -l app.kubernetes.io/name=federation-lb --tail 20 >&2 || true
  member east-b -n federation-system logs -l app=federation-agent --tail 20 >&2 || true
  member east-b -n federation-system logs daemonset/federation-nodeagent --tail 20 >&2 || true
  host logs -l app.kubernetes.io/component=dns --tail 20 >&2 || true
  host logs statefulset/federation --tail 50 >&2 || host logs deployment/federation --tail 50 >&2 || true
  echo "error: $*; logs: $root/logs, $root/members/*/nodes" >&2
  exit 1
}

address_of()   { host get service "$1" -o jsonpath='{.status.loadBalancer.ingress[0].ip}'; }
has_address()  { [ -n "$(address_of "$1")" ]; }
answers()      { fed get --raw /readyz >/dev/null 2>&1; }
joined()       { [ "$(fed get clusters -o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}')" = "True True" ]; }
ready_pods()   { [ "$(fed get replicaset web -o jsonpath='{.status.readyReplicas}')" = 6 ]; }
in_dns()       { [ "$(outside dig +short +tries=1 +time=1 "@$(address_of federation-dns)" web.default.fed.svc.example.com A | grep -c '^[0-9]')" = 2 ]; }
no_pods()      { [ -z "$(host get pods -o name)" ]; }
lb_address()   { balancer get service federation-lb -o jsonpath='{.status.loadBalancer.ingress[0].ip}'; }
lb_exposed()   { [ -n "$(lb_address)" ]; }
lb_answers()   { outside curl -fs -o /dev/null --max-time 2 -H 'Host: www.example.com' "http://$(lb_address)/"; }
lb_in_dns()    { [ "$(outside dig +short +tries=1 +time=1 "@$(address_of federation-dns)" www.example.com A)" = "$(lb_address)" ]; }
lb_in_status() { [ "$(fed get ingress web -o jsonpath='{.status.loadBalancer.ingress[*].ip}')" = "$(lb_address)" ]; }
lb_pods()      { [ "$(balancer get pods -o name | wc -l)" = "$1" ]; }
agents_pods()  { [ "$(member east-b -n federation-system get pods -l app=federation-agent -o name | wc -l)" = "$1" ]; }
by_agent()     { [ "$(fed get cluster east-b -o jsonpath='{.status.conditions[?(@.type=="AgentConnected")].status}')" = True ]; }
agent_objects() { member east-b -n federation-system get deployments,pods,secrets,configmaps,serviceaccounts,roles,rolebindings,networkpolicies -o name | grep federation-agent || true; }
agent_certificate() { member east-b -n federation-system get secret federation-agent-certificate -o jsonpath='{.data.tls\.crt}'; }
restarts()     { host get pods -o jsonpath='{.items[*].status.containerStatuses[*].restartCount} {.items[*].status.initContainerStatuses[*].restartCount}'; }

# volume: on the node, as an administrator makes one where no provisioner does.
volume() {
  nsenter -t "$(pgrep -f "node --name=east-a-node-1 --data-dir=$root/")" -m mkdir -p /run/node/volume
  member east-a apply -f - <<EOF
apiVersion: v1
kind: PersistentVolume
metadata: {name: federation}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  local: {path: /run/node/volume}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [east-a-node-1]}]}]}}
EOF
}

# kubeconfig POD CONTAINER: the administrator's, as NOTES say.
kubeconfig() {
  host exec "$1" -c "$2" -- /federation pki kubeconfig --data-dir /var/lib/federation/data --server "https://$(address_of federation):6443" >"$root/federation.kubeconfig"
}

# joins CLUSTER FLAG...: by the address of its API that others reach.
joins() {
  local server
  server=$(member "$1" get endpointslices kubernetes -o jsonpath='{.endpoints[0].addresses[0]}:{.ports[0].port}')
  sed "s#server: .*#server: https://$server#" "$root/members/$1/kubeconfig" >"$root/$1.kubeconfig"
  outside kubectl federation --kubeconfig "$root/federation.kubeconfig" join "$1" --member-kubeconfig "$root/$1.kubeconfig" --accept-namespaces default "${@:2}"
}

# write_until FILE: creates ConfigMaps until the file comes, and says which were acknowledged.
write_until() {
  local i=0
  while [ ! -e "$1" ]; do
    i=$((i + 1))
    if fed create configmap "write-$i" --from-literal=n=$i >/dev/null 2>&1; then echo "configmap/write-$i" >>"$1.acknowledged"; else echo >>"$1.failed"; fi
  done
}

# under_load WHAT COMMAND...: runs the command while somebody writes; what was acknowledged must be there afterwards.
under_load() {
  local what=$1 file=$root/load writer lost; shift
  rm -f "$file"{,.acknowledged,.failed}; touch "$file".{acknowledged,failed}
  write_until "$file" &
  writer=$!
  sleep 2
  "$@" >/dev/null || fail "$what"
  sleep 2
  touch "$file"
  wait $writer
  lost=$(comm -23 <(sort "$file.acknowledged") <(fed get configmaps -o name | sort))
  [ -z "$lost" ] || fail "$what: writes that were acknowledged are lost: $lost"
  echo "$what: $(wc -l <"$file.acknowledged") writes acknowledged, none lost; $(wc -l <"$file.failed") failed meanwhile"
  fed delete configmaps --all --wait=false >/dev/null
}

# credential FILE NAMESPACE ACCOUNT: a kubeconfig file of an account at the federation, which it makes.
credential() {
  fed -n "$2" create serviceaccount "$3" >/dev/null
  cp "$root/federation.kubeconfig" "$1"
  kubectl config --kubeconfig "$1" unset users >/dev/null
  kubectl config --kubeconfig "$1" set-credentials federation --token "$(fed -n "$2" create token "$3" --duration 8760h)" >/dev/null
}

# dns_kubeconfig: a credential that may read what federation-dns needs, as docs/federation-dns.md says.
dns_kubeconfig() {
  credential "$root/dns.kubeconfig" federation-system federation-dns
  fed create clusterrolebinding federation-dns --clusterrole federation-dns --serviceaccount federation-system:federation-dns
  host create secret generic federation-dns --from-file kubeconfig="$root/dns.kubeconfig"
}

# over_clusters: the load balancer, in the other cluster. Clients send 200 GETs a second while it is upgraded.
over_clusters() {
  local visitor visits left
  local values=(--set image.repository=localhost/federation-lb,image.tag="$version",kubeconfigSecretName=federation-lb,region=east,drain.delaySeconds=10,drain.timeoutSeconds=20 --wait --timeout 120s)
  echo "the load balancer over the clusters"
  fed create ingress web --class federation --rule 'www.example.com/*=web:80'
  credential "$root/lb.kubeconfig" federation-load-balancers east
  member east-b create namespace federation-lb
  member east-b label namespace federation-lb pod-security.kubernetes.io/enforce=restricted
  balancer create secret generic federation-lb --from-file kubeconfig="$root/lb.kubeconfig"
  chart_b -n federation-lb install federation-lb "$before/federation-lb" "${values[@]}" >/dev/null || fail "helm install, the load balancer, by the chart of $earlier"
  wait_for 20 "an address of the load balancer" lb_exposed
  values+=(--set "addresses={$(lb_address)}")
  chart_b -n federation-lb upgrade federation-lb "$before/federation-lb" "${values[@]}" >/dev/null || fail "helm upgrade, with the load balancer's address"
  wait_for 30 "an answer through the load balancer" lb_answers
  wait_for 30 "the load balancer in DNS" lb_in_dns
  wait_for 30 "the load balancer in the Ingress' status" lb_in_status
  wait_for 60 "two load balancers" lb_pods 2
  balancer exec deployment/federation-lb -- /federation-lb trace --host www.example.com
  exec {visitor}> >(exec $INTERNET lbclient visit --addresses "$(lb_address):80" --host www.example.com >"$root/visits")
  visits=$!
  echo "upgrade of the load balancer from the chart of $earlier" >&"$visitor"
  sleep 3
  chart_b -n federation-lb upgrade federation-lb hack/charts/federation-lb "${values[@]}" --set podAnnotations.upgraded=yes >/dev/null || fail "helm upgrade of the load balancer"
  wait_for 60 "the end of the load balancers of before" lb_pods 2
  sleep 3
  echo end >&"$visitor"
  wait "$visits" || fail "the client ended with an error"
  sed -n '1s/ ms .*/ ms/p' "$root/visits"
  grep -q ' 0 failed,' "$root/visits" || fail "requests failed while the load balancer was upgraded: $(<"$root/visits")"
  [ "$(balancer get pods -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}')" = "0 0" ] || fail "load balancers were restarted"
  chart_b -n federation-lb uninstall federation-lb --wait >/dev/null
  wait_for 60 "the end of the load balancers" lb_pods 0
  left=$(balancer get all,networkpolicies,poddisruptionbudgets,serviceaccounts -o name | grep -v '^serviceaccount/default$' || true; fed -n federation-load-balancers get leases -o name)
  [ -z "$left" ] || fail "left: $left"
  fed delete ingress web
}

# behind_nat: the agent of a cluster that has joined with --pull.
behind_nat() {
  joins east-b --pull
  by_chart hack/charts configmap/federation-agent # which join has made
  member east-b -n federation-system delete configmap federation-agent # join made none then, and the chart did
  by_chart "$before"
  joins east-b
  wait_for 30 "two ready clusters, without an agent" joined
}

# by_chart CHARTS LEFT: the agent by the chart there, upgraded to that of now; after it no more than LEFT is left.
by_chart() {
  local certificate values
  echo "the agent of a cluster that the federation does not connect to, by ${1#"$PWD/"}"
  outside kubectl federation --kubeconfig "$root/federation.kubeconfig" token create east-b >"$root/bootstrap.kubeconfig"
  member east-b -n federation-system create secret generic federation-agent-bootstrap --from-file kubeconfig="$root/bootstrap.kubeconfig"
  values=(--set agent.enabled=true,agent.image.repository=localhost/federation-agent,agent.image.tag="$version",agent.cluster=east-b
    --set "agent.federationUID=$(fed get namespace kube-system -o jsonpath='{.metadata.uid}')" --wait --timeout 120s)
  member east-b label namespace federation-system pod-security.kubernetes.io/enforce=restricted --overwrite
  chart_b -n federation-system install agent "$1/federation-member" "${values[@]}" >/dev/null || fail "helm install, the agent"
  wait_for 30 "an agent that is connected" by_agent
  wait_for 30 "two ready clusters, one of them by its agent" joined
  certificate=$(agent_certificate)
  member east-b -n federation-system patch configmap federation-agent -p '{"data":{"paused":"true"}}'
  chart_b -n federation-system upgrade agent hack/charts/federation-member "${values[@]}" --set agent.podAnnotations.upgraded=yes >/dev/null || fail "helm upgrade of the agent"
  wait_for 60 "the end of the agents of before" agents_pods 2
  wait_for 30 "a cluster that is connected after the upgrade" joined
  [ -n "$certificate" ] || fail "the agent has no certificate"
  [ "$(agent_certificate)" = "$certificate" ] || fail "the upgrade took the agent's certificate away"
  [ "$(member east-b -n federation-system get configmap federation-agent -o jsonpath='{.data.paused}')" = true ] || fail "the upgrade let the federation write again"
  chart_b -n federation-system uninstall agent --wait >/dev/null
  member east-b -n federation-system delete secret federation-agent-bootstrap
  wait_for 60 "the end of the agents" agents_pods 0
  [ "$(agent_objects)" = "${2:-}" ] || fail "left: $(agent_objects)"
}

# in_one_pod: etcd embedded.
in_one_pod() {
  local values=(--set federation.name=fed,federation.dnsZone=example.com,image.repository=localhost/federation,image.tag="$version"
    --set api.service.type=LoadBalancer,dns.service.type=LoadBalancer --wait --timeout 120s)
  volume
  echo "the control plane, with etcd in it"
  chart install federation "$before/federation" "${values[@]}" >/dev/null || fail "helm install, by the chart of $earlier"
  wait_for 20 "an address of the API" has_address federation
  values+=(--set "api.tlsNames={$(address_of federation)}")
  chart upgrade federation "$before/federation" "${values[@]}" >/dev/null || fail "helm upgrade, with the API's address"
  kubeconfig federation-0 federation
  wait_for 20 "an answer of the API" answers
  [ "$(host get pod federation-0 -o jsonpath='{.spec.containers[0].securityContext.readOnlyRootFilesystem}')" = true ] || fail "the root file system can be written"
  for m in east-a east-b; do joins $m; done
  wait_for 30 "two ready clusters" joined
  fed apply -f hack/demo/real.yaml
  wait_for 90 "six ready pods in two clusters" ready_pods
  wait_for 30 "two addresses in DNS" in_dns
  under_load "upgrade of one pod from the chart of $earlier" chart upgrade federation hack/charts/federation "${values[@]}" --set podAnnotations.upgraded=yes
  over_clusters
  behind_nat
  echo "federation-dns beside it"
  dns_kubeconfig
  chart upgrade federation hack/charts/federation "${values[@]}" \
    --set dnsServers.enabled=true,dnsServers.image.repository=localhost/federation-dns,dnsServers.image.tag="$version",dnsServers.kubeconfigSecretName=federation-dns >/dev/null || fail "helm upgrade, with federation-dns"
  wait_for 30 "two addresses in DNS, from federation-dns" in_dns
  host scale statefulset federation --replicas 0
  wait_for 60 "the end of the control plane" no_control_plane
  in_dns || fail "federation-dns does not answer while the control plane is away"
  [ "$(restarts | tr -d '0 ')" = "" ] || fail "containers were restarted: $(restarts)"
  echo "uninstall, and install again over what is kept"
  chart uninstall federation --wait >/dev/null
  wait_for 60 "the end of all pods" no_pods
  [ "$(host get all,networkpolicies,poddisruptionbudgets,pvc -o name)" = persistentvolumeclaim/federation ] || fail "left: $(host get all,networkpolicies,poddisruptionbudgets,pvc -o name)"
  chart install federation hack/charts/federation "${values[@]}" --set persistence.existingClaim=federation >/dev/null || fail "helm install, again"
  wait_for 20 "an address of the API" has_address federation
  chart upgrade federation hack/charts/federation "${values[@]}" --set persistence.existingClaim=federation --set "api.tlsNames={$(address_of federation)}" >/dev/null || fail "helm upgrade, again"
  kubeconfig federation-0 federation
  wait_for 30 "two ready clusters, again" joined
  wait_for 30 "six ready pods, again" ready_pods
  fed delete -f hack/demo/real.yaml
  chart uninstall federation --wait >/dev/null
  host delete pvc federation
  wait_for 60 "the end of all pods" no_pods
}
no_control_plane() { [ -z "$(host get pods -l app.kubernetes.io/component=control-plane -o name)" ]; }

# over_etcd: two replicas, apiserver and controllers apart, keys from a Secret.
over_etcd() {
  local pid values
  echo "two replicas over an external etcd, with processes of their own"
  mkdir -p "$root/etcd"
  outside _output/bin/etcd --data-dir "$root/etcd" --address $dns:2379 2>"$root/logs/etcd.log" &
  pid=$!
  # shellcheck disable=SC2064
  trap "kill $pid; end" EXIT
  federation pki create --data-dir "$root/keys"
  host create secret generic federation-pki --from-file "$root/keys/pki"
  wait_for 20 "the certificates of etcd" test -e "$root/etcd/admin.kubeconfig"
  host create secret generic etcd --from-file ca.crt="$root/etcd/pki/ca.crt" --from-file tls.crt="$root/etcd/pki/admin.crt" --from-file tls.key="$root/etcd/pki/admin.key"
  values=(--set federation.name=fed,federation.dnsZone=example.com,image.repository=localhost/federation,image.tag="$version",layout=Split,replicas=2
    --set "etcd.servers={https://$dns:2379},etcd.tlsSecretName=etcd,pki.secretName=federation-pki"
    --set api.service.type=LoadBalancer,dns.service.type=LoadBalancer --wait --timeout 180s)
  chart install federation "$before/federation" "${values[@]}" >/dev/null || fail "helm install, two replicas, by the chart of $earlier"
  wait_for 20 "an address of the API" has_address federation
  values+=(--set "api.tlsNames={$(address_of federation)}")
  chart upgrade federation "$before/federation" "${values[@]}" >/dev/null || fail "helm upgrade, two replicas"
  kubeconfig deployment/federation apiserver
  wait_for 20 "an answer of the API" answers
  under_load "upgrade of two replicas from the chart of $earlier" chart upgrade federation hack/charts/federation "${values[@]}" --set podAnnotations.upgraded=yes
  [ "$(restarts | tr -d '0 ')" = "" ] || fail "containers were restarted: $(restarts)"
  chart uninstall federation --wait >/dev/null
  wait_for 90 "the end of all pods" no_pods
}

# on_nodes: the node agent, beside the kube-proxy that the nodes have.
on_nodes() {
  local server
  echo "the node agent"
  server=$(member east-b get endpointslices kubernetes -o jsonpath='{.endpoints[0].addresses[0]} {.ports[0].port}')
  member east-b create namespace federation-system --dry-run=client -o yaml | member east-b apply -f - >/dev/null
  member east-b label namespace federation-system pod-security.kubernetes.io/enforce=privileged --overwrite
  chart_b -n federation-system install agent hack/charts/federation-member --wait --timeout 60s \
    --set nodeAgent.enabled=true,nodeAgent.image.repository=localhost/federation-nodeagent,nodeAgent.scope=federated \
    --set nodeAgent.apiServer.host="${server% *}",nodeAgent.apiServer.port="${server#* }" >/dev/null || fail "helm install, the node agent"
  member east-b -n federation-system rollout status daemonset federation-nodeagent --timeout 30s
  chart_b -n federation-system uninstall agent --wait >/dev/null
  [ -z "$(member east-b get clusterrole federation-nodeagent --ignore-not-found -o name)" ] || fail "the node agent's role is left"
}

end() { stack down >/dev/null; rm -f "$images"/federation*.oci.tar; }
trap end EXIT
go build -o _output/bin/etcd ./hack/local/etcd
go build -o _output/bin/ ./hack/lbclient
go run ./hack/images --out "$images" --version "$version" "linux/$(go env GOARCH)=_output/bin"
[ -x _output/bin/kube-proxy ] || go build -o _output/bin/ k8s.io/kubernetes/cmd/kube-proxy
stack up --real --members-only --clusters 2 --nodes 1 --service-proxy kube-proxy-iptables >/dev/null
# shellcheck disable=SC1091
source "$root/env"
mkdir "$root/before"
git archive "$earlier" hack/charts | tar -x -C "$root/before"
member east-a create namespace federation
member east-a label namespace federation pod-security.kubernetes.io/enforce=restricted
SECONDS=0
[ $# -gt 0 ] || set -- in_one_pod on_nodes over_etcd
for part in "$@"; do "$part"; done
echo "the charts install, upgrade without a lost write or a failed request, and go, in ${SECONDS} s, with $("$helm" version --short)"
