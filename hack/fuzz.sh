#!/usr/bin/env bash
# Runs fuzz targets, each for some seconds, from what is in testdata/fuzz on: `hack/fuzz.sh 60` all of them, `hack/fuzz.sh 20 3 17`
# three, beginning with the 17th of a list without end. With FUZZ_KEEP=N N of the inputs that reached something new, small and large
# ones, go into testdata/fuzz, where every test run tries them.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
mapfile -t targets < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sort | sed -E 's|^(.*)/[^/]*:func (.*)|\1 \2|')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# ended_on_time reports whether all that failed is the end of the time itself: before Go 1.27 the fuzzer sometimes takes its own
# deadline for an error (https://go.dev/issue/75804). A real failure says more, and writes its input down.
ended_on_time() {
  [ "$(grep -vE '^(fuzz: |exit status 1$|FAIL($|\s))' "$1" | sed -E 's/ \([0-9.]+s\)$//')" = "--- FAIL: $name"$'\n'"    context deadline exceeded" ]
}
count=${2:-${#targets[@]}} from=${3:-0}
for ((i = from; i < from + count; i++)); do
  read -r package name <<<"${targets[i % ${#targets[@]}]}"
  echo "fuzz $package $name for $1 s"
  go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$1s" "$package" >"$log" || ended_on_time "$log" || failed=$?
  grep -vE '^(fuzz: elapsed|PASS)' "$log"
  [ -z "${failed:-}" ] || exit 1
  found=$(go env GOCACHE)/fuzz/$(go list "$package")/$name
  if [[ -n ${FUZZ_KEEP:-} && -d $found ]]; then
    mkdir -p "$package/testdata/fuzz/$name"
    find "$found" -type f -size -3k -printf '%s %p\n' | sort -n |
      awk -v n="$FUZZ_KEEP" '{file[NR] = $2} END {for (i = 1; i <= n && i <= NR; i++) print file[int(i * NR / (n < NR ? n : NR))]}' |
      xargs -r cp -t "$package/testdata/fuzz/$name"
  fi
done
