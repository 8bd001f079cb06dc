#!/usr/bin/env bash
# Fails where a decision is not in the index, docs/adr/README.md, with its title, or its status has another form.
set -euo pipefail
cd "$(dirname "$0")/../docs/adr"
wrong=0
for f in 0*.md; do
  title=$(sed -n '1s/^# //p' "$f")
  grep -qF -- "- [$title]($f)" README.md || { echo "docs/adr/README.md lacks: - [$title]($f)" >&2; wrong=1; }
  sed -n 3p "$f" | grep -qE '^Status: (accepted|replaced by \[)' || { echo "docs/adr/$f: line 3 must be \"Status: accepted\" or \"Status: replaced by [N](file.md)\"" >&2; wrong=1; }
done
exit $wrong
