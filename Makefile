# Everything a user or CI runs; `make` alone lists it. Each target says what it lacks before it starts.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:

GO      ?= go
TIME    ?= 2m
FUZZ    ?= 30s
SEED    ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
TOOLS   := $(CURDIR)/bin/tools
SYSTEMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## check for what the tests need; SETUP=1 installs it
	@build/setup.sh test

.PHONY: build
build: ## build bin/hipfabric and the examples
	@build/setup.sh demo
	$(GO) build -o bin/ ./cmd/... ./examples/...

.PHONY: demo
demo: build ## two processes over loopback: every operation checked, a latency table, one PASS line
	./bin/hipfabric demo

.PHONY: test
test: setup guard vet outside ## all tests: the guard, vet for every system, an outside module, unit to process tests; again under the race detector, but for those of programs and hosts
	CGO_ENABLED=0 $(GO) build ./...
	$(GO) run ./build/gotest -p 1 ./... -- -tags noverbs ./verbs/... -- -race -p 1 $$($(GO) list ./... | grep -v -E '/(cmd/hipfabric|netns|failure|ranks|bench|build.*)$$')

.PHONY: test-c
test-c: ## softhip's C tests with gcc: plain, ASan and UBSan, TSan, and valgrind where installed
	csrc/softhip/test/run.sh

.PHONY: guard
guard: ## prove architecture's rules: imports, cgo, dependencies, file length, formatting
	$(GO) run ./build/guard

.PHONY: vet
vet: ## go vet for every system, tests included
	$(GO) vet ./...
	@for s in $(SYSTEMS); do echo "go vet for $$s" && GOOS=$${s%/*} GOARCH=$${s#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; done

.PHONY: outside
outside: ## a module outside requires hipfabric: plain and vendored
	build/outside/run.sh

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, golangci-lint
	@build/setup.sh lint
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet ./...
	cd tools && $(GO) mod tidy -diff && $(GO) build -o $(TOOLS)/ tool
	$(TOOLS)/staticcheck ./...
	$(TOOLS)/golangci-lint run ./...

.PHONY: fuzz
fuzz: ## fuzz each decoder for FUZZ=30s
	@build/setup.sh test
	build/fuzz.sh $(FUZZ)

.PHONY: soak
soak: ## random kills, stops, cuts, aborts and desyncs for TIME=2m; SEED=n repeats one
	@build/setup.sh demo
	build/soak.sh $(SEED) $(TIME)

.PHONY: bench
bench: build ## ours beside the floor program, Open MPI and iperf3, where installed
	$(GO) run ./bench

.PHONY: test-fresh
test-fresh: ## build and run it as a stranger would, in a bare Debian root (needs root)
	build/fresh.sh

.PHONY: bench-rxe
bench-rxe: ## RoCE against perftest, in a throw-away machine with soft RoCE; on an idle machine
	@build/setup.sh test-rxe
	build/rxe-vm/bench.sh

.PHONY: shell-rxe
shell-rxe: ## a shell, or COMMAND, in a throw-away machine with netem and soft RoCE (Debian)
	@build/setup.sh shell-rxe
	@if [ -n "$$COMMAND" ]; then build/rxe-vm/run.sh bash -c "$$COMMAND"; else build/rxe-vm/run.sh; fi

.PHONY: test-rxe
test-rxe: build ## the tests that need that machine, in it
	@build/setup.sh test-rxe
	build/rxe-vm/test.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .cache
