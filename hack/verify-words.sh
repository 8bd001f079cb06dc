#!/usr/bin/env bash
# Fails when a retired word comes back (hack/retired-words.txt): one thing has one word, in flags, fields, conditions, reasons,
# metrics, screens and documents.
set -euo pipefail
cd "$(dirname "$0")/.."
back=0
while IFS=$'\t' read -r word standard; do
  if found=$(git grep --untracked -nP -e "$word" -- . ':(exclude)docs/adr' ':(exclude)docs/changelog.md' ':(exclude)hack/retired-words.txt'); then
    printf 'retired, say %s:\n%s\n' "$standard" "$(cut -c1-200 <<<"$found")" >&2
    back=1
  elif [ $? -gt 1 ]; then
    exit 1 # git has said why
  fi
done < <(grep -vE '^(#|$)' hack/retired-words.txt)
exit $back
