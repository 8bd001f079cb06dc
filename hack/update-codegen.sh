#!/usr/bin/env bash
# Makes what is generated from the types of apiserver/apis: deep copies, OpenAPI names, and the
# OpenAPI definitions. The generators are pinned in go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
types=./apiserver/apis/federation/v1beta1

go tool deepcopy-gen --go-header-file /dev/null --output-file zz_generated.deepcopy.go "$types"
go tool openapi-gen --go-header-file /dev/null --report-filename /dev/null \
  --output-dir apiserver/openapi --output-pkg federation/apiserver/openapi \
  --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
  "$types"
