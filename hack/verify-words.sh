#!/usr/bin/env bash
# Fails when a retired word comes back (hack/retired-words.txt): one thing has one word, in flags, fields, conditions, reasons,
# metrics, screens and documents. In the folders of prose below it also fails on phrases that read as translated
# (hack/retired-phrases.txt).
set -euo pipefail
cd "$(dirname "$0")/.."
prose=(README.md docs scheduler controllers dnsprovider nodeagent apiserver cmd
  ':(exclude)controllers/fleettest' ':(exclude)docs/reference' ':(exclude)docs/performance.md' ':(exclude)*_test.go' ':(exclude)*/testdata/*')
back=0

# retired LIST PATH...: prints each use of a retired word of the list, and what to write instead.
retired() {
  local list=$1 found word standard
  shift
  while IFS=$'\t' read -r word standard; do
    if found=$(git grep --untracked -nP -e "$word" -- "$@" ':(exclude)docs/adr' ':(exclude)docs/changelog.md' ':(exclude)hack/retired-*.txt'); then
      printf 'retired, say %s:\n%s\n' "$standard" "$(cut -c1-200 <<<"$found")" >&2
      back=1
    elif [ $? -gt 1 ]; then
      exit 1 # git has said why
    fi
  done < <(grep -vE '^(#|$)' "$list")
}

retired hack/retired-words.txt .
retired hack/retired-phrases.txt "${prose[@]}"
exit $back
