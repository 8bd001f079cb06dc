#!/usr/bin/env bash
# Runs all tests. Those under hack/e2e start real member clusters and a real federation, in a place
# of their own beside what `make up` runs, and end them.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
hack/install-tools.sh tests
mapfile -t packages < <(go list ./... | grep -v '/hack/')
go build -o _output/bin/ k8s.io/kubernetes/cmd/kube-proxy # which the node agent is tried beside
echo "unit and integration tests" # all without vet, which is among the linters
go test -vet=off -timeout 20m -skip '^TestProvider$' "${packages[@]}" # that one is among the tests with clusters
seed=$((16#$(git rev-parse HEAD | cut -c1-8)))
echo "random faults in a fleet in memory, from seed $seed on, which is the commit's; each line says how to repeat it"
go test -vet=off ./controllers/fleettest -run TestRandom -v -count 1 -timeout 15m -seed "$seed" -seeds 5 -steps 300 |
  grep -vE '^(=== |\s*--- (PASS|SKIP))'
echo "three of the fuzz targets, in turn from commit to commit"
hack/fuzz.sh 20 3 "$((3 * $(git rev-list --count HEAD)))"
echo "tests with real member clusters, three at a time, each with clusters of its own"
# These spend most of their time waiting for periods to end.
waiting='^(TestReadinessTellsOfALackOfRoom|TestAQuotaOfAMember|TestAnAbortedIsolation|TestACustomKindIsMadeAgain|TestTenantsCannotHurtEachOther|TestRotateEndsAStolenCredential|TestAnAdministratorEndsAThief|TestEndpointsOfOthersOff|TestLeaveAndJoinAgain|TestAFlappingMember|TestTheLawUnderFaults|TestSecretsAreEncryptedByAKMS|TestOneAutoscalerByCustomMetrics|TestACustomKindIsScaled|TestJoiningTwiceIsNoFalseSuccess|TestTogether|TestANameInUse|TestServicesAreExportedAndImported|TestAHostileMemberHurtsNobody)$'
export TENANT_SEED=$seed
mapfile -t others < <(go list ./hack/... | grep -v '/hack/e2e$')
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
E2E_NAME=e2e-waiting go test -vet=off -timeout 30m -count=1 -v -run "$waiting" ./hack/e2e >"$logs/waiting" 2>&1 &
parts=($!)
go test -vet=off -timeout 30m -count=1 -v -skip "$waiting" ./hack/e2e >"$logs/e2e" 2>&1 &
parts+=($!)
failed=0
go test -vet=off -timeout 30m -count=1 -p 1 -v "${others[@]}" | grep -vE '^\s*$|no test files' || failed=1
E2E_NAME=e2e-provider go test -vet=off -count=1 -v -run '^TestProvider$' ./cmd/federation-lb || failed=1
for part in "${parts[@]}"; do wait "$part" || failed=1; done
grep -hvE '^\s*$' "$logs"/*
exit $failed
