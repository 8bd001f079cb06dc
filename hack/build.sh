#!/usr/bin/env bash
# Builds all programs into _output/bin. The first build compiles Kubernetes itself, some 2000
# packages, so it says how far it is; a build with nothing to do takes a blink.
#
# All programs are built with the same flags, or they would not share the build cache. RELEASE=1 leaves the paths of this machine out of them.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

kubernetes=v1.36.3 # as in go.mod
own=${VERSION:-$(cat hack/VERSION)-dev} # hack/release gives it
bin=${BIN:-_output/bin}
stamp=$bin/.built
version=k8s.io/component-base/version
numbers="-X $version.gitMajor=1 -X $version.gitMinor=36"
plain="-s -w -X $version.gitVersion=$kubernetes $numbers"
ours="-s -w -X $version.gitVersion=$kubernetes+federation.${own#v} -X main.version=$own $numbers" # clients read Kubernetes' version of an API server

# What is built, as packages; the last part of each is the program's name.
packages=(./cmd/federation ./cmd/kubectl-federation ./hack/local/member ./hack/local/stack)
for more in federation-agent federation-dns federation-lb federation-nodeagent; do
  [ ! -d "cmd/$more" ] || packages+=("./cmd/$more")
done
[ -z "${VERSION:-}" ] || packages=(./cmd/federation ./cmd/federation-agent ./cmd/federation-dns ./cmd/federation-lb ./cmd/federation-nodeagent ./cmd/kubectl-federation)
# kubectl only where there is none but ours.
others=$(tr : '\n' <<<"$PATH" | grep -vxF "$PWD/$bin" | paste -sd:)
[ -n "${VERSION:-}" ] || PATH=$others command -v kubectl >/dev/null || packages+=(k8s.io/kubernetes/cmd/kubectl)

# up_to_date: every program is there, and nothing in the tree (nor the tree itself: a directory
# changes when a file in it comes or goes) is newer than the last build.
up_to_date() {
  [ -e $stamp ] || return 1
  for p in "${packages[@]}"; do [ -x "$bin/${p##*/}" ] || return 1; done
  [ -z "$(find . \( -path ./.git -o -path ./_output -o -path ./docs \) -prune -o \
    ! -name '*.md' ! -name '*_test.go' ! -path . -newer $stamp -print -quit)" ]
}
if up_to_date; then exit 0; fi

mkdir -p $bin
started=$(mktemp -p $bin .started.XXXX)
log=$(mktemp)
trap 'rm -f "$log" "$started"' EXIT

# compile prints a line for each package that was not in the cache. Flags of the linker go by package.
compile() {
  go build -v ${RELEASE:+-trimpath} -o $bin/ -ldflags="$plain" -ldflags="federation/cmd/...=$ours" "${packages[@]}" >"$log" 2>&1
}

clock() { printf '%dm%02ds' $((SECONDS / 60)) $((SECONDS % 60)); }

# The total is known only for an empty cache: there is no quick way to ask what is cached.
progress() {
  local total last=0 text
  total=$(go list -deps "${packages[@]}" 2>/dev/null | grep -c .) || true
  while sleep 1; do
    text="building: $(grep -vc '^go: ' "$log") of at most $total packages, $(clock)"
    if [ -t 1 ]; then
      printf '\r\033[K%s' "$text"
    elif [ $((SECONDS - last)) -ge 15 ]; then
      last=$SECONDS
      echo "$text"
    fi
  done
}

echo "building ${packages[*]##*/} (the first time takes some minutes: Kubernetes itself is compiled)"
progress &
watcher=$!
stop_watcher() { kill $watcher 2>/dev/null; wait $watcher 2>/dev/null || true; [ ! -t 1 ] || printf '\r\033[K'; }
if ! compile; then
  stop_watcher
  echo "build failed:" >&2
  # Package names are progress; what is left is what the compiler said.
  grep -E '^(#|.*:[0-9]+|go: |.*(no required|cannot find|not in std).*)' "$log" >&2 || tail -20 "$log" >&2
  exit 1
fi
stop_watcher

[ -n "${VERSION:-}" ] || ln -sf stack $bin/local
ln -sf kubectl-federation $bin/kubectl_complete-federation # kubectl asks it for completions
# What changed while we built counts as newer.
mv "$started" $stamp
echo "built into $bin in $(clock)"
