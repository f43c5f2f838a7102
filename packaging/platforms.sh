# shellcheck shell=bash disable=SC2034
# ./dev platform: the unit tests where people run Assay and the developers do not. Read by ./dev, whose functions it uses.
#
#   clang  the whole tree by clang, warnings as errors
#   arm64  compiled for arm64 against the packages of Debian in a folder, run by qemu-user; no package of arm64 is
#          installed on this machine, because libpq-dev is for one architecture at a time
#
# What is fetched comes from where apt of this machine gets its packages.

NEED_CLANG='clang:clang'
NEED_ARM64='aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static mmdebstrap:mmdebstrap'
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

# arm64_tree DIR: the packages that a build needs, unpacked, once.
arm64_tree() {
    [ ! -d "$1" ] || return 0
    say "fetching packages of arm64 into $1"
    rm -rf "$1.part"
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u |
        mmdebstrap --quiet --variant=extract --arch=arm64 --include="$(packages_of_libraries)libc6-dev" \
            "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1.part" - || die "the packages of arm64 could not be fetched"
    mv "$1.part" "$1"
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

platform_clang() {
    local dir=$BUILD-clang cache
    [ $# -eq 0 ] || die "platform clang takes nothing, found: $*"
    install_missing "$NEED_BUILD $NEED_CLANG"
    cache=$(command -v ccache || true)
    CC="${cache:+ccache }clang" configure "$dir" "${PLATFORM_OPTIONS[@]}"
    compile "$dir"
    run_suites "$dir" --suite unit
}

# platform_arm64 [ROOM…]: the tests of all its rooms, or of these.
platform_arm64() {
    local dir=$BUILD-arm64 rooms=${*:-$ARM64_ROOMS} tree tests targets room
    for room in $rooms; do
        [[ " $ARM64_ROOMS " == *" $room "* ]] || die "platform arm64 takes rooms of $ARM64_ROOMS, found: $room"
    done
    tree=$(realpath -m "${ASSAY_ARM64_TREE:-$BUILD-arm64-tree}")
    install_missing "$NEED_BUILD $NEED_ARM64"
    arm64_tree "$tree"
    printf "[constants]\ntree = '%s'\ncache = [%s]\n" "$tree" "$(! command -v ccache >/dev/null || echo "'ccache'")" >"$tree.ini"
    configure "$dir" --cross-file "$tree.ini" --cross-file packaging/cross/arm64.ini "${PLATFORM_OPTIONS[@]}"
    # shellcheck disable=SC2086 # words
    mapfile -t tests < <(tests_of "$dir" "$ARM64_LONGEST" $rooms)
    [ ${#tests[@]} -gt 0 ] || die "no tests in $rooms"
    read -ra targets < <(targets_of "$dir" "${tests[@]}")
    compile "$dir" "${targets[@]}"
    CK_TIMEOUT_MULTIPLIER=20 run_suites "$dir" --timeout-multiplier 20 "${tests[@]}"
}

cmd_platform() {
    STRICT=1
    case "${1:-}" in
    clang | arm64) "platform_$1" "${@:2}" ;;
    *) die "platform takes clang or arm64, found: ${1:-nothing}" ;;
    esac
    tell_sums
}
