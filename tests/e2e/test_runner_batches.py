#!/usr/bin/env python3
"""The ends and measurements of a runner with many slots go to the server in common requests. While the server is frozen
they come together; a runner that is killed between its request and the answer sends its results again. No trial is lost
or counted twice."""
import glob
import os
import re
import signal
import tempfile

from harness import Assay

SLOTS, TRIALS = 16, 48


def document(name, folder):
    """A trial reports, says that it runs, and ends when it may."""
    script = (f'echo "{{\\"loss\\": 1}}" >> "$ASSAY_REPORT"; while [ ! -e {folder}/go ]; do sleep 0.05; done; '
              f': > {folder}/ended.$$')
    return {
        "name": name,
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"x": {"type": "float", "min": -1, "max": 1}},
        "search": {"method": "random", "seed": 3},
        "limits": {"max_trials": TRIALS, "max_restarts": 3},
        "ensemble": False,
        "trial": {"command": ["sh", "-c", script]},
    }


def figure(assay, name, labels=""):
    """The sum over the series of that name whose labels contain `labels`."""
    text = assay.call("GET", "/metrics").decode()
    return sum(float(value) for found, value in re.findall(rf"^{name}(\S*) (\S+)$", text, re.M) if labels in found)


def requests(assay, route):
    return figure(assay, "assay_http_requests_total", f'route="{route}"')


def freeze_while_trials_end(assay, name, meanwhile):
    """All slots run when the server freezes, and their processes end before it goes on."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o777)
        sweep = assay.call("POST", "/v1/sweeps", document(name, folder))["id"]
        assay.wait(lambda: assay.sweep(sweep)["counts"]["running"] == SLOTS, f"{SLOTS} trials to run")
        server = assay.processes("assayd")[0]
        os.kill(server, signal.SIGSTOP)
        with open(os.path.join(folder, "go"), "w", encoding="ascii"):
            pass
        assay.wait(lambda: len(glob.glob(folder + "/ended.*")) >= SLOTS, "the trials to end")
        meanwhile()
        os.kill(server, signal.SIGCONT)
        assay.wait_ended(sweep)
        s, _ = assay.check_exact(sweep, TRIALS)
        assert s["counts"]["completed"] == TRIALS, s["counts"]


def kill_the_runner(assay):
    for pid in assay.processes("assay-runner"):
        os.kill(pid, signal.SIGKILL)


def main():
    with Assay(runners=1, slots=SLOTS) as assay:
        freeze_while_trials_end(assay, "frozen", lambda: None)
        parts, batches = figure(assay, "assay_http_batch_parts_total"), requests(assay, "/v1/runners/{runner}/batch")
        # The last measurement of a trial that ends at once goes with its end.
        assert parts >= TRIALS + SLOTS, parts
        assert 0 < batches < parts, (batches, parts)
        attempt = "/v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}"
        for verb in ("complete", "measurements"):
            assert requests(assay, f"{attempt}/{verb}") == 0, verb
        print(f"{parts:.0f} ends and measurements in {batches:.0f} requests")
        freeze_while_trials_end(assay, "killed", lambda: kill_the_runner(assay))
    print("ok")


main()
