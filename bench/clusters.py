#!/usr/bin/python3
"""k-means of the trainer beside scikit-learn's, on the same rows from the same start, one thread each; in processor time.

    bench/clusters.py BUILD [--rounds 5]

Each round runs both, one after the other; the medians over the rounds are printed, as Markdown. `products` is the floor: the
matrix products without which no row is assigned. Inertia must be equal to 1e-4. Needs python3-sklearn."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy  # noqa: E402
import sklearn  # noqa: E402
from sklearn.cluster import KMeans, kmeans_plusplus  # noqa: E402

CASES = [(100000, 16, 20), (40000, 64, 64), (10000, 784, 100)]  # rows, inputs, clusters
ITERATIONS = 10


def one_round(build, rows, dims, clusters):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        words = [str(v) for v in (rows, dims, clusters, ITERATIONS)]
        ours = json.loads(subprocess.run([f"{build}/bench/clusters", *words, folder], check=True, capture_output=True).stdout)
        x, start = (numpy.load(f"{folder}/{name}.npy") for name in ("rows", "start"))
    begun = time.process_time()
    kmeans_plusplus(x, clusters, random_state=1)
    start_s = time.process_time() - begun
    # its last assignment is one more, as is ours
    peer = KMeans(clusters, init=start, n_init=1, max_iter=ITERATIONS, tol=0, algorithm="lloyd", copy_x=False)
    begun = time.process_time()
    peer.fit(x)
    peer_s = time.process_time() - begun
    assert peer.n_iter_ == ITERATIONS, peer.n_iter_
    assert abs(peer.inertia_ / ours["inertia"] - 1) < 1e-4, (peer.inertia_, ours["inertia"])
    return ours["start_s"], start_s, ours["iterations_s"], peer_s, ours["products_s"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    print(f"scikit-learn {sklearn.__version__}, numpy {numpy.__version__}, {a.rounds} rounds, {ITERATIONS} iterations\n")
    print("| rows x inputs, clusters | start | scikit-learn's | iterations | scikit-learn's | products alone |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for rows, dims, clusters in CASES:
        all_rounds = [one_round(a.build, rows, dims, clusters) for _ in range(a.rounds)]
        v = [statistics.median(column) for column in zip(*all_rounds)]
        cells = " | ".join(f"{s:.3f} s" for s in v)
        print(f"| {rows:,} x {dims}, {clusters} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
