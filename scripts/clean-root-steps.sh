#!/bin/sh
# What scripts/clean-root.sh does within the bare system. Not to be run anywhere else: it installs and
# removes packages.
#
#   clean-root-steps.sh package|demo|test
set -eu

user=newcomer
step() { printf '\n==> %s\n' "$*"; }
fail() {
    printf 'clean-root: %s\n' "$*" >&2
    exit 1
}
apt() { # what it says is of interest where it fails
    DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >/tmp/apt.log 2>&1 || {
        cat /tmp/apt.log
        fail "apt-get $*"
    }
}
as_user() { runuser -l "$user" -c "$1"; }
# Cargo's directory is the same for both: what one has fetched and built the other need not.
# shellcheck disable=SC2016 # for the shell that runs it
demo_line='cd /srv/linkweir && CARGO_HOME=/srv/cargo PATH=/opt/rust/bin:$PATH make demo'
owned_by() { chown -R "$1" /srv/linkweir /srv/cargo; }

# The line "apt-get install ..." that a program said is missing; options of apt that it names stay.
line_of() { sed -n 's/.*\(apt-get \(update\|install\) .*\)/\1/p' "$1" | tail -n 1; }

# Every file with our name in it; pages that man keeps are man's own.
ours() { find / -xdev -path /var/cache/man -prune -o -name '*linkweir*' -print | sort; }

# A lab run by someone ("" is root) must end without disagreement.
laboratory() {
    words="linkweir lab web --duration 5s --rate 300 --no-console --quiet"
    step "${1:-root}: $words"
    if [ -n "$1" ]; then as_user "$words"; else $words; fi
}

try_package() {
    step "install"
    ours >/tmp/before
    apt install -y /root/linkweir.deb
    linkweir --version

    step "manual pages and completions"
    apt install -y --no-install-recommends man-db
    man -P cat linkweir-http | head -n 12
    for command in http flows feed gateway load model archive lab; do
        man -w "linkweir-$command" >/dev/null || fail "no manual page of $command"
    done
    for file in bash-completion/completions/linkweir zsh/vendor-completions/_linkweir fish/vendor_completions.d/linkweir.fish \
        linkweir/grafana/http.json linkweir/prometheus/linkweir.rules.yml; do
        [ -s "/usr/share/$file" ] || fail "/usr/share/$file is missing"
    done
    bash -c '. /usr/share/bash-completion/completions/linkweir; complete -p linkweir'

    step "units: as systemd reads them, and none is enabled"
    systemd-analyze verify /usr/lib/systemd/system/linkweir-gateway.service \
        /usr/lib/systemd/system/linkweir-http@lo.service /usr/lib/systemd/system/linkweir-flows@lo.service
    [ -z "$(find /etc/systemd /etc/init.d /etc/rc?.d -name '*linkweir*')" ] || fail "a service is enabled"

    step "the gateway has a user of its own"
    getent passwd linkweir || fail "no user linkweir"
    getent group linkweir || fail "no group linkweir"

    step "what the laboratory misses is named"
    linkweir lab web >/tmp/said 2>&1 && fail "it ran without a web server"
    cat /tmp/said
    line=$(line_of /tmp/said)
    [ -n "$line" ] || fail "no line to run"
    # shellcheck disable=SC2086 # the words of the line
    apt ${line#apt-get } clamav-daemon -y --no-install-recommends
    laboratory ""
    laboratory "$user"

    step "purge"
    apt purge -y linkweir
    ours >/tmp/after
    diff /tmp/before /tmp/after || fail "left behind"
    [ -z "$(ls /dev/shm)" ] || fail "left in /dev/shm: $(ls /dev/shm)"
    # By the shell alone, so that there is nobody but itself.
    set -- /proc/[0-9]*
    [ $# -eq 1 ] || fail "processes are left: $(cat /proc/[0-9]*/comm)"
    echo "nothing is left"
}

# `make demo` by someone must leave its files and a table without disagreement.
demo() {
    step "${1:-root}: make demo"
    begun=$(date +%s)
    if [ -n "$1" ]; then as_user "$demo_line"; else sh -c "$demo_line"; fi
    echo "took $(($(date +%s) - begun)) s"
    grep -q '"agree": *true' /srv/linkweir/out/demo/lab.json || fail "the lab's table disagrees"
    rm -r /srv/linkweir/out
}

try_demo() {
    # As the README says.
    apt install -y make ca-certificates
    mkdir /srv/cargo

    step "$user, without sudo and without a compiler: make demo names what is missing"
    owned_by "$user"
    as_user "$demo_line" >/tmp/said 2>&1 && fail "it built without a compiler"
    cat /tmp/said
    line=$(line_of /tmp/said)
    [ -n "$line" ] || fail "no line to run"

    owned_by root
    demo ""

    step "the line that $user was told installs the same: nothing is new"
    sh -c "$line --dry-run" | tee /tmp/said
    grep -q ' 0 newly installed' /tmp/said || fail "root's make demo and the line differ"

    owned_by "$user"
    demo "$user"
}

try_test() {
    # As the README says.
    apt install -y make ca-certificates
    mkdir /srv/cargo
    step "make test"
    begun=$(date +%s)
    sh -c "${demo_line% demo} test"
    echo "took $(($(date +%s) - begun)) s"
}

apt update
useradd --create-home --shell /bin/bash "$user"
"try_$1"
