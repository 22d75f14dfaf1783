# `make help` lists the targets. `make demo` and `make test` are all a newcomer needs.
SHELL := /bin/sh
# A Rust toolchain that rustup has just installed is found without a new login.
export PATH := $(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local
OUT ?= out/demo
# More words for the demo's `linkweir lab web`, as LAB='--rate 300 --duration 5s'.
LAB ?=
# The program, and the laboratory, which it starts and which stands beside it.
PROGRAMS = --package linkweir --package linkweir-lab

.DEFAULT_GOAL := help
.PHONY: help demo test try test-cluster test-soak build install uninstall deb test-clean-root bench bench-live oracle check ci fuzz clean
.PHONY: $(addprefix setup-,build demo test cluster ci bench deb root)

SHARE = $(DESTDIR)$(PREFIX)/share
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The build of the tests: quick to make, and quick enough to show. `make install` optimises fully.
demo: setup-demo ## install what is missing, build, measure the bundled capture, run the laboratory; out/demo
	@echo "demo: compiling linkweir and its libraries as for tests: about 4 minutes on 2 cores the first time"
	cargo build --locked $(PROGRAMS)
	@scripts/demo.sh "$(TARGET)/debug/linkweir" "$(OUT)" $(LAB)

test: setup-test ## install what the tests need, run all of them (SEED=today: property tests with cases of the day)
	cargo xtask test $(if $(SEED),--seed $(SEED))

try: setup-build ## build nearly as fast as a release, in less time, and measure the bundled capture
	cargo build --profile dev-fast --locked $(PROGRAMS)
	@mkdir -p "$(OUT)"
	"$(TARGET)/dev-fast/linkweir" http -r app/testkit/captures/nginx-demo.pcap.gz --summary "$(OUT)/try.json" -w "$(OUT)/try.txt" --overwrite

test-cluster: setup-cluster ## run the Spark job on a cluster of two workers, compare with one process (minutes, 1 GB)
	LINKWEIR_CLUSTER=1 cargo test --package linkweir --locked --test services cluster -- --nocapture

test-soak: setup-build ## play more than three years in packet time into an archive: its size, the memory (minutes)
	LINKWEIR_SOAK=all cargo test --package linkweir --locked --test commands soak -- --nocapture

build: setup-build ## build the release binaries
	cargo build --release --locked $(PROGRAMS)

install: build ## install the binaries, manual pages, completions, systemd units, alert rules and dashboards (PREFIX=/usr/local, DESTDIR)
	install -D -m 755 -t "$(DESTDIR)$(PREFIX)/bin" "$(TARGET)/release/linkweir" "$(TARGET)/release/linkweir-lab"
	install -d "$(SHARE)/man/man1" "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" \
		"$(SHARE)/fish/vendor_completions.d" "$(SHARE)/doc/linkweir/examples" "$(SHARE)/linkweir/grafana" "$(UNITS)"
	"$(TARGET)/release/linkweir" man "$(SHARE)/man/man1"
	"$(TARGET)/release/linkweir" completions bash >"$(SHARE)/bash-completion/completions/linkweir"
	"$(TARGET)/release/linkweir" completions zsh >"$(SHARE)/zsh/site-functions/_linkweir"
	"$(TARGET)/release/linkweir" completions fish >"$(SHARE)/fish/vendor_completions.d/linkweir.fish"
	install -m 644 packaging/*.toml "$(SHARE)/doc/linkweir/examples"
	install -D -m 644 -t "$(SHARE)/linkweir/prometheus" packaging/prometheus/*.yml
	for command in http flows gateway load; do \
		"$(TARGET)/release/linkweir" metrics $$command --format grafana >"$(SHARE)/linkweir/grafana/$$command.json" || exit 1; \
	done
	install -D -m 644 packaging/sysusers.d/linkweir.conf "$(DESTDIR)$(PREFIX)/lib/sysusers.d/linkweir.conf"
	install -D -m 644 packaging/tmpfiles.d/linkweir.conf "$(DESTDIR)$(PREFIX)/lib/tmpfiles.d/linkweir.conf"
	for unit in packaging/systemd/*.service; do \
		sed 's|/usr/bin/linkweir|$(PREFIX)/bin/linkweir|' "$$unit" >"$(UNITS)/$${unit##*/}" || exit 1; \
	done

uninstall: ## remove what `make install` put there
	rm -f "$(DESTDIR)$(PREFIX)/bin/linkweir" "$(DESTDIR)$(PREFIX)/bin/linkweir-lab" "$(SHARE)"/man/man1/linkweir.1 "$(SHARE)"/man/man1/linkweir-*.1 \
		"$(SHARE)/bash-completion/completions/linkweir" "$(SHARE)/zsh/site-functions/_linkweir" \
		"$(SHARE)/fish/vendor_completions.d/linkweir.fish" \
		"$(UNITS)/linkweir-gateway.service" "$(UNITS)/linkweir-http@.service" "$(UNITS)/linkweir-flows@.service" \
		"$(DESTDIR)$(PREFIX)/lib/sysusers.d/linkweir.conf" \
		"$(DESTDIR)$(PREFIX)/lib/tmpfiles.d/linkweir.conf"
	rm -rf "$(SHARE)/doc/linkweir" "$(SHARE)/linkweir"

deb: setup-deb ## build the Debian package, into out/package
	scripts/package.sh

test-clean-root: setup-root deb ## try the package and `make demo` in a bare Debian 12 made for it; needs root
	scripts/clean-root.sh package out/package/linkweir_*.deb
	scripts/clean-root.sh demo

bench: build setup-bench ## measure speed and memory side by side with other tools
	cargo xtask bench http

bench-live: build setup-bench ## live capture, shares of workers and consumers, the feeder's rings; needs root
	cargo xtask bench live

oracle: build ## compare with tshark's results on a directory of captures, if it is there
	cargo xtask oracle

check: setup-build ## the quick checks: format, lints, sizes, dependencies
	cargo xtask check

ci: ## everything that is checked before a change is accepted
	.ci/run

fuzz: setup-ci ## a minute of fuzzing per target
	cargo xtask fuzz-smoke --seconds 60

clean: ## remove what was built and written
	rm -rf "$(TARGET)" out

setup-build setup-demo setup-test setup-cluster setup-ci setup-bench setup-deb setup-root:
	@scripts/setup.sh $(@:setup-%=%)
