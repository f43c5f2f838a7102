"""What a trial uses of its machine is measured by its runner, with what its children use; and a runner that is told to leave
hands its trials back."""
import json
import subprocess
import sys

from harness import Assay

# A child spins and holds 64 MiB; then the trial waits for the end of the drain.
SPIN = """
import subprocess, sys, time
subprocess.run([sys.executable, "-c", "import time; b = bytearray(64 << 20); b[::4096] = b'x' * len(b[::4096]); e = time.monotonic() + 6.5\\nwhile time.monotonic() < e: pass"])
print('{"step": 1, "loss": 1}', file=open(__import__("os").environ["ASSAY_REPORT"], "a"), flush=True)
time.sleep(float(sys.argv[1]))
"""


def sweep(assay, name, seconds):
    return assay.call("POST", "/v1/sweeps", {
        "name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
        "search": {"method": "random"}, "limits": {"max_trials": 1},
        "trial": {"command": [sys.executable, "-c", SPIN, str(seconds)]}})["id"]


def measured(assay, name):
    """The use of the trial, once a sample knows the child."""
    items = assay.call("GET", f"/v1/sweeps/{name}/trials/0/usage")["items"]
    return items and max((v or 0) for v in items[0]["memory_bytes"]) > 64 << 20 and items[0]


def main():
    with Assay(runners=1) as assay:
        name = sweep(assay, "spins", 0)
        assay.wait(lambda: assay.call("GET", f"/v1/sweeps/{name}")["counts"]["running"] == 1, "the trial to run")
        assay.wait(lambda: assay.call("GET", f"/v1/sweeps/{name}")["counts"]["running"] == 0, "its end")
        trial = assay.call("GET", f"/v1/sweeps/{name}/trials/0")
        assert trial["state"] == "completed", trial
        use = measured(assay, name)
        assert use["attempt"] == 1 and use["seat"] is None and use["every_ms"] == 1000, use
        known = [v for v in use["cpu"] if v is not None]
        assert len(known) >= 3 and 0 < max(known) < 3, use  # a busy machine gives it less than a core
        assert "gpu" not in use, use
        shown = subprocess.run([assay.assay, "trial", f"{name}/0"], env=assay.env, capture_output=True, text=True, check=True).stdout
        assert "cores (most" in shown and "memory at most" in shown and "cores over time" in shown, shown
        as_json = json.loads(subprocess.run([assay.assay, "trial", f"{name}/0", "--json"], env=assay.env, capture_output=True, text=True, check=True).stdout)
        assert as_json["usage"] == [use], as_json

        name = sweep(assay, "waits", 600)
        assay.wait(lambda: assay.call("GET", f"/v1/sweeps/{name}")["counts"]["running"] == 1, "the trial to run")
        subprocess.run([assay.assay, "runners", "drain", "local-1"], env=assay.env, check=True, capture_output=True)
        runner = lambda: next(r for r in assay.call("GET", "/v1/runners")["items"] if r["name"] == "local-1")  # noqa: E731
        assay.wait(lambda: runner()["state"] == "left" or runner()["epoch"] > 1, "the runner to leave")
        attempts = assay.call("GET", f"/v1/sweeps/{name}/trials/0")["attempts"]
        assert attempts[0]["outcome"] == "released", attempts
    print("use was measured; a drained runner left")


if __name__ == "__main__":
    main()
