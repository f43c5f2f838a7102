#!/bin/sh
# Pack what run.sh needs of a build folder for a machine with a GPU that has none of our libraries.
#   bench/gpu/pack.sh BUILD FILE.tar.xz
# There, from the root of the repository:
#   mkdir build-gpu && tar -xJf FILE.tar.xz -C build-gpu
#   LD_LIBRARY_PATH=$PWD/build-gpu/lib:$LD_LIBRARY_PATH bench/gpu/run.sh build-gpu
# The programs are stripped. libc, the compiler's libraries and CUDA's are that machine's own.
set -eu
build=$1
file=$2
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
mkdir "$to/lib"
programs=$(cd "$build" && find kernels tests/kernels bench trial-runner api cli serve -maxdepth 2 \
    -type f -perm -u+x -exec sh -c 'head -c 4 "$1" | grep -q ELF && echo "$1"' _ {} \;)
for program in $programs; do
    mkdir -p "$to/$(dirname "$program")"
    strip -o "$to/$program" "$build/$program"
done
# OpenBLAS is opened at run time, so no program names it.
{
    for program in $programs; do ldd "$build/$program"; done
    ldconfig -p | grep -m 1 'libopenblas\.so\.0'
} | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux[^/]*|libcu[^/]*)\.so' |
    while read -r library; do
        cp -L "$library" "$to/lib/"
    done
tar -C "$to" -cf - . | xz -1 > "$file"
