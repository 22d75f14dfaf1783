#!/bin/sh
# Tries the package, or a checkout, in a bare Debian 12 that is made for it and goes with it.
#
#   scripts/clean-root.sh package FILE.deb    install, use as root and as an ordinary user, purge
#   scripts/clean-root.sh demo                `make demo` of this checkout, as root and as an ordinary user
#   scripts/clean-root.sh test                `make test` of this checkout, as root
#
# Needs root and debootstrap. The mirror is that of this machine's apt, or $DEBIAN_MIRROR. KEEP=1 leaves
# the root for a look. The mounts are in a mount namespace of their own and the processes in a PID
# namespace: both are gone when this ends, however it ends.
set -eu
cd "$(dirname "$0")/.."
self=scripts/clean-root.sh

suite=bookworm
usage() {
    sed -n '2,/^set/s/^# *//p' "$self" >&2
    exit 2
}
say() { printf 'clean-root: %s\n' "$*" >&2; }

# The second half, in the namespaces: root directory, then the words for clean-root-steps.sh.
if [ "${1:-}" = --inside ]; then
    root=$2
    shift 2
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null zero full random urandom tty; do
        : >"$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    if [ -n "${TOOLCHAIN:-}" ]; then
        mkdir -p "$root/opt/rust"
        mount --bind "$TOOLCHAIN" "$root/opt/rust"
        mount -o remount,bind,ro "$root/opt/rust"
    fi
    # Not chroot: a process with another root than its mount namespace's gets no user namespace.
    mkdir "$root/.machine"
    cd "$root"
    pivot_root . .machine
    umount -l /.machine
    rmdir /.machine
    exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        sh /root/clean-root-steps.sh "$@"
fi

mode=${1:-}
case $mode in
package)
    package=${2:-}
    [ -f "$package" ] || usage
    ;;
demo | test) ;;
*) usage ;;
esac
[ "$(id -u)" -eq 0 ] || { say "this needs root"; exit 1; }
command -v debootstrap >/dev/null || { say "not installed; run: apt-get install debootstrap"; exit 1; }

# shellcheck disable=SC2016 # apt's own variable
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Created-By: Packages' | head -n 1)}
[ -n "$mirror" ] || { say "apt has no mirror with $suite here; name one in DEBIAN_MIRROR"; exit 1; }

directory=$(mktemp -d "${TMPDIR:-/var/tmp}/linkweir-root-XXXXXX")
root=$directory/root
inside=
remove() {
    if [ -n "$inside" ]; then
        kill -KILL "$inside" 2>/dev/null || true
        wait "$inside" || true
    fi
    if [ -n "${KEEP:-}" ]; then say "left: $directory"; else rm -rf --one-file-system "$directory"; fi
}
trap remove EXIT
trap 'exit 130' INT TERM

say "a bare $suite in $root"
if ! debootstrap "$suite" "$root" "$mirror" >"$directory/debootstrap.log" 2>&1; then
    tail -n 20 "$directory/debootstrap.log" >&2
    exit 1
fi
# No service may start: its sockets would be those of the machine.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# How this machine reaches package archives: names, apt's proxy, authorities that its administrator added.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
apt-config dump --format '%F "%v";%n' Acquire::http::Proxy Acquire::https::Proxy >"$root/etc/apt/apt.conf.d/01machine"
mkdir -p "$root/usr/local/share/ca-certificates"
for authority in /usr/local/share/ca-certificates/*.crt; do
    [ ! -f "$authority" ] || cp "$authority" "$root/usr/local/share/ca-certificates/"
done

cp scripts/clean-root-steps.sh "$root/root/"
TOOLCHAIN=
case $mode in
package) cp "$package" "$root/root/linkweir.deb" ;;
demo | test)
    TOOLCHAIN=$(rustc --print sysroot)
    mkdir "$root/srv/linkweir"
    git ls-files -z | tar --create --null --files-from=- --ignore-failed-read | tar --extract --no-same-owner -C "$root/srv/linkweir"
    ;;
esac
export TOOLCHAIN
# In the background: a shell that waits for a command in the foreground hears no signal.
unshare --mount --propagation private --pid --fork --kill-child -- "$self" --inside "$root" "$mode" &
inside=$!
wait "$inside"
inside=
say "$mode: all is as it should be"
