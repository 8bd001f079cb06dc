#!/usr/bin/env bash
# Fails when a vendored file of the console, or of its tests, is not what apiserver/console/vendored.txt says, or is not named there.
set -euo pipefail
cd "$(dirname "$0")/.."
list=apiserver/console/vendored.txt
sums=$(grep -E '^[0-9a-f]{64}  ' $list)
sha256sum --check --quiet --strict <<<"$sums"
there=$(git ls-files --cached --others --exclude-standard apiserver/console/web/vendor hack/consoletest/testdata | sort)
named=$(cut -c67- <<<"$sums" | sort)
[ "$there" = "$named" ] || { echo "$list and the vendored files differ:" >&2; diff <(echo "$named") <(echo "$there") >&2; exit 1; }
