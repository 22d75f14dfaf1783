#!/bin/sh
# Installs the Debian packages that a task needs and that are missing, and checks the Rust toolchain.
#
#   scripts/setup.sh build|demo|test|cluster|ci|bench|deb|root [--check]
#
# build, test and bench are what they say; demo: the bundled capture and the laboratory; cluster: the test
# of contrib/spark; ci: everything that .ci/run does; deb: the Debian package; root: trying it in a bare
# Debian.
#
# As root it calls apt-get, as an ordinary user sudo apt-get. Where neither is possible it prints the
# line to run and goes on if the task can do without. With --check it installs nothing: it prints the
# line, and its exit status says whether anything is missing.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

task=${1:-build}
# What each task needs, and the command by which to see that it is there where dpkg is not.
# librdkafka is C, and asks for a C++ compiler too.
base="gcc:cc g++:c++ make:make libc6-dev: libssl-dev: pkg-config:pkg-config ca-certificates:"
lab="iproute2:ip ethtool:ethtool util-linux:unshare procps:sysctl iptables:iptables nftables:nft nginx:nginx clamav-daemon:clamd"
tests="$lab aria2:aria2c opentracker:opentracker mktorrent:mktorrent nfdump:nfcapd rsyslog:rsyslogd rrdtool:rrdtool rrdcached:rrdcached chromium:chromium python3-venv: prometheus:prometheus systemd:systemd-analyze openssl:openssl c-icap:c-icap libc-icap-mod-virus-scan: tshark:tshark libpcap0.8: gzip:gzip zstd:zstd xz-utils:xz lz4:lz4 wrk:wrk curl:curl nghttp2-client:nghttp tcpdump:tcpdump openjdk-17-jre-headless:java maven:mvn"
case $task in
build) needed=$base ;;
demo) needed="$base $lab" ;;
test) needed="$base $tests" ;;
cluster) needed="$base python3-venv: openjdk-17-jre-headless:java" ;;
ci) needed="$base $tests valgrind:valgrind" ;;
bench) needed="$base $lab tshark:tshark wrk:wrk curl:curl tcpdump:tcpdump httpry:httpry tcpflow:tcpflow argus-server:argus argus-client:ra tcptrace:tcptrace softflowd:softflowd nfdump:nfpcapd squid:squid apache2-utils:ab httperf:httperf nghttp2-client:h2load openssl:openssl" ;;
deb) needed="$base dpkg-dev:dpkg-shlibdeps man-db:man lintian:lintian" ;;
root) needed="$base dpkg-dev:dpkg-shlibdeps debootstrap:debootstrap git:git tar:tar util-linux:unshare" ;;
*)
    echo "usage: scripts/setup.sh build|demo|test|cluster|ci|bench|deb|root" >&2
    exit 2
    ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }

installed() { # package name; newer releases call some libraries NAMEt64
    for name in "$1" "$1t64"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
    done
    return 1
}

list_missing() {
    for entry in $needed; do
        package=${entry%%:*}
        command=${entry#*:}
        if command -v dpkg-query >/dev/null 2>&1; then
            # A compiler or a tool that came some other way will do as well.
            installed "$package" || { [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; } ||
                printf '%s ' "$package"
        else
            [ -z "$command" ] || command -v "$command" >/dev/null 2>&1 || printf '%s ' "$package"
        fi
    done
}

apt() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive apt-get "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive apt-get "$@"
    fi
}

may_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" -eq 0 ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    sudo -n true 2>/dev/null && return 0
    # sudo may ask for a password only where somebody can answer.
    [ -t 0 ] && [ -t 2 ] && sudo -v
}

# Debian starts the services of what it installs; here the programs alone are wanted.
say_services() {
    for entry in nginx:nginx nfdump:nfdump rrdcached:rrdcached rsyslog:rsyslog squid:squid prometheus:prometheus opentracker:opentracker \
        "clamav-daemon:clamav-daemon clamav-freshclam"; do
        case " $missing " in
        *" ${entry%%:*} "*) say "the service of ${entry%%:*} is not needed: systemctl disable --now ${entry#*:}" ;;
        esac
    done
}

say_missing() {
    say "still missing; as root, run:"
    say "    apt-get update && apt-get install --no-install-recommends $missing"
}

install_packages() {
    missing=$(list_missing)
    missing=${missing% }
    [ -n "$missing" ] || return 0
    say "missing: $missing"
    if may_install; then
        say "installing them: apt-get install --no-install-recommends $missing"
        # shellcheck disable=SC2086 # a list of package names
        if apt -q update >&2 && apt -q install -y --no-install-recommends $missing >&2; then
            say_services
        else
            say "apt-get failed"
        fi
    fi
    missing=$(list_missing)
    missing=${missing% }
    [ -n "$missing" ] || return 0
    say_missing
    if ! command -v cc >/dev/null 2>&1; then
        say "without a C compiler nothing can be linked: stopping"
        exit 1
    fi
    say "going on without"
}

wanted_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }

install_rust_line="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal"

check_rust() {
    wanted=$(wanted_rust)
    if ! command -v cargo >/dev/null 2>&1; then
        say "there is no Rust toolchain (cargo $wanted or newer is needed). This line installs one (it needs curl and ca-certificates):"
        say "    $install_rust_line"
        say "then run make again"
        exit 1
    fi
    # With rustup this also fetches the pinned toolchain on first use.
    if ! version=$(cargo --version); then
        say "cargo is there but does not run (message above); this line installs a toolchain:"
        say "    $install_rust_line"
        exit 1
    fi
    version=${version#cargo }
    version=${version%% *}
    oldest=$(printf '%s\n%s\n' "$wanted" "${version%%-*}" | sort -V | head -n 1)
    if [ "$oldest" != "$wanted" ]; then
        say "cargo $version is too old, $wanted or newer is needed. This line installs a current one beside it:"
        say "    $install_rust_line"
        say "then run make again"
        exit 1
    fi
}

# What pip installs, into a directory of tests/ of its own: DIRECTORY, what it is for, what else it needs.
install_python() {
    here=tests/$1
    wanted=$(cat "$here/requirements.txt")
    [ "$(cat "$here/.venv/installed" 2>/dev/null)" = "$wanted" ] && return 0
    for command in python3 $3; do command -v "$command" >/dev/null 2>&1 || return 0; done
    # shellcheck disable=SC2086 # a list, in one line
    say "installing" $wanted "into $here/.venv, for $2"
    if python3 -m venv "$here/.venv" >&2 &&
        "$here/.venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2; then
        printf '%s\n' "$wanted" >"$here/.venv/installed"
    else
        say "that failed; $2 will be left out"
    fi
}

# The broker of the tests: its jars, from Maven Central. Java 17 or newer runs it.
install_broker() {
    here=tests/kafka
    wanted=$(cksum <"$here/pom.xml")
    [ "$(cat "$here/libs/installed" 2>/dev/null)" = "$wanted" ] && return 0
    command -v mvn >/dev/null 2>&1 && command -v java >/dev/null 2>&1 || return 0
    say "installing a Kafka broker into $here/libs (43 MB), for its tests"
    rm -rf "$here/libs"
    if mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory=libs >&2; then
        printf '%s\n' "$wanted" >"$here/libs/installed"
    else
        say "that failed; the tests with a broker will be skipped"
    fi
}

# The package is made by a program of Rust's own.
install_cargo_deb() {
    command -v cargo-deb >/dev/null 2>&1 && return 0
    say "installing cargo-deb $cargo_deb (about two minutes): cargo install cargo-deb --locked --version $cargo_deb"
    cargo install cargo-deb --quiet --locked --version "$cargo_deb" >&2
}
cargo_deb=3.8.0

if [ "${2:-}" = --check ]; then
    missing=$(list_missing)
    missing=${missing% }
    [ -n "$missing" ] || exit 0
    say_missing
    exit 1
fi
check_rust
install_packages
case $task in
test | ci)
    # Playwright drives the Debian Chromium; it brings no browser of its own.
    install_python browser "the test of the page" chromium
    # Those who read the records: ClickHouse as a library, DuckDB, pandas, Arrow (1.2 GB).
    install_python engines "the tests with real engines" ""
    install_broker
    ;;
esac
case $task in
ci) install_python policy "the check of licences and sources" "" ;;
cluster)
    install_python cluster "the test of the cluster (Spark with its daemons, 1 GB)" ""
    # There is nothing else that this task is for.
    [ -f tests/cluster/.venv/installed ] || exit 1
    ;;
deb | root) install_cargo_deb ;;
esac
