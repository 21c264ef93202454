# Everything a person or CI runs; `make` alone lists it.

CARGO ?= cargo
SECONDS ?= 600

.DEFAULT_GOAL := help
.PHONY: help build cli install demo test test-programs bench stress fuzz fuzz-minimise clean
.PHONY: packages-ci lint unit loom miri counts aarch64 mutants programs-ci stress-short fuzz-short guest

help: ## list the targets
	@echo 'usage: make TARGET'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/    \1 \2/p' $(MAKEFILE_LIST) | awk '{ t = $$1; $$1 = ""; printf "    %-15s%s\n", t, $$0 }'

build: ## libhomenode.so and .a, in target/release
	$(CARGO) build --release --locked -p homenode-cabi
	@ln -sf libhomenode.so target/release/libhomenode.so.0

cli: build ## the command homenode, in target/release
	$(CARGO) build --release --locked -p homenode-cli

install: build ## the library, and the command where it was built, to PREFIX (/usr/local), below DESTDIR: make install PREFIX=... DESTDIR=...
	@PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' scripts/install

demo: ## real programs with and without homenode: time, memory, statistics
	-@scripts/install-packages demo
	@$(MAKE) --no-print-directory build
	@demo/run

test: ## all that CI runs, with a summary at the end
	@scripts/test

test-programs: ## the full list of real programs, on fake nodes too
	@scripts/install-packages programs
	@$(MAKE) --no-print-directory build
	@tests/programs/run --fake all

bench: build ## all rows against seven peers, which it builds first; then real programs
	@scripts/install-packages bench
	$(CARGO) run --release --locked -p homenode-benches --bin bench -- peers
	$(CARGO) run --release --locked -p homenode-benches --bin bench -- run --json target/bench/bench.json --plots target/bench
	$(CARGO) run --release --locked -p homenode-benches --bin bench -- programs --json target/bench/programs.json

stress: build ## the tagged-object stress: make stress SECONDS=600 (of each of its runs)
	TEST_STRESS_SECONDS=$(SECONDS) $(CARGO) test --profile checked --locked -p homenode --test stress -- --test-threads=1

fuzz: ## programs of operations, guided by what they reach: make fuzz SECONDS=600
	@scripts/fuzz $(SECONDS)

fuzz-minimise: ## the kept corpus without the inputs that reach nothing of their own
	@scripts/fuzz minimise

guest: build ## programs in emulated machines with up to 8 nodes
	-@scripts/install-packages guest
	$(CARGO) test --profile checked --locked -p homenode-guest-tests --test guest

clean: ## remove what was built
	$(CARGO) clean

packages-ci: ## install the system packages that `make test` needs
	@scripts/install-packages ci

lint: ## formatting, clippy, and shellcheck where installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p homenode --features allocator-api2 --all-targets -- -D warnings
	@scripts/lint-scripts

unit: build cli ## unit and integration tests, on the release build; a first second of the stress
	TEST_STRESS_SECONDS=1 $(CARGO) test --profile checked --locked --workspace --no-fail-fast
	$(CARGO) test --profile checked --locked -p homenode --features allocator-api2 --test allocator_api2

loom: ## every interleaving of the lock-free protocols
	@scripts/loom

miri: ## the pure parts under Miri, which CI installs, or else under valgrind
	@scripts/miri

counts: build ## the instructions of the hit paths, against benches/counts.txt
	$(CARGO) run --profile checked --locked -p homenode-benches --bin counts -- --check

aarch64: ## cross-built; its fallback run under qemu-user, its critical sections in an emulated machine
	@scripts/aarch64

mutants: ## faults put in on purpose: the stress and the injected refusals find them
	@scripts/mutants

programs-ci: build ## CI's list of real programs, on fake nodes too
	@tests/programs/run --fake ci

stress-short: ## the stress, 10 s for each of its runs
	@$(MAKE) --no-print-directory stress SECONDS=10

fuzz-short: ## the fuzzer, for a minute from its kept corpus
	@scripts/fuzz 60
