# make demo   measures real commits of this repository (examples/history) and prints who won
# make test   everything that must pass before a change lands
.PHONY: build demo test unit faults lint examples bench fuzz clean

BENCHGRAPH := $(CURDIR)/bin/benchgraph

build:
	go build -o bin/benchgraph ./cmd/benchgraph

demo: build
	$(BENCHGRAPH) -chdir=examples/history apply
	@echo "The report: examples/history/report/report.md"

test: lint unit faults examples

unit:
	go test -race -timeout 20m ./...

# The slow ones of the stories in which everything breaks: kills, full disks, endless output, endless input.
faults:
	go test -tags faults -timeout 20m -run '^TestFault|^TestScript$$/^bounded$$' ./cmd/benchgraph ./tasks

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "gofmt would change these files"; exit 1; }
	go vet -tags faults ./...
	go tool staticcheck -tags faults ./...
	go mod tidy -diff

# Each example runs twice; the second run must find nothing to do.
examples: build
	./examples/run $(BENCHGRAPH)

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

clean:
	rm -rf bin examples/*/.benchgraph examples/*/report
