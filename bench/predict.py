#!/usr/bin/env python3
"""How fast `assay predict` is: rows a second from CSV to CSV, a network of two hidden layers, 30 columns.

    bench/predict.py [BUILD] [--rows 1000000] [--rounds 5] [--python /usr/bin/python3]

BUILD: the build folder (build). One line of JSON. `value` is `assay predict` as a whole process, `floor` reading the
file alone with data/formats/csv.h (one thread, nothing converted), `peer` pandas.read_csv, the same network in PyTorch
and to_csv in the Python that --python names, without its imports: null where pandas or torch is missing. All three run
in turn, each figure is the median of the rounds. The goals: twice the peer, 0.6 of the floor.

`cpu_s` is the processor time of each, which says more than the clock on a machine with other work.
`of_floor_by_cpu` is the share of the floor's rate that this time allows where every core is free: `assay predict` works
on all cores, the floor on one."""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

COLUMNS, LAYERS = 30, [128, 64]

PEER = r"""
import json, struct, sys, time
try:
    import numpy, pandas, torch
except ImportError as e:
    print(json.dumps({"error": str(e)})); sys.exit()
model, data, out = sys.argv[1:]
with open(model, "rb") as f:
    n = struct.unpack("<Q", f.read(8))[0]
    head = json.loads(f.read(n)); body = f.read()
def tensor(name):
    t = head[name]; a, b = t["data_offsets"]
    return torch.from_numpy(numpy.frombuffer(body[a:b], "<f4").reshape(t["shape"]).copy())
layers = []
while f"layers.{len(layers)}.weight" in head:
    i = len(layers); layers.append((tensor(f"layers.{i}.weight"), tensor(f"layers.{i}.bias")))
mean, scale = tensor("input.mean"), tensor("input.scale")
names = json.loads(head["__metadata__"]["dataset"])
columns, classes = [c["name"] for c in names["columns"]], numpy.array(names["classes"])
for line in sys.stdin:
    start, cpu = time.perf_counter(), time.process_time()
    table = pandas.read_csv(data, usecols=columns)
    with torch.no_grad():
        x = (torch.from_numpy(table[columns].to_numpy(numpy.float32)) - mean) / scale
        for i, (w, b) in enumerate(layers):
            x = torch.addmm(b, x, w)
            x = torch.relu(x) if i + 1 < len(layers) else x
    pandas.DataFrame({"prediction": classes[x.argmax(1).numpy()]}).to_csv(out, index=False)
    print(json.dumps({"seconds": time.perf_counter() - start,
                      "cpu": time.process_time() - cpu, "version":
                      f"pandas {pandas.__version__}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads"}),
          flush=True)
"""


def train(build, folder, table, rows):
    """Train on `table`; the path of the model."""
    columns = [{"name": f"x{i}", "kind": "numeric", "missing": 0} for i in range(COLUMNS)]
    dataset = {"format": "csv", "task": "classification", "rows": rows, "features": COLUMNS, "outputs": 2,
               "input": "table", "target": "y", "classes": ["no", "yes"], "columns": columns, "paths": {"table": table}}
    document = {"dataset": "d", "epochs": 3, "batch_size": 64, "model": {"layers": LAYERS}, "optimizer": {"lr": 0.003}}
    paths = {name: os.path.join(folder, name) for name in ("report", "checkpoints", "artifacts")}
    os.mkdir(paths["checkpoints"])
    os.mkdir(paths["artifacts"])
    open(paths["report"], "w", encoding="ascii").close()
    with open(os.path.join(folder, "job.json"), "w", encoding="ascii") as f:
        json.dump({"train": document, "dataset": dataset}, f)
    subprocess.run([os.path.join(build, "trial-runner", "train", "assay-train"), "job.json"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "ASSAY_REPORT": paths["report"], "ASSAY_CHECKPOINTS": paths["checkpoints"],
                        "ASSAY_ARTIFACTS": paths["artifacts"], "ASSAY_SEED": "11", "ASSAY_BACKEND": "cpu"})
    return os.path.join(paths["artifacts"], "model.safetensors")


class Peer:
    """The peer in a process of its own, which has its imports done; asks it for one run at a time."""

    def __init__(self, python, model, data, out):
        self.child = subprocess.Popen([python, "-c", PEER, model, data, out], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.version = None

    def seconds(self):
        try:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
            answer = json.loads(self.child.stdout.readline() or "{}")
        except (BrokenPipeError, ValueError):
            answer = {}
        self.version = answer.get("version", self.version)
        return answer.get("seconds"), answer.get("cpu")

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def children_cpu():
    """Processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def same_share(a, b):
    """The share of lines that two files have in common, line by line."""
    with open(a, encoding="ascii") as x, open(b, encoding="ascii") as y:
        pairs = list(zip(x, y, strict=True))
    return sum(p == q for p, q in pairs) / len(pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default="/usr/bin/python3")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    helper = os.path.join(args.build, "bench", "predict")
    with tempfile.TemporaryDirectory() as folder:
        small, large, out, peer_out = (os.path.join(folder, n) for n in ("train.csv", "data.csv", "out.csv", "peer.csv"))
        subprocess.run([helper, "make", small, "4000", str(COLUMNS)], check=True)
        subprocess.run([helper, "make", large, str(args.rows), str(COLUMNS)], check=True)
        model = train(args.build, folder, small, 4000)
        peer = Peer(args.python, model, large, peer_out)
        value, floor, other = [], [], []
        cpu = ([], [], [])  # of the same
        for _ in range(args.rounds):
            used = children_cpu()
            answer = subprocess.run([helper, "read", large], check=True, capture_output=True, text=True).stdout
            floor.append(json.loads(answer)["seconds"])
            cpu[1].append(children_cpu() - used)
            used = children_cpu()
            start = time.perf_counter()
            subprocess.run([os.path.join(args.build, "cli", "assay"), "predict", model, "--data", large, "--output", out],
                           check=True, stderr=subprocess.DEVNULL)
            value.append(time.perf_counter() - start)
            cpu[0].append(children_cpu() - used)
            seconds, used = peer.seconds()
            other.append(seconds)
            cpu[2].append(used)
        peer.end()
        has_peer = None not in other
        if has_peer:
            share = same_share(out, peer_out)
            assert share > 0.9999, f"{share} of the predictions are the peer's"  # ties at the last bit differ
        cpu_s = [round(statistics.median(c), 3) if None not in c else None for c in cpu]
        rate = [round(args.rows / statistics.median(v)) if None not in v else None for v in (value, floor, other)]
        print(json.dumps({"bench": "predict", "case": f"{args.rows} rows x {COLUMNS} columns, mlp {LAYERS}",
                          "value": rate[0], "unit": "rows/s", "floor": rate[1], "peer": rate[2],
                          "peer_name": peer.version, "of_floor": round(rate[0] / rate[1], 2),
                          "of_peer": round(rate[0] / rate[2], 2) if has_peer else None, "cpu_s": cpu_s,
                          "of_floor_by_cpu": round(os.cpu_count() * cpu_s[1] / cpu_s[0], 2),
                          "cores": os.cpu_count()}))


main()
