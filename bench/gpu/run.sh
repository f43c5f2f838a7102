#!/bin/sh
# On a machine with a GPU: hold the cuda back end against the oracle, see that the trainer finds, uses,
# stops on and does without the device, then time the kernels and the trainer.
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
    ninja -C "$build" kernels/libassay-cuda.so bench/kernels bench/train bench/device_ranks trial-runner/train/assay-train \
        trial-runner/agent/assay-runner api/server/assayd cli/assay \
        tests/kernels/test_kernels tests/kernels/test_kernels_cudnn_plans >&2
fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >&2 || true
ASSAY_PLUGIN_DIR=$PWD/$build/kernels
export ASSAY_PLUGIN_DIR
failed=
# run_test NAME PATH: PATH is what convolutions go by (ASSAY_CUDA_CONV)
run_test() {
    status=0
    begin=$(date +%s)
    program=test_kernels # of all these tests but one
    [ "$1" != cudnn_plans ] || program=test_kernels_cudnn_plans
    ASSAY_CUDA_CONV=$2 ASSAY_TEST_BACKEND=cuda CK_FORK=no \
        timeout 120 "$build/tests/kernels/$program" "$1" >&2 || status=$?
    echo "gpu suite: kernels_$1 ($2) took $(($(date +%s) - begin)) s" >&2
    if [ "$status" -ne 0 ]; then
        echo "gpu suite: kernels_$1 ($2) ended with $status (77: it was skipped, 124: it took too long)" >&2
        failed="$failed $1:$2"
    fi
}
for t in $tests; do run_test "$t" own; done
for t in $cudnn_tests; do run_test "$t" cudnn; done

# ---- the trainer and the device ----
trainer=$build/trial-runner/train/assay-train
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# check WHAT STATUS: the test WHAT ended so
check() {
    if [ "$2" -ne 0 ]; then
        echo "gpu suite: trainer_$1 failed" >&2
        failed="$failed trainer:$1"
    fi
}
cat > "$scratch/job.json" <<EOF
{"train": {"dataset": "digits", "model": {"layers": [512, 512]}, "epochs": 1000000},
 "dataset": {"format": "csv", "task": "classification", "target": "-1", "rows": 1797, "features": 64,
  "outputs": 10, "classes": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
  "paths": {"table": "$PWD/examples/digits.csv"}}}
EOF
# CUDA and NVML name the same devices (a divided GPU is listed as its parts, which nvidia-smi does not).
CUDA_DEVICE_ORDER=PCI_BUS_ID "$trainer" --list-devices > "$scratch/devices"
cat "$scratch/devices" >&2
if ! grep -q ' MIG-' "$scratch/devices"; then
    result=1
    cut -d' ' -f2 "$scratch/devices" | sort > "$scratch/cuda"
    nvidia-smi --query-gpu=uuid --format=csv,noheader | sort > "$scratch/nvml"
    # With CUDA_VISIBLE_DEVICES CUDA lists fewer.
    [ -s "$scratch/cuda" ] && [ -z "$(comm -23 "$scratch/cuda" "$scratch/nvml")" ] && result=0
    check uuids $result
fi
# SIGTERM is obeyed soon: the host is few steps ahead.
status=0
ASSAY_BACKEND=cuda "$trainer" "$scratch/job.json" > "$scratch/out" 2>&1 &
pid=$!
for _ in $(seq 600); do
    grep -q 'rows to train on' "$scratch/out" && break
    sleep 0.1
done
sleep 2
kill -TERM $pid
begin=$(date +%s)
wait $pid || status=$?
result=1
[ "$status" -eq 75 ] && [ $(($(date +%s) - begin)) -le 5 ] && result=0
check stop $result
# A device that is not there: 75, and the reason in the file.
status=0
ASSAY_BACKEND=cuda CUDA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000000 \
    ASSAY_DEVICE_FAULT="$scratch/fault" "$trainer" "$scratch/job.json" > /dev/null 2>&1 || status=$?
result=1
[ "$status" -eq 75 ] && grep -q '^back end cuda: no device' "$scratch/fault" && result=0
check absent $result

# ---- a whole installation, where PostgreSQL's programs are ----
if ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1; then
    status=0
    ASSAY_SOURCE_ROOT=$PWD ASSAY_BUILD_ROOT=$PWD/$build python3 bench/gpu/service.py || status=$?
    check service $status
fi

ASSAY_BACKEND=cuda "$build/bench/kernels" --json
"$build/bench/train" --json --case gpu

# ---- ranks of a large trial: two that share a card, and one on each card, through NCCL and without ----
cards=$(grep -c . "$scratch/devices" || true)
[ "$cards" -le 8 ] || cards=8
status=0
ASSAY_SOURCE_ROOT=$PWD ASSAY_BUILD_ROOT=$PWD/$build "$build/bench/device_ranks" --json --cards "$cards" \
    > "$scratch/ranks" || status=$?
cat "$scratch/ranks"
grep -q '"two ranks on one card".*through the host: ' "$scratch/ranks" || status=1
# Where there are several whole cards and NCCL, its way must be the one that was taken.
if [ "$cards" -gt 1 ] && ! grep -q ' MIG-' "$scratch/devices" && ldconfig -p | grep -q 'libnccl.so.2'; then
    grep -q 'device to device".*"from device to device"' "$scratch/ranks" || status=1
fi
check ranks $status
if [ -n "$failed" ]; then
    echo "gpu suite: failed:$failed" >&2
    exit 1
fi
