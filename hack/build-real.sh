#!/usr/bin/env bash
# Builds what real nodes need into _output/bin: the programs of a node, and images for its pods.
# With the argument "services" also Kubernetes' own tests of Services, their image, and kube-proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
kubernetes=v1.36.3 # as in go.mod
bin=_output/bin
version=k8s.io/component-base/version
plain="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=36"

packages=(./hack/local/internet ./hack/local/node ./hack/local/image ./hack/local/pod k8s.io/kubernetes/cmd/kubelet)
echo "building ${packages[*]##*/} (the first time takes some minutes)"
go build -o $bin/ -ldflags="$plain" "${packages[@]}"

mkdir -p $bin/images
[ $bin/images/pod.tar -nt $bin/pod ] ||
  $bin/image --out $bin/images/pod.tar --tag local/pod:1,local/pause:1 --entrypoint /pod --args pause /pod=$bin/pod
