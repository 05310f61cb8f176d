# The two commands are `make run` and `make test`; `make help` lists the rest.

SHELL := /bin/bash
CARGO ?= cargo
MUTANTS_STAGE ?= unit
# Most tests wait for processes and times: with three for each core, a third of the cores' time is no longer idle.
TEST_THREADS ?= $(shell echo $$(( $$(nproc) * 3 )))

.DEFAULT_GOAL := help
.PHONY: help run test verify mutants dist bench bench-money bench-record bench-growth static pgo lint

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: ## Bring up the whole system on loopback, with a sandbox in place of the provider
	@deploy/local/up.sh

test: ## Run the tests on private servers
	@deploy/local/packages.sh build store node python browser prometheus
	@RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace --locked --no-fail-fast; status=$$?; deploy/local/packages.sh browser; exit $$status

verify: ## Run the tests that are long by nature: planted faults in scripts, torture, lost masters, fuzzing, a million records
	@deploy/local/packages.sh build store node python browser prometheus
	@$(CARGO) test --workspace --locked --no-fail-fast -- --ignored

mutants: ## Plant faults in the Rust of money and calls, and list those that no unit test notices (MUTANTS_OPTIONS="--shard 0/20")
	@deploy/local/packages.sh build mutants
	@tests/mutants/run.sh $(MUTANTS_STAGE) $(MUTANTS_OPTIONS)

bench: ## Measure the edge beside nginx and a bare pass-through
	@deploy/local/packages.sh build store nginx
	$(CARGO) build --locked --profile dist -p gate-bench-rig
	$(CARGO) build --locked --profile dist -p tollgate --bins # by themselves, with the features they are deployed with
	$(CARGO) run --locked -p gate-bench --bin gate-bench -- --bin-dir "$${CARGO_TARGET_DIR:-target}/dist" $(BENCH_OPTIONS)

bench-money: ## Measure what each money script costs the store, with few and with a million records
	@deploy/local/packages.sh build store
	$(CARGO) run --locked -p gate-bench --bin bench-money -- --results benches/results/money.md $(BENCH_OPTIONS)

bench-record: ## Measure memory, sealing and verification of the audit trail of a million decisions
	@deploy/local/packages.sh build store
	$(CARGO) run --locked --release -p gate-bench --bin bench-record -- --results benches/results/record.md $(BENCH_OPTIONS)

bench-growth: ## Measure what a call costs the store, with little and with millions of records in it
	@deploy/local/packages.sh build store
	$(CARGO) build --locked --profile dist -p tollgate --bin tollgate-proxy
	$(CARGO) run --locked --release -p gate-bench --bin bench-growth -- \
	  --edge "$${CARGO_TARGET_DIR:-target}/dist/tollgate-proxy" --results benches/results/growth.md $(BENCH_OPTIONS)

dist: ## Build both programs as they are deployed, knowing their commit
	@deploy/local/packages.sh build
	TOLLGATE_COMMIT=$$(deploy/local/commit.sh) $(CARGO) build --profile dist --locked --bins --package tollgate

static: ## Build both programs as static binaries, and try each alone
	@deploy/local/packages.sh build
	@deploy/docker/static.sh

pgo: ## Build the edge with a profile of its own work, which spares a tenth of its CPU time
	@deploy/local/packages.sh build store nginx
	$(CARGO) build --locked --profile dist -p gate-bench-rig --bin bench-load --bin bench-upstream
	@benches/pgo.sh

lint: ## Check format, lints and, where cargo-deny is installed, the dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p telemetry -p settings --locked -- -D warnings # as built with --no-default-features
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --locked check; else echo "cargo-deny is not installed: dependencies not checked"; fi
