#!/bin/sh
# Builds the Debian package from a checkout, into out/package.
#
#   scripts/package.sh
#
# The manual pages, completions and dashboards are those that the program itself prints; the changelog has the
# date of the last commit, so that the same sources give the same package.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=out/package
linkweir=$target/release/linkweir

cargo build --release --locked --package linkweir --package linkweir-lab
rm -rf "$out"
mkdir -p "$out/completions" "$out/grafana"
"$linkweir" man "$out/man"
"$linkweir" completions bash >"$out/completions/linkweir.bash"
"$linkweir" completions zsh >"$out/completions/_linkweir"
"$linkweir" completions fish >"$out/completions/linkweir.fish"
for command in http flows gateway load; do
    "$linkweir" metrics "$command" --format grafana >"$out/grafana/$command.json"
done
scripts/licenses.sh >"$out/third-party-licenses.txt"
gzip -9n "$out/third-party-licenses.txt"
gzip -9nc CHANGELOG.md >"$out/changelog.gz"

# A checkout without history has the date of its newest entry of the changelog.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' app/cli/Cargo.toml)
cat >"$out/changelog" <<END
linkweir ($version-1) unstable; urgency=medium

  * The changes of this version are in CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

cargo deb --package linkweir --no-build --locked --strip --output "$out/"
package=$(ls "$out"/linkweir_*.deb)
printf '\n'
dpkg-deb --info "$package"
dpkg-deb --contents "$package"
if command -v lintian >/dev/null 2>&1; then
    printf '\nlintian:\n'
    lintian --fail-on error --tag-display-limit 0 "$package"
fi
printf '\n%s\n' "$package"
