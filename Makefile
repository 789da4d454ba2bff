# The words that people and CI share. `make help` lists them.
CARGO ?= cargo
TENFOLD := $(or $(CARGO_TARGET_DIR),target)/release/tenfold

.PHONY: help demo build deps test bench-choosing lint fmt install clean

help: ## List these words
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: build ## Build Tenfold and answer the question for the bundled app
	$(TENFOLD) demo

build: ## Build the program
	$(CARGO) build --release --locked -p tenfold

deps: ## Install what the tests need (Debian's apt, npm)
	scripts/deps

test: deps ## Run every test
	$(CARGO) test --workspace --locked

bench-choosing: ## Print what a choice of each policy costs
	$(CARGO) test --release --locked -q -p balancer --lib -- --ignored --nocapture choosing_costs

lint: ## Format and lints, as CI wants them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## Format
	$(CARGO) fmt --all

install: build ## Install the program to ~/.cargo/bin
	$(CARGO) install --locked --path crates/tenfold

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf examples/search/node_modules
