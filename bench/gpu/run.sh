#!/bin/sh
# On a machine with a GPU: hold the cuda back end against the oracle, then time its kernels, then the
# trainer on it.
#   bench/gpu/run.sh          configure and build in build-gpu first
#   bench/gpu/run.sh BUILD    use a build folder that was made elsewhere and carried here
# A test that skips is a failure here: it would mean that nothing was tested. All tests are run, also
# after one failed. JSON lines on stdout; the exit status is 1 when a test failed.
set -eu
cd "$(dirname "$0")/../.."
tests='products linear dropout loss optimizer conv pooling batch_norm attention data losses seq sums device'
cudnn_tests='conv conv_path cudnn_plans' # through cuDNN; the last needs its library alone
build=${1:-}
if [ -z "$build" ]; then
    build='build-gpu'
    [ -d "$build" ] || meson setup "$build" -Dcuda=enabled -Dweb=disabled >&2
    targets=
    for t in $tests conv_path cudnn_plans; do targets="$targets tests/kernels/test_kernels_$t"; done
    # shellcheck disable=SC2086 # a list of words
    ninja -C "$build" kernels/libassay-cuda.so bench/kernels bench/train trial-runner/train/assay-train $targets >&2
fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >&2 || true
ASSAY_PLUGIN_DIR=$PWD/$build/kernels
export ASSAY_PLUGIN_DIR
failed=
# run_test NAME PATH: PATH is what convolutions go by (ASSAY_CUDA_CONV)
run_test() {
    status=0
    ASSAY_CUDA_CONV=$2 ASSAY_TEST_BACKEND=cuda CK_FORK=no "$build/tests/kernels/test_kernels_$1" >&2 || status=$?
    if [ "$status" -ne 0 ]; then
        echo "gpu suite: kernels_$1 ($2) ended with $status (77: it was skipped)" >&2
        failed="$failed $1:$2"
    fi
}
for t in $tests; do run_test "$t" own; done
for t in $cudnn_tests; do run_test "$t" cudnn; done
ASSAY_BACKEND=cuda "$build/bench/kernels" --json
"$build/bench/train" --json --case gpu
if [ -n "$failed" ]; then
    echo "gpu suite: failed:$failed" >&2
    exit 1
fi
