"""A sweep with early stopping whose order does not depend on speed, for tests that put faults at its rungs.

One trial runs at a time, and a trial that has reached a rung waits until the test has read the decision (answer()). So
every sweep without a loss has the same results, decisions and promotions in the same order (order()). Several faults may
strike one sweep, one after another, which costs fewer processes than a sweep for each."""
import contextlib
import os
import subprocess
import sys
import time

from harness import BUILD, ENDED, PATIENCE_S

ARGS = ["--lease", "5s", "--heartbeat", "1s"]
VALUES = [0.5, 0.7, 0.1, 0.6, 0.2, 0.9]
# With more ranks than one the first reports, and the others wait to be told. A trial that waits for the signal of a
# decision in vain goes on after $PATIENCE seconds.
PROGRAM = r'''
import os, signal, sys, time
folder, x, holds = sys.argv[1], sys.argv[2], os.environ["HOLD"].split(", ")
state = os.path.join(os.environ.get("ASSAY_CHECKPOINTS", "."), "state")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def wait(file):
    while not os.path.exists(os.path.join(folder, file)):
        time.sleep(0.02)


def touch(file):
    open(os.path.join(folder, file), "w").close()


def is_stopped(promoted):
    """The signal of the decision. An attempt after the promotion gets none, and may be here before the test says so."""
    until = time.monotonic() + float(os.environ.get("PATIENCE", "600"))
    while not signal.sigtimedwait([signal.SIGTERM], 0.02):
        if time.monotonic() > until or os.path.exists(os.path.join(folder, promoted)):
            return False
    return True


if os.environ.get("RANK", "0") != "0":
    while not os.path.exists(os.path.join(folder, f"{x}-over")):
        if signal.sigtimedwait([signal.SIGTERM], 0.05):
            break
    sys.exit(0)
step = 0
if os.path.exists(state):
    text = open(state).read().split()
    if len(text) == 2:  # else it was cut short, and the trial begins again
        step = int(text[0])
print("begins after", step, flush=True)
while step < 9:
    step += 1
    hold = f"{x} {step}" in holds
    if hold:
        touch(f"holds-{x}-{step}")
        wait(f"go-{x}-{step}")
    with open(os.environ["ASSAY_REPORT"], "a") as f:
        f.write('{"step": %d, "loss": %r}\n' % (step, float(x) + 1 / step))
    if hold:
        touch(f"reported-{x}-{step}")
    if step in (1, 3):
        wait(f"{x}-{step}")
        if open(os.path.join(folder, f"{x}-{step}")).read() == "pause" and not os.path.exists(
                os.path.join(folder, f"{x}-{step}-promoted")):
            if "DEAF" in os.environ:
                wait(f"{x}-{step}-promoted")
                continue
            if not is_stopped(f"{x}-{step}-promoted"):
                continue
            with open(state + ".new", "w") as f:
                f.write(str(step) if "CUT" in os.environ else f"{step} {x}")
            os.rename(state + ".new", state)
            sys.exit(0)
touch(f"{x}-over")
'''


def document(name, folder, hold="", env=None, ranks=1):
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
            "parameters": {"x": {"type": "categorical", "values": VALUES}}, "search": {"method": "grid"},
            "limits": {"grace": "1s" if "DEAF" in (env or {}) else "10m", "max_concurrent_trials": 1, "max_restarts": 5},
            "resources": {"ranks": ranks},
            "trial": {"command": [sys.executable, "-S", "-E", "-c", PROGRAM, folder, "${x}"], "checkpoints": True,
                      "env": {"HOLD": hold, **(env or {})}},
            "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3, "mode": "pause"}}


def order(trials):
    """The results and promotions in the order of the sweep, and how every trial ended. When a trial that cannot be
    promoted any more ends as pruned is the reaper's time, so that its place is left out."""
    found, ends = [], []
    for t in trials:
        x = t["params"]["x"]
        for r in t["rungs"] or []:
            found.append((r["seq"], "result", x, r["step"], r["value"], r["rank"], r["of"], r["decision"]))
            if r["promoted_seq"]:
                found.append((r["promoted_seq"], "promoted", x, r["step"]))
        if t["finish_seq"]:
            ends.append((x, t["state"], t["value"]))
    places = [place for place, *_ in found] + [t["finish_seq"] for t in trials]
    assert sorted(places) == list(range(1, len(places) + 1)), places
    return [what for _, *what in sorted(found)] + sorted(ends)


def say(folder, file, text=""):
    """A file that appears with all of its text."""
    path = os.path.join(folder, file)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def answer(assay, sweep, folder):
    """Every trial at a rung learns what was decided. True when the sweep has ended."""
    trials = assay.trials(sweep)
    for t in trials:
        for r in t["rungs"] or []:
            file = f"{t['params']['x']}-{r['step']}"
            if r["promoted_seq"] and not os.path.exists(os.path.join(folder, file + "-promoted")):
                say(folder, file + "-promoted")
            if not os.path.exists(os.path.join(folder, file)):
                say(folder, file, r["decision"])
    return len(trials) == len(VALUES) and all(t["finish_seq"] for t in trials) and assay.sweep(sweep)["state"] in ENDED


def go(fault, folder):
    """What holds before its report goes on."""
    say(folder, f"go-{fault.x}-{fault.step}")


def trial_of(assay, sweep, x):
    return next(t for t in assay.trials(sweep) if t["params"]["x"] == x)


def await_reported(fault, folder):
    wait_file(os.path.join(folder, f"reported-{fault.x}-{fault.step}"))


def await_hold(assay, sweep, folder, fault):
    """The trial is about to report the value of its rung, and waits for go()."""
    def there():
        return os.path.exists(os.path.join(folder, f"holds-{fault.x}-{fault.step}"))
    assay.wait(lambda: there() or answer(assay, sweep, folder), "the trial at its rung", every=0.1)
    assert there(), "the sweep ended before"


def await_decision(assay, sweep, x, step):
    assay.wait(lambda: any(r["step"] == step for r in trial_of(assay, sweep, x)["rungs"] or []), "the decision")


def wait_file(path):
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


def create(assay, doc):
    """Again where the server restarts; the key makes it one sweep."""
    return assay.call("POST", "/v1/sweeps", doc, headers={"Idempotency-Key": doc["name"]})


def run(assay, name, faults=(), env=None, ranks=1):
    """All of a sweep; its trials. A fault has `x` and `step`, where the trial holds, and strike(assay, sweep, folder); they
    are in the order in which trials come there."""
    began = time.monotonic()
    folder = os.path.join(assay.data, name)
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    doc = document(name, folder, ", ".join(f"{f.x} {f.step}" for f in faults), env, ranks)
    sweep = assay.wait(lambda: create(assay, doc), "the server")["id"]
    for fault in faults:
        await_hold(assay, sweep, folder, fault)
        fault.strike(assay, sweep, folder)
    assay.wait(lambda: answer(assay, sweep, folder), f"{name} to end", every=0.1)
    s, trials = assay.wait(lambda: (assay.sweep(sweep), assay.trials(sweep)), "the server")
    assert s["state"] == "completed" and s["counts"]["completed"] + s["counts"]["pruned"] == len(VALUES), s
    print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    return trials


def check_same(name, trials, expected):
    found = order(trials)
    assert found == expected, "\n".join([name, *map(str, found)])


@contextlib.contextmanager
def own_runner(assay, name, slots=1, server=None):
    """A runner that is no child of `assay up`, at another server if one is named. Its process has the folder of its cache."""
    cache = os.path.join(assay.data, "cache-" + name)
    with open(os.path.join(assay.data, "logs", f"{name}.log"), "ab") as log:
        runner = subprocess.Popen(
            [os.path.join(BUILD, "trial-runner", "agent", "assay-runner"), "--name", name, "--slots", str(slots), "--work",
             os.path.join(assay.data, "work-" + name), "--cache", cache, "--gpus", "none"],
            env={**assay.env, **({"ASSAY_SERVER": server} if server else {})}, stderr=log, stdout=log)
    runner.cache = cache
    try:
        yield runner
    finally:
        runner.terminate()
        runner.wait(PATIENCE_S)
