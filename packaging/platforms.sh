# shellcheck shell=bash disable=SC2034
# ./dev platform: the unit tests where people run Assay and the developers do not. Read by ./dev, whose functions it uses.
#
#   clang     the whole tree by clang, warnings as errors
#   arm64     compiled for arm64 against the packages of Debian in a folder, run by qemu-user; no package of arm64 is
#             installed on this machine, because libpq-dev is for one architecture at a time
#   debian13  the whole tree by the compiler and with the libraries of Debian 13, in a folder of its own, without a network;
#             Meson finds ccache in there, whose cache stays beside the build
#   here      what debian13 runs in there
#
# What is fetched comes from where apt of this machine gets its packages.

NEED_CLANG='clang:clang'
NEED_ARM64='aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static mmdebstrap:mmdebstrap'
NEED_DEBIAN13='mmdebstrap:mmdebstrap systemd-nspawn:systemd-container'
# Half the time of a build; the kernels have -O3 always.
PLATFORM_OPTIONS=(-Dweb=disabled -Dcuda=disabled -Ddebug=false -Doptimization=1)
ARM64_ROOMS='base kernels data model search' # elsewhere, tests start programs, which only a kernel with binfmt_misc could
# qemu takes up to 10 times as long (of processor: 5 in kernels_gemm, 10 in kernels_losses): what takes 30 s, by its priority
# (tests/meson.build, `longest`), would take 5 minutes and is left out.
ARM64_LONGEST=29

# The libraries' packages of NEED_BUILD, with commas.
packages_of_libraries() {
    local entry
    for entry in $NEED_BUILD; do
        case $entry in pc:*) printf '%s,' "${entry##*:}" ;; esac
    done
}

# All that a build needs, with commas, but what the dashboard needs.
packages_of_build() {
    local entry
    for entry in $NEED_BUILD; do
        case ${entry##*:} in nodejs | npm) ;; *) printf '%s,' "${entry##*:}" ;; esac
    done
}

own_release() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# sources_of RELEASE: "deb URI SUITE COMPONENT" for each place where apt of this machine gets its own release.
sources_of() {
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        sed "s| $(own_release)\([ -]\)| $1\1|" | sort -u
}

# debian_tree DIR RELEASE PACKAGES [options of mmdebstrap…]: a folder with these packages, once. What a crash leaves is made
# again, so dpkg need not wait for the disk after each file.
debian_tree() {
    local dir=$1 release=$2 packages=$3
    shift 3
    [ ! -d "$dir" ] || return 0
    say "fetching packages of $release into $dir"
    rm -rf "$dir.part"
    sources_of "$release" | mmdebstrap --quiet --include="$packages" --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' "$@" "$release" "$dir.part" - ||
        die "the packages of $release could not be fetched"
    mv "$dir.part" "$dir"
}

# tests_of BUILD SECONDS ROOM…: the unit tests of these rooms that are programs of the build, need no other program of it, and
# have at most this priority, which is about the seconds that they take.
tests_of() {
    python3 - "$@" <<'PY'
import json, os, subprocess, sys
build, seconds, rooms = os.path.realpath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
ask = lambda what: json.loads(subprocess.check_output(["meson", "introspect", build, what]))
programs = {t["id"]: t["filename"] for t in ask("--targets") if t["type"] == "executable"}
for t in ask("--tests"):
    alone = all(set(programs.get(d, [])) <= set(t["cmd"]) for d in t["depends"])
    unit = "assay:unit" in t["suite"] and t["name"].split("_")[0] in rooms and any(c.startswith(build) for c in t["cmd"])
    if unit and alone and t["priority"] <= seconds:
        print(t["name"])
PY
}

# platform_here DIR [SUITE or TEST…]: the whole tree by the compiler that CC names, and its unit tests; or these tests, with
# what they need.
platform_here() {
    local dir=$1 tests targets=()
    shift
    configure "$dir" "${PLATFORM_OPTIONS[@]}"
    mapfile -t tests < <(tests_in "$dir" "${@:-unit}")
    [ ${#tests[@]} -gt 0 ] || die "no tests in $*"
    [ $# -eq 0 ] || read -ra targets < <(targets_of "$dir" "$@")
    compile "$dir" "${targets[@]}"
    run_suites "$dir" "${tests[@]}"
}

platform_clang() {
    local cache
    install_missing "$NEED_BUILD $NEED_CLANG"
    cache=$(command -v ccache || true)
    CC="${cache:+ccache }clang" platform_here "$BUILD-clang" "$@"
}

platform_debian13() {
    local tree dir=$BUILD-debian13
    [ "$(id -u)" -eq 0 ] || die "platform debian13 needs root, for processes in a folder of their own"
    tree=$(realpath -m "${ASSAY_DEBIAN13_TREE:-$dir-tree}")
    install_missing "$NEED_DEBIAN13"
    debian_tree "$tree" trixie "$(packages_of_build)libc6-dev,libstdc++-14-dev,python3,ccache" --variant=minbase
    mkdir -p "$dir"
    systemd-nspawn --quiet --as-pid2 --register=no --keep-unit --console=pipe --private-network --resolv-conf=off --directory "$tree" \
        --bind-ro "$PWD:/assay" --bind "$(realpath "$dir"):/build" --chdir /assay --setenv LC_ALL=C.UTF-8 \
        --setenv ASSAY_BUILD_DIR=/build/assay --setenv CCACHE_DIR=/build/ccache --setenv CCACHE_DEPEND=1 \
        ./dev platform here "$@" </dev/null
}

# platform_arm64 [ROOM…]: the tests of all its rooms, or of these.
platform_arm64() {
    local dir=$BUILD-arm64 rooms=${*:-$ARM64_ROOMS} tree tests targets room
    for room in $rooms; do
        [[ " $ARM64_ROOMS " == *" $room "* ]] || die "platform arm64 takes rooms of $ARM64_ROOMS, found: $room"
    done
    tree=$(realpath -m "${ASSAY_ARM64_TREE:-$BUILD-arm64-tree}")
    install_missing "$NEED_BUILD $NEED_ARM64"
    debian_tree "$tree" "$(own_release)" "$(packages_of_libraries)libc6-dev" --variant=extract --arch=arm64
    printf "[constants]\ntree = '%s'\ncache = [%s]\n" "$tree" "$(! command -v ccache >/dev/null || echo "'ccache'")" >"$tree.ini"
    configure "$dir" --cross-file "$tree.ini" --cross-file packaging/cross/arm64.ini "${PLATFORM_OPTIONS[@]}"
    # shellcheck disable=SC2086 # words
    mapfile -t tests < <(tests_of "$dir" "$ARM64_LONGEST" $rooms)
    [ ${#tests[@]} -gt 0 ] || die "no tests in $rooms"
    read -ra targets < <(targets_of "$dir" "${tests[@]}")
    compile "$dir" "${targets[@]}"
    CK_TIMEOUT_MULTIPLIER=60 run_suites "$dir" --timeout-multiplier 60 "${tests[@]}" # the emulation is 20 times as slow, alone
}

cmd_platform() {
    STRICT=1
    case "${1:-}" in
    clang | arm64) "platform_$1" "${@:2}" ;;
    here) platform_here "$BUILD" "${@:2}" ;;
    debian13)
        platform_debian13 "${@:2}" # whose last line says what passed
        return
        ;;
    *) die "platform takes clang, arm64 or debian13, found: ${1:-nothing}" ;;
    esac
    tell_sums
}
