# The words that people and CI share. `make help` lists them.
CARGO ?= cargo
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 240
TARGET := $(or $(CARGO_TARGET_DIR),target)
TENFOLD := $(TARGET)/release/tenfold
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
PROFILE := $(abspath $(TARGET))/profile
RELEASE := $(TARGET)/$(HOST)/release/tenfold
ORIGIN := $(TARGET)/bench/release/bench-origin

.PHONY: help demo build release origin deps test unit soak fuzz lint fmt install clean bench-balancer bench-load bench-accuracy bench-drivers bench-page bench-choosing bench-docs systems engines foreign

help: ## List these words
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

demo: build ## Build Tenfold and answer the question for the bundled app
	$(TENFOLD) demo

build: ## Build the program, and the page of its reports where Node is there
	scripts/page optional
	$(CARGO) build --release --locked -p tenfold

# Named by its platform, the build keeps these flags from the compiler's own plugins. It begins afresh: cargo would keep
# libraries that another profile has optimised, and the linker does not join the two.
release: origin ## Build the program for what it does most: it runs, and is optimised by what it ran (10 min)
	scripts/deps release
	scripts/page
	rm -rf $(PROFILE) $(TARGET)/$(HOST)
	RUSTFLAGS="-C profile-generate=$(PROFILE)" $(CARGO) build --release --locked -p tenfold --target $(HOST) --target-dir $(TARGET)/profiled
	TENFOLD=$(TARGET)/profiled/$(HOST)/release/tenfold ORIGIN=$(ORIGIN) PYTHONPATH=bench python3 -B bench/train
	$$(rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata merge -o $(PROFILE)/all.profdata $(PROFILE)
	RUSTFLAGS="-C profile-use=$(PROFILE)/all.profdata" $(CARGO) build --release --locked -p tenfold --target $(HOST)
	@echo $(RELEASE)

origin:
	$(CARGO) build --release --locked --manifest-path bench/origin/Cargo.toml --target-dir $(TARGET)/bench

deps: ## Install what the tests need (Debian's apt, npm, Go and pip)
	scripts/deps

test: deps ## Run every test
	scripts/page
	@CARGO="$(CARGO)" scripts/test
	TENFOLD=$(abspath $(TARGET))/debug/tenfold scripts/page test

# What is skipped starts Python, script(1) or openssl.
unit: ## Run the tests that need no other program and measure nothing (a minute after the build)
	$(CARGO) test --workspace --locked --lib --bins -q -- --skip driver::process::tests \
		--skip a_panic_restores_the_terminal --skip examples_in_the_guides_are_valid

bench-choosing: ## Print what a choice of each policy costs, and compare numbers of slots
	$(CARGO) test --release --locked -q -p balancer --lib -- --ignored --nocapture choosing_costs slots_are_compared

soak: ## Run faults and attacks under load, SOAK_SECONDS each, a real systemd, and autobahn's long cases (an hour in all)
	scripts/deps soak
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --release --locked -p tenfold --test stories -- --test-threads=1 faults:: attacks::
	$(CARGO) test --release --locked -p tenfold --test stories systemd:: -- --ignored
	$(CARGO) test --release --locked -p tenfold --test stories docker:: -- --ignored
	$(CARGO) test --release --locked -p tenfold --test stories open_connections:: -- --ignored
	$(CARGO) test --release --locked -p balancer --test stories websocket:: -- --ignored

# Safe Rust has no use for a sanitizer, and is fuzzed faster without one.
fuzz: ## Fuzz parsers and exchanges, FUZZ_SECONDS each (nightly Rust; cargo install cargo-fuzz)
	@for target in request response chunked exchange forwarded proxy_header routes; do \
	  mkdir -p fuzz/corpus/$$target fuzz/seeds/$$target && \
	  $(CARGO) +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	    -max_len=1024 -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

lint: ## Format and lints, as CI wants them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/page lint

fmt: ## Format
	$(CARGO) fmt --all
	scripts/page format

# WORKS="small tls" and ROUNDS=3 narrow these; see bench/README.md.
bench-balancer: release ## Measure the balancer beside nginx, HAProxy, Caddy and Pingora (40 min)
	scripts/deps bench-balancer
	$(CARGO) build --release --locked --manifest-path bench/pingora/Cargo.toml --target-dir $(TARGET)/bench
	$(CARGO) build --release --locked -p load --example arrivals
	TENFOLD=$(RELEASE) ORIGIN=$(ORIGIN) \
		PINGORA=$(TARGET)/bench/release/pingora-peer ARRIVALS=$(TARGET)/release/examples/arrivals PYTHONPATH=bench python3 -B bench/balancer

bench-load: release ## Measure the load generator beside wrk, h2load, oha, k6, Locust and others (25 min)
	scripts/deps bench-load
	TENFOLD=$(RELEASE) ORIGIN=$(ORIGIN) \
		PYTHONPATH=bench python3 -B bench/load

# APPS="cpu lock", SWEEP=5 (seconds for a count) and ROUNDS=3 narrow and widen it.
bench-accuracy: build ## Measure 17 apps at every count, and compare what plans predict (40 min)
	scripts/deps bench-accuracy
	TENFOLD=$(TENFOLD) PYTHONPATH=bench python3 -B bench/accuracy

# SYSTEMS="fibscale search" measures only these, and keeps what was measured of the others; see bench/README.md.
systems: build ## Measure five published systems, and compare each row and conclusion (25 min)
	scripts/deps bench-accuracy
	TENFOLD=$(TENFOLD) PYTHONPATH=bench python3 -B bench/systems

engines: build ## Measure the published systems under systemd, in Docker and Compose, and behind nginx (25 min)
	scripts/deps
	TENFOLD=$(TENFOLD) PYTHONPATH=bench python3 -B bench/engines

# APPS="express php" measures only these, and keeps what was measured of the others; SWEEP=8 (seconds for a count).
foreign: build ## Plan 18 real stacks beside sweeps by another generator (35 min)
	scripts/deps foreign
	TENFOLD=$(TENFOLD) PYTHONPATH=bench python3 -B bench/foreign

# ROUNDS=2 and WINDOW=3 narrow it.
bench-drivers: build ## Measure an instance as a process, a service and a container, and behind nginx and HAProxy (6 min)
	scripts/deps
	TENFOLD=$(TENFOLD) APP=.deps/bin/contained PYTHONPATH=bench python3 -B bench/drivers

# WINDOW=10 and PLANS=1 narrow it.
bench-page: build ## Measure what the live page costs the server, the browser and a plan (15 min)
	scripts/deps
	TENFOLD=$(TENFOLD) PATH="$(abspath .deps/node/bin):$$PATH" PYTHONPATH=bench python3 -B bench/page

bench-docs: ## Put the tables of the last measurements into docs/
	PYTHONPATH=bench python3 -B bench/balancer render
	PYTHONPATH=bench python3 -B bench/load render
	PYTHONPATH=bench python3 -B bench/accuracy render
	PYTHONPATH=bench python3 -B bench/drivers render
	PYTHONPATH=bench python3 -B bench/page render
	PYTHONPATH=bench python3 -B bench/systems render
	PYTHONPATH=bench python3 -B bench/engines render
	PYTHONPATH=bench python3 -B bench/foreign render

install: build ## Install the program to ~/.cargo/bin
	$(CARGO) install --locked --path crates/tenfold

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf web/node_modules web/test-results web/dist/report.* examples/search/node_modules tests/apps/postgres/node_modules tests/foreign/*/node_modules examples/static-cost/static
