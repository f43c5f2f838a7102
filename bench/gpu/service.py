"""A whole installation on a machine with a GPU: `assay up` with PostgreSQL, one runner, and the built-in trainer on the
real device. Each part prints a JSON line; the exit status is 1 when one failed.

  found    the runner lists the GPUs that nvidia-smi lists
  groups   64 trials of one shape train in groups on the GPU, to the losses that they have on the CPU
  killed   a trainer that is killed with SIGKILL: its trials go on from their checkpoints, and none fails
  full     the GPU's memory is taken by another program, but for little: groups become smaller, and no trial fails

run.sh calls it where PostgreSQL's programs are. ASSAY_SOURCE_ROOT and ASSAY_BUILD_ROOT name the trees."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", "e2e"))
from harness import SOURCE, Assay  # noqa: E402

LEFT_BYTES = 3 << 30  # that the part `full` leaves free: the context and a few members, not 64
# Holds all memory of the device but LEFT_BYTES until its standard input ends.
HOLDER = f"""import sys, torch
held, free = [], torch.cuda.mem_get_info()[0]
while free > {LEFT_BYTES}:
    held.append(torch.empty(min(free - {LEFT_BYTES} // 2, 1 << 30), dtype=torch.uint8, device="cuda"))
    free = torch.cuda.mem_get_info()[0]
print("held", flush=True)
sys.stdin.read()
"""


def document(name, layers, epochs, gpus, trials=64, group=64, **more):
    return {
        "name": name, "metric": {"name": "val_loss", "goal": "minimize"},
        "parameters": {"lr": {"type": "float", "min": 1e-4, "max": 1e-2, "scale": "log"}},
        "limits": {"max_trials": trials, "max_restarts": 3}, "search": {"method": "random", "seed": 11},
        "resources": {"gpus": gpus, "group": group}, **more,
        "trial": {"train": {"dataset": "digits", "model": {"layers": layers}, "epochs": epochs, "batch_size": 64,
                            "optimizer": {"kind": "adamw", "lr": "${lr}"}, "validation": {"fraction": 0.3}}},
    }


def run(assay, doc):
    begin = time.monotonic()
    assay.call("POST", "/v1/sweeps", doc)
    assay.wait_ended(doc["name"])
    trials = assay.trials(doc["name"])
    wrong = [(t["number"], t["state"], t.get("reason")) for t in trials if t["state"] != "completed"]
    assert not wrong and len(trials) == doc["limits"]["max_trials"], (len(trials), wrong[:3])
    return trials, time.monotonic() - begin


def logs_of(assay, name, number=0):
    return assay.cli("logs", f"{name}/{number}").stdout


def found(assay):
    listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True,
                            check=True).stdout.split()
    ours = [g for r in assay.call("GET", "/v1/runners")["items"] for g in r["gpus"]]
    assert sorted(ours) == sorted(listed), (ours, listed)
    return {"gpus": ours}


def groups(assay):
    on_gpu, gpu_s = run(assay, document("on-gpu", [64, 32], 30, 1))
    on_cpu, cpu_s = run(assay, document("on-cpu", [64, 32], 30, 0))
    assert "cuda" in logs_of(assay, "on-gpu"), logs_of(assay, "on-gpu")
    gpu, cpu = ({t["number"]: t["value"] for t in trials} for trials in (on_gpu, on_cpu))
    worst = max(abs(gpu[n] / cpu[n] - 1) for n in cpu)
    assert worst < 0.05, worst  # the same seeds; 600 steps of float32, whose sums have other orders
    return {"seconds_gpu": gpu_s, "seconds_cpu": cpu_s, "largest_difference": worst}


def killed(assay):
    assay.call("POST", "/v1/sweeps", document("killed", [256, 128], 400, 1))
    assay.wait(lambda: any(t["step"] for t in assay.trials("killed")), "a measurement")
    victims = assay.processes("assay-train")
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    assay.wait_ended("killed")
    trials = assay.trials("killed")
    states = sorted({t["state"] for t in trials})
    assert states == ["completed"] and len(trials) == 64, (states, len(trials))
    again = sum(t["attempt"] - 1 for t in trials)
    assert victims and again > 0, (victims, again)
    return {"killed": len(victims), "attempts_again": again}


def full(assay):
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as holder:
        assert holder.stdout.readline().strip() == "held"
        trials, seconds = run(assay, document("full", [4096, 4096], 2, 1, trials=32, group=32))
        holder.stdin.close()
    return {"seconds": seconds, "attempts": sum(t["attempt"] for t in trials)}


def main():
    parts = [found, groups, killed, full]
    failed = []
    env = {"ASSAY_PLUGIN_DIR": os.path.join(os.environ["ASSAY_BUILD_ROOT"], "kernels")}
    with Assay(runners=1, slots=2, env=env) as assay:
        assay.cli("data", "add", "digits", os.path.join(SOURCE, "examples", "digits.csv"), "--target", "class")
        for part in parts:
            line = {"bench": "gpu service", "case": part.__name__}
            try:
                line.update(part(assay))
            except Exception as e:  # the other parts still run
                line["failed"] = f"{type(e).__name__}: {e}"[:2000]
                failed.append(part.__name__)
            print(json.dumps(line), flush=True)
        if failed:
            raise AssertionError(f"failed: {failed}")


main()
