#!/usr/bin/env bash
# Builds what real nodes need into _output/bin: the programs of a node, and images for its pods.
# With the argument "services" also Kubernetes' own tests of Services, their images, and kube-proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
kubernetes=v1.36.3 # as in go.mod
bin=_output/bin
version=k8s.io/component-base/version
plain="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=36"

packages=(./hack/local/internet ./hack/local/membernode ./hack/local/image ./hack/local/pod ./hack/demo/visitor k8s.io/kubernetes/cmd/kubelet)
[ "${1:-}" != services ] ||
  packages+=(k8s.io/kubernetes/cmd/kube-proxy k8s.io/kubernetes/test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo)
echo "building ${packages[*]##*/} (the first time takes some minutes)"
go build -o $bin/ -ldflags="$plain" "${packages[@]}"

mkdir -p $bin/images
[ $bin/images/pod.tar -nt $bin/pod ] ||
  $bin/image --out $bin/images/pod.tar --tag local/pod:1,local/pause:1 --entrypoint /pod --args pause /pod=$bin/pod
[ "${1:-}" = services ] || exit 0

hack/build-coredns.sh
go test -c -tags services -o $bin/services.test -ldflags="$plain" ./hack/services
# The tests say what their images are called. They run agnhost with a shell and what is called from it.
tags=$($bin/services.test --list-images 2>/dev/null | grep -E '/(agnhost:2\.(55|6[0-9])|glibc-dns-testing:)' | paste -sd,)
files=(/agnhost=$bin/agnhost /bin/sh=/bin/dash)
for tool in nc curl wget dig nslookup dd getent ip ss seq timeout hostname grep sed cat sleep date ls head tail wc sort uniq env; do
  files+=("/bin/$tool=$(PATH=$PATH:/usr/sbin command -v $tool)")
done
keys=$(go list -f '{{.Dir}}' k8s.io/kubernetes/test/images/agnhost/porter)
$bin/image --out $bin/images/agnhost.tar --tag "$tags" --libraries --entrypoint /agnhost --args pause \
  /localhost.crt="$keys/localhost.crt" /localhost.key="$keys/localhost.key" "${files[@]}"
$bin/image --out $bin/images/coredns.tar --tag local/coredns:1 --entrypoint /coredns /coredns=$bin/coredns
