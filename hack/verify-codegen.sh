#!/usr/bin/env bash
# Fails when generated code is not what hack/update-codegen.sh makes, and leaves the tree as it was.
set -euo pipefail
cd "$(dirname "$0")/.."
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT

generated() { find apiserver -name 'zz_generated.*.go' | sort; }
generated | xargs -r cp --parents -t "$kept"
hack/update-codegen.sh
stale=0
for file in $( (generated; cd "$kept" && generated) | sort -u); do
  cmp -s "$file" "$kept/$file" && continue
  echo "stale: $file (run hack/update-codegen.sh)" >&2
  stale=1
  if [ -e "$kept/$file" ]; then cp "$kept/$file" "$file"; else rm "$file"; fi
done
exit $stale
