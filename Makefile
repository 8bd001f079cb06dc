# The verbs of this repository. `make help` lists them.
SHELL := /bin/bash
export CGO_ENABLED := 0
export PATH := $(CURDIR)/_output/bin:$(PATH)

CLUSTERS ?= 3
SITE_BASE ?= /
NODES    ?= $(if $(REAL),2,3)
SEED     ?= 1
SEEDS    ?= 20
STEPS    ?= 3000
FOR      ?= 60

.DEFAULT_GOAL := help
.PHONY: e2e-app first-hour site site-test race e2e-lb e2e-mcs e2e-kubectl e2e-pull e2e-console-firefox e2e-charts e2e-tools check release e2e-drills e2e-drill-clients e2e-alerts vulncheck console-pictures fuzz soak-dataplane e2e-dataplane e2e-nodeagent e2e-systemd build-real test-coredns help demo up down test fleet build lint generate verify bench bench-console bench-dns bench-lb bench-dataplane bench-readiness

##@ Begin

help: ## list the verbs
	@awk -F':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' Makefile

build: ## install what is missing and build all programs into _output/bin
	@hack/install-tools.sh
	@hack/build.sh

up: build $(if $(REAL),build-real) ## start member clusters and the federation on this machine [CLUSTERS=3] [NODES=3] [REAL=1: nodes and pods are real] [PULL=1: the federation cannot connect to members]
	@_output/bin/local up --clusters $(CLUSTERS) --nodes $(NODES) $(if $(REAL),--real) $(if $(PULL),--pull)

build-real:
	@hack/install-tools.sh real
	@hack/build-real.sh

demo: up ## the main job, told as a story: three clusters, one dies, it comes back [REAL=1: with pods that answer]
	@hack/demo$(if $(REAL),-real).sh

first-hour: build ## run docs/first-hour.md word for word, and compare what is printed with what it promises
	@go test ./hack/firsthour -count 1 -v -timeout 20m

down: ## end exactly what `make up` started, and leave nothing behind
	@if [ -x _output/bin/local ]; then _output/bin/local down; else echo "nothing was started from here"; fi

##@ Each change

check: ## what can be known in a minute: lint and tests of the pure rooms, words, decisions
	@hack/check.sh

lint: ## golangci-lint, with the walls between the rooms
	@hack/lint.sh

generate: ## update generated code, docs/reference and hack/kustomize
	@for f in hack/update-codegen.sh hack/update-docs.sh hack/update-kustomize.sh; do [ ! -x $$f ] || $$f || exit; done

verify: build ## check that generated code, docs/reference and hack/kustomize are up to date, that no retired word is used, and that the index of decisions is whole
	@for f in hack/verify-*.sh; do $$f || exit; done

test: build ## all tests, the end-to-end ones with real clusters among them
	@hack/test.sh

fleet: ## random faults in a fleet in memory, the laws checked after each step [SEED=1] [SEEDS=20] [STEPS=3000]
	@go test ./controllers/fleettest -run TestRandom -v -count 1 -timeout 6h -seed $(SEED) -seeds $(SEEDS) -steps $(STEPS)

##@ Longer tests

RACE ?= ./clusterregistry/... ./controllers/... ./dnsprovider/authoritative/... ./nodeagent/...
race: ## unit tests of what has goroutines, under the race detector, which needs a C compiler [RACE="./controllers/drill/..."]
	@CGO_ENABLED=1 go test -race -timeout 30m $(RACE)

fuzz: ## all fuzz targets, one after another [FOR=60: seconds of each]
	@hack/fuzz.sh $(FOR)

e2e-drills: build ## a drill whose leader is killed, and many drills, with real members: an hour [DRILLS=20: of each method]
	@E2E_LONG=1 go test ./hack/e2e -run 'TestAnIsolationAndItsLeader|TestManyDrills' -count 1 -v -timeout 2h

e2e-drill-clients: build build-real ## what a client outside sees of a drill of each method, on real nodes: ten minutes
	@hack/e2e-drill-clients.sh

e2e-alerts: build ## each alert fires and clears in a real Prometheus, by faults of real processes: ten minutes
	@hack/install-tools.sh tests
	@E2E_LONG=1 E2E_NAME=e2e-alerts go test ./hack/e2e -run TestAlerts -count 1 -v -timeout 1h

MODE  ?= kube-proxy-iptables kube-proxy-nftables iptables nftables
FOCUS ?= \[sig-network\] Services
e2e-dataplane: build ## Kubernetes' own tests of Services, with each way to make Services work [MODE="iptables nftables"] [FOCUS=…]
	@hack/install-tools.sh real
	@hack/install-tools.sh services
	@hack/build-real.sh services
	@hack/e2e-dataplane.sh '$(MODE)' '$(FOCUS)'

MCS_MODE ?= nftables kube-proxy-iptables
e2e-mcs: build build-real ## the clauses of the Multi-Cluster Services API between three clusters with real nodes, with each way to make Services work [MCS_MODE="iptables nftables kube-proxy-nftables federated"] [SUITE=the conformance suite's own program] [RUNS=3: of the suite in each mode]
	@hack/install-tools.sh real
	@hack/install-tools.sh mcs
	@hack/build-coredns.sh
	@case '$(MCS_MODE)' in *kube-proxy* | *federated*) go build -o _output/bin/ -ldflags='-s -w' k8s.io/kubernetes/cmd/kube-proxy ;; esac
	@RUNS='$(RUNS)' hack/e2e-mcs.sh '$(MCS_MODE)'

APP_MODE ?= nftables
e2e-app: build build-real ## an application of twelve Services: whole in one cluster, torn apart by policy, and a cluster that holds a third of it is killed; ten minutes, as root [APP_MODE=kube-proxy-nftables]
	@hack/install-tools.sh real
	@hack/build-coredns.sh
	@case '$(APP_MODE)' in kube-proxy* | federated) go build -o _output/bin/ -ldflags='-s -w' k8s.io/kubernetes/cmd/kube-proxy ;; esac
	@hack/e2e-app.sh '$(APP_MODE)'

e2e-across: build build-real ## ten Services that call each other, torn apart over three clusters with real nodes, of which one is killed: six minutes, as root
	@hack/install-tools.sh real
	@hack/e2e-across.sh

e2e-kubectl: build build-real ## kubectl exec, cp, attach, port-forward and logs through the federation, on real nodes: three minutes, as root [PULL=1: through agents]
	@hack/install-tools.sh real
	@hack/e2e-kubectl.sh

e2e-systemd: build ## the units of hack/manifests and the Debian packages under a real systemd, with all their sandbox options: two minutes, as root
	@hack/e2e-systemd.sh

e2e-lb: build $(if $(REAL),build-real) ## what clients of federation-lb see when clusters and load balancers die: no GET may fail; three minutes, as root [REAL=1: of pods on real nodes]
	@hack/install-tools.sh tests
	@hack/e2e-lb$(if $(REAL),-real).sh

e2e-pull: build ## all end-to-end tests with members that connect to the federation, which cannot connect to them; half an hour, as root
	@E2E_PULL=1 E2E_JUDGE_TIMES=1 E2E_NAME=e2e-pull go test ./hack/e2e -count 1 -v -timeout 70m

e2e-console-firefox: build ## the console's tests in Firefox ESR instead of Chromium: five minutes
	@hack/install-tools.sh firefox
	@go test ./hack/consoletest -firefox -skip 'TestSite|TestPictures' -count 1 -v -timeout 40m

e2e-nodeagent: build build-real ## the node agent as a DaemonSet, installed by `kubectl federation join`, on real nodes
	@hack/e2e-nodeagent.sh

soak-dataplane: build ## the node agent under a thousand changes, with its own death and the API server's, and nobody may notice
	@hack/install-tools.sh tests
	@go build -o _output/bin/ k8s.io/kubernetes/cmd/kube-proxy
	@go test ./cmd/federation-nodeagent -run 'TestNoConnectionFails|TestInPlaceOfKubeProxy' -count 1 -v -timeout 1h -long

e2e-tools: build ## tests with released Helms, 4 and 3, which take minutes to build
	@hack/build-helm.sh && E2E_JUDGE_TIMES=1 go test -count=1 -v -run TestHelm ./hack/e2e

e2e-charts: build build-real ## the charts, with each Helm, on the real nodes of a member: lint, schema, install, upgrade under load, uninstall
	@hack/build-helm.sh && go test -count=1 ./hack/charts && for h in _output/bin/helm-v*; do HELM=$$h hack/e2e-charts.sh || exit 1; done

test-coredns: build ## tests with a real CoreDNS, which takes minutes to build
	@hack/build-coredns.sh && go test -count=1 ./dnsprovider/coredns && go test -count=1 -v -run TestNamesInACluster ./hack/e2e

vulncheck: build ## known vulnerabilities of the modules that are linked, where their database can be reached
	@hack/vulncheck.sh

##@ Measure

bench: build ## measure beside a bare client in the same run, into docs/performance.md [CLUSTERS=3]
	@hack/bench.sh $(CLUSTERS)

bench-readiness: ## measure what standing readiness costs and how soon it tells, at 1,000 clusters and 10,000 workloads, for an hour or so [FLAGS="--clusters 100 --for 30m"]
	@go run ./hack/benchreadiness $(FLAGS)

bench-console: build ## measure the console: loads at 1,000 clusters and 10,000 objects, ten minutes of 50 changes a second, an hour with the API restarted ten times; times are judged, so nothing else should run, and as root: the browser is to go before the API
	@hack/install-tools.sh tests
	@go test ./hack/consoletest -run 'TestThousandClusters|TestASilentMember' -count 1 -v -timeout 30m -events-for 10m -judge-times
	@go test ./hack/consoletest -run TestThePageCatchesUp -count 1 -v -timeout 90m -watch-for 1h -restarts 10

bench-dns: ## measure the DNS server beside Knot, NSD, BIND and CoreDNS, into docs/performance.md
	@hack/install-tools.sh bench-dns
	@hack/bench-dns.sh

bench-lb: build ## measure federation-lb beside HAProxy, nginx and Caddy, into docs/performance.md (as root)
	@hack/install-tools.sh bench-lb
	@go run ./hack/benchlb

bench-dataplane: build ## measure the node agent beside kube-proxy, into docs/performance.md (as root)
	@hack/install-tools.sh bench-dataplane
	@hack/bench-dataplane.sh

##@ Pictures

console-pictures: build ## take the pictures of docs/console.md again
	@hack/install-tools.sh tests
	@go test ./hack/consoletest -run TestPictures -count 1 -pictures $(CURDIR)/docs/pictures

##@ Documents

site: ## build the site of docs into _output/site; dead links fail it [SITE_BASE=/federation/: the path that it is served at]
	@SITE_BASE=$(SITE_BASE) hack/site.sh

site-test: site ## look at the site in a browser: search, light and dark, no error, no request to elsewhere
	@hack/install-tools.sh tests
	@go test ./hack/consoletest -run TestSite -count 1 -site $(CURDIR)/_output/site

##@ Release

release: ## build a release and its checksums, and tag it [FLAGS=--dry-run]
	@hack/release $(FLAGS)
