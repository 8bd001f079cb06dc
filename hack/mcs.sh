# shellcheck shell=bash
# To be sourced, at the root of the repository, by scripts that start clusters which use each other's Services by the Multi-Cluster Services API.

# mcs_images: makes the image of CoreDNS. Nodes import what lies in _output/bin/images when they start.
mcs_images() {
  _output/bin/image --out _output/bin/images/coredns.tar --tag local/coredns:1 --entrypoint /coredns /coredns=_output/bin/coredns
}

# mcs_stack ROOT MODE: starts three clusters with a real node each, and a federation that they join with the names of clusterset.local.
# What makes Services work there is MODE. Sets KUBECONFIG, MEMBERS and the like; ROOT/all.kubeconfig has a context of the name of each cluster.
mcs_stack() {
  local root=$1 mode=$2 m first all=()
  _output/bin/local --root "$root" up --real --clusters 3 --nodes 1 --service-proxy "$mode"
  # shellcheck disable=SC1091
  source "$root/env"
  export KUBECONFIG=$FEDERATION_KUBECONFIG
  for m in $MEMBERS; do
    first=$(mcs_member "$root" "$m" get service kubernetes -o jsonpath='{.spec.clusterIP}') # each cluster has a network of its own
    sed "s/10\.96\.0\.10$/${first}0/" hack/services/coredns.yaml | mcs_member "$root" "$m" apply -f -
    kubectl federation join "$m" --member-kubeconfig "$root/members/$m/kubeconfig" --with-mcs --patch-coredns --network local
    mcs_member "$root" "$m" -n kube-system rollout restart deployment/coredns
    sed -E "s/^( *-? *(name|cluster|user|current-context): ).*/\1$m/" "$root/members/$m/kubeconfig" >"$root/$m.kubeconfig"
    all+=("$root/$m.kubeconfig")
  done
  for m in $MEMBERS; do mcs_member "$root" "$m" -n kube-system rollout status deployment/coredns --timeout=2m; done
  (IFS=:; KUBECONFIG="${all[*]}" kubectl config view --flatten) >"$root/all.kubeconfig"
}

mcs_member() { kubectl --kubeconfig "$1/members/$2/kubeconfig" "${@:3}"; }
