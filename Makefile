# make demo   measures real commits of this repository (examples/history) and prints who won
# make test   everything that must pass before a change lands
.PHONY: minio test-minio kubernetes test-kubernetes node test-node build demo test checked measured unit faults test-engines lint examples rehearse gpu test-gpu rehearse-gpu bench fuzz dist clean

BENCHGRAPH := $(CURDIR)/bin/benchgraph

# As packaging/dist compiles a release, so that no package is compiled twice: without C where only a C library's own way to
# look up hosts and users is at stake.
PURE := netgo,osusergo
export GOFLAGS += -trimpath -tags=$(PURE)

build:
	go build -o bin/ ./cmd/benchgraph ./cmd/benchgraph-kubernetes ./cmd/benchgraph-modal

demo: build
	$(BENCHGRAPH) -chdir=examples/history apply
	@echo "The report: examples/history/report/report.md"

# Measured commands wait much and compute little, so that they run beside the others. The unit tests are last: they end with the
# list of the tests that were skipped, and why.
test: lint
	@rm -f bin/again.*
	$(MAKE) -j2 --output-sync=target checked measured
	@cat bin/skipped 2>/dev/null || true
	@cat bin/again.* 2>/dev/null | sed 's/^/SECOND RUN /'

checked:
	$(MAKE) -j1 faults unit

# One after another, since each waits until it has the machine for itself.
measured:
	$(MAKE) -j1 examples rehearse rehearse-gpu

# A failing test is run once more, and bin/again.TARGET says so: each is a mistake to be found. Lint has vetted the code.
TESTS = go tool gotestsum --format pkgname --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-report=bin/again.$@

# A program with the race detector ends a second late otherwise, each time. First processes of sandboxes, but for the tests of
# executor, and what is no apply in the stories run without the detector: as a program of the tests that is called benchgraph, and
# compiled as for the faults. The packages that take longest are first, so that none of them runs alone at the end.
UNRACED := $(CURDIR)/bin/unraced/benchgraph
unit:
	go test -c -vet=off -tags faults,$(PURE) -ldflags='-s -w' -o $(UNRACED) ./cmd/benchgraph
	GORACE=atexit_sleep_ms=10 BENCHGRAPH_TEST_PROGRAM=$(UNRACED) $(TESTS) --packages='./cmd/benchgraph ./campaign ./packaging ./...' -- -race -vet=off -timeout 60m

# The slow ones of the stories in which everything breaks: kills, full disks, endless output, endless input. Those without the tag
# faults are unit tests. Tests in which one goroutine computes for a long time need no race detector either.
FAULTS = $(shell grep -rl --include='*_test.go' '^//go:build.*faults' .)
ALONE = $(shell grep -rl --include='*_test.go' 'needtest.NoRace' .)
SLOW = $(shell sed -n 's/^func \(Test[A-Za-z]*\).*/\1/p' $(FAULTS) | paste -sd'|')
COMPUTED = $(shell awk -F'[^A-Za-z0-9]+' '/^func Test/ { name = $$2 } /needtest.NoRace/ { print name }' $(ALONE) | paste -sd'|')
faults:
	$(TESTS) --packages='$(patsubst %/,%,$(sort $(dir $(FAULTS) $(ALONE))))' -- -tags faults,$(PURE) -vet=off -timeout 20m \
		-run '^($(SLOW)|$(COMPUTED))$$'

# The tests that need a container engine, with others than this machine's: each comes from Debian, or from its Go module, and runs
# apart. Takes root and half an hour for each.
test-engines:
	for engine in docker docker-classic moby podman apptainer; do ./container/containertest/engines/run $$engine || exit 1; done

# The tests on a Kubernetes cluster. Its API server, which comes from its module, takes 10 to 18 minutes of processor time to build the first
# time. It needs root, and Debian's etcd-server.
kubernetes:
	CGO_ENABLED=0 go build -C executor/kubernetes/kubetest/apiserver -ldflags='-s -w' -o $(CURDIR)/bin/kubernetes/ k8s.io/kubernetes/cmd/kube-apiserver

# The tests of credentials that a server of buckets lends. The server, which comes from its module, takes 10 minutes of processor time
# to build the first time.
minio:
	CGO_ENABLED=0 go build -C cache/shared/bucket/buckettest/server -ldflags='-s -w' -o $(CURDIR)/bin/minio/ github.com/minio/minio

test-minio: minio
	go test -vet=off -run Lent ./cache/shared/bucket ./cmd/benchgraph

test-kubernetes: kubernetes
	go test -vet=off -timeout 20m ./executor/kubernetes/...
	go test -vet=off -timeout 20m -run '^TestKubernetes$$' ./cmd/benchgraph

# The same tests with a real node: its kubelet, the scheduler and the controllers, which take as long to build again.
node: kubernetes
	for part in kubelet kube-scheduler kube-controller-manager; do \
		CGO_ENABLED=0 go build -C executor/kubernetes/kubetest/apiserver -ldflags='-s -w' -o $(CURDIR)/bin/kubernetes/ \
			k8s.io/kubernetes/cmd/$$part || exit 1; \
	done

test-node: node
	executor/kubernetes/kubetest/run

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these files"; exit 1; }
	go vet -tags faults,gpu,$(PURE) ./...
	GOOS=darwin go vet ./...
	go tool staticcheck -tags faults,gpu,$(PURE) ./...
	go mod tidy -diff

# Each example runs twice; the second run must find nothing to do. The store is that of the rehearsal: what two projects make of
# the same bytes is made once.
examples: export BENCHGRAPH_CACHE_DIR = $(CURDIR)/.benchgraph/store
examples: build
	@rm -f bin/skipped
	./examples/run $(BENCHGRAPH)

# The campaign of benchmarks.hcl against the stand-in engine, from source to report.
rehearse: build
	./examples/campaigns/rehearsal/run $(BENCHGRAPH)

ifneq ($(shell uname),Linux)
gpu test-gpu rehearse-gpu:
	@echo "$@: the checks on GPUs run on Linux only; nothing is done"
else

# What bin/gpu/run needs to check benchgraph on the GPUs of a machine without Go (docs/gpu.md): the directory can be carried there.
# NEEDS says which libc it takes.
gpu: SMALL := -ldflags='-s -w'
gpu:
	mkdir -p bin/gpu
	cp cmd/benchgraph/testdata/gpu/run bin/gpu/run
	CGO_ENABLED=1 go build $(SMALL) -o bin/gpu/benchgraph ./cmd/benchgraph
	CGO_ENABLED=1 go test -c -tags gpu,$(PURE) $(SMALL) -o bin/gpu/gpu.test ./cmd/benchgraph
	cc -O2 -Wall -Wextra -Werror -o bin/gpu/load cmd/benchgraph/testdata/gpu/load.c -ldl
	objdump -T bin/gpu/benchgraph bin/gpu/gpu.test bin/gpu/load | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 >bin/gpu/NEEDS

test-gpu: gpu
	bin/gpu/run bin/gpu/report

# The same checks with stand-ins for driver and devices: that they work, not that benchgraph does on GPUs.
rehearse-gpu: gpu
	cd cmd/benchgraph && $(CURDIR)/bin/gpu/gpu.test -test.v -test.run '^TestGPU$$' -test.timeout 9m30s -gpu.rehearse self -gpu.tools $(CURDIR)/bin/gpu >$(CURDIR)/bin/gpu/rehearsal 2>&1 || \
		{ cat $(CURDIR)/bin/gpu/rehearsal; exit 1; }
	grep -e '^ *---' bin/gpu/rehearsal

endif

# Beside its peers, then piece by piece.
bench:
	./bench/speed
	go test -run '^$$' -bench . -benchmem ./...

# Every fuzz target for FUZZTIME, which may also be a number of executions (FUZZTIME=10000000x). Interesting inputs are
# not made as small as possible: that takes most of the time and finds nothing.
FUZZTIME ?= 30s
fuzz:
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package || exit 1; \
		done; \
	done

# A release in bin/dist: programs for Linux and macOS, wheels for pip, a container image.
dist:
	packaging/dist

clean:
	rm -rf bin examples/*/.benchgraph examples/*/report
