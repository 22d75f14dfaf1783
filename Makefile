# `make help` lists the targets. `make demo` and `make test` are all a newcomer needs.
SHELL := /bin/sh
# A Rust toolchain that rustup has just installed is found without a new login.
export PATH := $(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local
OUT ?= out/demo

.DEFAULT_GOAL := help
.PHONY: help demo test build install bench bench-live oracle check ci fuzz clean setup-build setup-test setup-ci setup-bench

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## install what is missing, build, measure the bundled capture; results in out/demo
	@scripts/demo.sh "$(TARGET)/release/linkweir" "$(OUT)"

test: setup-test ## install what the tests need, run all of them
	cargo test --workspace --locked

build: setup-build ## build the release binary
	cargo build --release --locked --package linkweir

install: build ## install the binary and its manual pages (PREFIX=/usr/local)
	install -D -m 755 "$(TARGET)/release/linkweir" "$(DESTDIR)$(PREFIX)/bin/linkweir"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	"$(TARGET)/release/linkweir" man "$(DESTDIR)$(PREFIX)/share/man/man1"

bench: build setup-bench ## measure speed and memory side by side with other tools
	cargo xtask bench http

bench-live: build setup-bench ## live capture, shares of workers and consumers, the feeder's rings; needs root
	cargo xtask bench live

oracle: build ## compare with tshark's results on a folder of captures, if it is there
	cargo xtask oracle

check: setup-build ## the quick checks: format, lints, sizes, dependencies
	cargo xtask check

ci: ## everything that is checked before a change is accepted
	.ci/run

fuzz: setup-ci ## a minute of fuzzing per target
	cargo xtask fuzz-smoke --seconds 60

clean: ## remove what was built and written
	rm -rf "$(TARGET)" fuzz/target out

setup-build setup-test setup-ci setup-bench:
	@scripts/setup.sh $(@:setup-%=%)
