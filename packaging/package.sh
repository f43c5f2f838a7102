#!/usr/bin/env bash
# package.sh OUT [--without-cuda]: the last commit (or $COMMIT) as a source release, Debian packages, lists of what is in them, and a container
# image, with checksums, in the folder OUT. Called by ./dev package. Nothing but the commit goes in: the same
# commit gives the same bytes in any folder (packaging/README.md).
set -euo pipefail
source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
out=$(realpath -m "${1:?the folder for what is made}")
cuda=${2:-}
commit=$(git -C "$source" rev-parse "${COMMIT:-HEAD}")

say() { printf 'package: %s\n' "$*" >&2; }

# The version of the project; of a commit that is no release, one before it that rises with the commits.
version_of() {
    local base
    base=$(git -C "$source" show "$commit:meson.build" | sed -n "s/^  version: '\(.*\)',/\1/p")
    if [ "$(git -C "$source" describe --tags --exact-match "$commit" 2>/dev/null)" = "v$base" ]; then
        echo "$base"
    else
        echo "$base~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S).${commit:0:8}"
    fi
}

export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct "$commit")
version=$(version_of)
umask 022

[ -z "$(git -C "$source" status --porcelain)" ] || say "what is not committed is left out"
mkdir -p "$out"
work=$(mktemp -d /var/tmp/assay-package-XXXXXX)
trap 'rm -rf "$work"' EXIT
log=$work/log

say "assay $version: source release"
release=$out/assay-$version.tar.gz
git -C "$source" archive --format=tar --prefix="assay-$version/" "$commit" | gzip -9n >"$release"

tree=$work/assay
mkdir "$tree"
tar -xzf "$release" -C "$tree" --strip-components 1
cp -R "$tree/packaging/debian" "$tree/debian"
printf 'assay (%s) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md.\n\n -- %s  %s\n' "$version" \
    "The Assay developers <assay@assay.invalid>" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$tree/debian/changelog"

say "Debian packages (the log is $log)"
profiles=()
if [ -z "$cuda" ] && { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null; then
    profiles=(--build-profiles=pkg.assay.cuda)
fi
cd "$tree"
dpkg-buildpackage --build=binary --no-sign --no-pre-clean "${profiles[@]}" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    say "the packages could not be built"
    exit 1
}
mv "$work"/*.deb "$out/"

say "lists of parts (SPDX)"
python3 packaging/sbom.py "$version" "$out"
say "container image"
python3 packaging/image.py "$version" "$out"
(cd "$out" && sha256sum -- *"$version"* | LC_ALL=C sort -k2 >"assay-$version.sha256")
say "done: $out"
ls -l "$out" >&2
