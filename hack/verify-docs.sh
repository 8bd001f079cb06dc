#!/usr/bin/env bash
# Fails when docs/reference is not what hack/update-docs.sh makes of the code.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
hack/update-docs.sh "$made"
diff -ru --exclude README.md docs/reference "$made" || { echo "docs/reference is stale: run hack/update-docs.sh" >&2; exit 1; }
