#!/usr/bin/env bash
# What can be known in a minute: gofmt, words and decisions, the linter and the tests of the pure rooms, which neither wait nor
# start anything. The rooms are those of the rule pure-rooms in .golangci.yml.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
rooms=(./apiserver/apis/... ./apiserver/validation/... ./apiserver/admission/plan/... ./clusterregistry/health/... ./clusterregistry/isolation/... ./clusterregistry/capacity/room/...
  ./scheduler/... ./dnsprovider ./dnsprovider/zonefile/... ./dnsprovider/dnssec/... ./nodeagent/ruleset/... ./apiserver/registry/views/canonical/...)
for plan in controllers/*/plan; do rooms+=("./$plan/..."); done

hack/verify-words.sh
hack/verify-adr.sh
hack/lint.sh "${rooms[@]}"
go test "${rooms[@]}" | grep -v 'no test files'
