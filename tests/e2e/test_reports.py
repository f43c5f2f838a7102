#!/usr/bin/env python3
"""Measurements from what programs print and write, through a real service: patterns, CSV, JSON, TensorBoard."""
import csv
import json
import os
import struct
import sys
import textwrap
import time

from harness import SOURCE, Assay, Problem

PYTHON = sys.executable
CLIENT = os.path.join(SOURCE, "clients", "python")


# ---- event files, byte by byte from the public formats ----

def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    c = crc32c(data)
    return struct.pack("<I", (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(v):
    out = b""
    while v >= 0x80:
        out, v = out + bytes([v & 0x7F | 0x80]), v >> 7
    return out + bytes([v])


def field(n, data):
    return varint(n << 3 | 2) + varint(len(data)) + data


def record(data):
    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


def event(step, value):
    return record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x10" + varint(step) + field(5, field(1, value)))


def scalar(step, tag, v):
    return event(step, field(1, tag.encode()) + b"\x15" + struct.pack("<f", v))


def tensor(step, tag, v):
    proto = b"\x08\x01" + field(2, b"") + field(4, struct.pack("<f", v))
    return event(step, field(1, tag.encode()) + field(8, proto) + field(9, field(1, field(1, b"scalars"))))


VERSION = record(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))


# ---- programs of others: none of them knows of Assay ----

class Programs:
    def __init__(self, assay):
        self.assay, self.n = assay, 0

    def run(self, source, report, parameters=None, metric="loss", wait=True, limits=None, **trial):
        """A sweep of the program, in a folder of its own. Returns (sweep, folder)."""
        self.n += 1
        folder = os.path.join(self.assay.data, f"program{self.n}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "program.py"), "w") as f:
            f.write(textwrap.dedent(source))
        doc = {"name": f"program{self.n}", "metric": {"name": metric, "goal": "minimize"},
               "parameters": parameters or {"x": {"type": "categorical", "values": [1]}}, "search": {"method": "grid"}, "limits": limits or {},
               "trial": {"command": [PYTHON, "program.py", "${x}"], "directory": folder, "report": report, **trial}}
        sweep = self.assay.call("POST", "/v1/sweeps", doc)["id"]
        if wait:
            self.assay.wait_ended(sweep)
        return sweep, folder

    def series(self, sweep, number=0):
        got = self.assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}/measurements")["series"]
        return {m: dict(zip(s["steps"], s["values"])) for m, s in got.items()}

    def trial(self, sweep, number=0):
        return self.assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}")

    def log(self, sweep, number=0):
        return self.assay.call("GET", f"/v1/sweeps/{sweep}/trials/{number}/log")["text"]


EPOCHS = r"Epoch (?P<step>\d+).* loss: (?P<loss>[0-9.eE+-]+)"


def printed(p):
    sweep, _ = p.run("""
        import sys
        print("starting")
        for i in range(3):
            print(f"Epoch {i}/3 [====] - loss: {1 / (i + 1):.4f} - acc: nan")
        print("Epoch 7 loss: 0.125 in an error", file=sys.stderr)
    """, {"stdout": [EPOCHS, r"acc: (?<acc>\S+)"]})
    got = p.series(sweep)
    assert got["loss"] == {0: 1.0, 1: 0.5, 2: 0.3333, 7: 0.125}, got
    assert got["acc"] == {0: "NaN", 1: "NaN", 2: "NaN"}, got
    assert p.trial(sweep)["value"] == 0.125


def live(p):
    """A value is there while the program still runs, from every source."""
    source = """
        import json, os, time
        os.makedirs("out/runs")
        print("Epoch 1 loss: 0.5")
        open("out/m.csv", "w").write("epoch,csv_loss\\n3,0.25\\n")
        open("out/m.jsonl", "w").write(json.dumps({"step": 2, "json/loss": 0.75}) + "\\n")
        events = open("out/runs/events.out.tfevents.1.host.1.0", "wb")
        events.write(bytes.fromhex("%s"))
        events.flush()
        while not os.path.exists("go"):
            time.sleep(0.02)
    """ % (VERSION + scalar(4, "val/loss", 0.5) + tensor(5, "val/loss", 0.25) + scalar(4, "other", 3)).hex()
    report = {"stdout": EPOCHS, "csv": "./out/m.csv", "step": "epoch", "tensorboard": "out/runs/", "tags": {"val/loss": "tb"}}
    sweep, folder = p.run(source, [report, {"json": "out/m.jsonl"}], wait=False)
    want = {"loss": {1: 0.5}, "csv_loss": {3: 0.25}, "json/loss": {2: 0.75}, "tb": {4: 0.5, 5: 0.25}}
    p.assay.wait(lambda: p.series(sweep) == want, "the values")
    assert p.trial(sweep)["state"] == "running"
    open(os.path.join(folder, "go"), "w").close()
    p.assay.wait_ended(sweep)
    assert p.trial(sweep)["state"] == "completed" and p.series(sweep) == want


def rewritten(p):
    """As Lightning's CSVLogger: the whole file again for each row, with empty cells; here also replaced by rename."""
    for last in ("", "os.replace('m.tmp', 'm.csv')"):
        sweep, _ = p.run("""
            import os, time
            rows = []
            for i in range(8):
                rows.append(f"{i},,{1 / (i + 1)}" if i %% 2 else f"{i},{i / 10},")
                with open("%s", "w") as f:
                    f.write("epoch,lr,loss\\n" + "\\n".join(rows) + "\\n")
                %s
                time.sleep(0.03)
        """ % ("m.tmp" if last else "m.csv", last), {"csv": "m.csv", "step": "epoch"})
        got = p.series(sweep)
        assert got["loss"] == {i: 1 / (i + 1) for i in (1, 3, 5, 7)} and set(got["lr"]) == {0, 2, 4, 6}, got


def old_files(p):
    """What an earlier trial left in the folder is not this trial's; a path may have parameters."""
    source = """
        import sys
        with open("log.csv", "a") as f:
            if f.tell() == 0:
                f.write("loss\\n")
            f.write(sys.argv[1] + "\\n")
        open(f"m{sys.argv[1]}.jsonl", "w").write('{"x": %s}\\n' % sys.argv[1])
    """
    x = {"x": {"type": "categorical", "values": [3, 2, 1]}}
    sweep, _ = p.run(source, {"csv": "log.csv", "json": "m${x}.jsonl"}, x, limits={"max_concurrent_trials": 1})
    for t in p.assay.trials(sweep):
        assert t["state"] == "completed" and t["metrics"] == {"loss": t["params"]["x"], "x": t["params"]["x"]}, t


def shared_file(p):
    """Two trials that write one file at the same time are warned."""
    sweep, folder = p.run("""
        import os, sys, time
        open("log.csv", "a").write("loss\\n1\\n")
        while not os.path.exists("go"):
            time.sleep(0.02)
    """, {"csv": "log.csv"}, {"x": {"type": "categorical", "values": [1, 2]}}, wait=False)
    p.assay.wait(lambda: all("for another trial too" in p.log(sweep, n) for n in (0, 1)), "both warnings")
    open(os.path.join(folder, "go"), "w").close()
    p.assay.wait_ended(sweep)


def shared_runs(p):
    """Trials at the same time under one folder: each has its own event files."""
    source = """
        import os, struct, sys, time
        os.makedirs("runs", exist_ok=True)
        x = int(sys.argv[1])
        data = bytes.fromhex({1: "%s", 2: "%s"}[x])
        with open(f"runs/events.out.tfevents.1.host.{os.getpid()}.0", "wb") as f:
            f.write(data)
            f.flush()
            while not os.path.exists("go"):
                time.sleep(0.02)
    """ % tuple((VERSION + scalar(1, "loss", v)).hex() for v in (1, 2))
    sweep, folder = p.run(source, {"tensorboard": "runs"}, {"x": {"type": "categorical", "values": [1, 2]}}, wait=False)
    p.assay.wait(lambda: all(p.series(sweep, n) == {"loss": {1: n + 1}} for n in (0, 1)), "both values, while both run")
    open(os.path.join(folder, "go"), "w").close()
    p.assay.wait_ended(sweep)
    for t in p.assay.trials(sweep):
        assert t["state"] == "completed" and t["value"] == t["params"]["x"], t


def much_output(p):
    """100 MB of output: no match is lost, and the runner's memory does not grow."""
    sweep, _ = p.run("""
        filler = ("x" * 79 + "\\n") * 12000
        for i in range(105):
            print(filler, end="")
            print(f"Epoch {i} loss: {i}")
    """, {"stdout": EPOCHS})
    got = p.series(sweep)["loss"]
    assert got == {i: i for i in range(105)}, len(got)
    rss = {pid: int(open(f"/proc/{pid}/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
           for pid in p.assay.processes("assay-runner")}
    assert rss and max(rss.values()) < 64 << 20, rss


def slow_pattern(p):
    """A pattern that would need for ever does not hold the trial up, and is said. The lines stay below what the server
    keeps of a log: where the runner writes its note among them depends on who is faster."""
    sweep, _ = p.run("""
        for i in range(400):
            print("1" * 60 + "b")
        print("Epoch 1 loss: 2")
    """, {"stdout": [r"(?P<bad>(?:1|1)*)*[cd]", EPOCHS]})
    assert p.series(sweep) == {"loss": {1: 2}}
    assert "not tried any more" in p.log(sweep), p.log(sweep)[-600:]


def buffered(p):
    """Output that comes at the end alone, because it was buffered, is said to be so. Python's is not buffered."""
    source = """
        import os, sys, time
        print("Epoch 1 loss: 0.5")
        time.sleep(3.3)
    """
    for _ in range(5):  # on a busy machine the process may need long to end after its last write
        sweep, _ = p.run(source, {"stdout": EPOCHS}, env={"PYTHONUNBUFFERED": ""})
        assert p.series(sweep) == {"loss": {1: 0.5}}
        if "it was buffered" in p.log(sweep):
            break
    assert "it was buffered" in p.log(sweep), p.log(sweep)
    sweep, _ = p.run(source, {"stdout": EPOCHS})
    assert "buffered" not in p.log(sweep), p.log(sweep)


def came_near(p):
    sweep, _ = p.run("""
        open("m.csv", "w").write("epoch,accuracy\\n1,2\\n")
        print("Epoch one")
        print("Epoch 3: Val Loss = 0.25")
        print("done")
    """, [{"stdout": r"Epoch (?P<step>\d+) val_loss: (?P<val_loss>\S+)", "csv": "m.csv", "step": "epoch"}, {"json": "no.jsonl"}],
                     metric="val_loss")
    trial = p.trial(sweep)
    assert trial["state"] == "failed", trial
    reason = trial["reason"]
    for part in ("'val_loss' was never reported", "reported were accuracy", "no line of the output matches", "no.jsonl was not written",
                 "'Epoch 3: Val Loss = 0.25'", "docs/trials.md#reporting"):
        assert part in reason, (part, reason)
    assert "Epoch one" not in reason and "done" not in reason, reason


def notes(p):
    sweep, _ = p.run("""
        import json, os
        with open(os.environ["ASSAY_REPORT"], "w") as f:
            f.write(json.dumps({"loss": 0.5, "phase": "warm", "shape": [1, {"a": 2}], "ok": True, "none": None}) + "\\n")
            f.write(json.dumps({"loss": 0.25, "phase": "hot", "long": "x" * 3000, "bad name": 3}) + "\\n")
            for i in range(100):
                f.write(json.dumps({f"n{i:03}": "text"}) + "\\n")
    """, {"json": "other.jsonl"})
    trial = p.trial(sweep)
    assert trial["value"] == 0.25 and trial["metrics"] == {"loss": 0.25}, trial
    got = trial["notes"]
    assert got["phase"] == "hot" and got["shape"] == '[1,{"a":2}]' and got["ok"] == "true" and got["long"] == "x" * 1024, got
    assert "none" not in got and len(got) == 64 and "n059" in got, sorted(got)
    text = p.assay.cli("trial", f"{sweep}/0").stdout
    assert "note.phase" in text and "hot" in text, text
    log = p.log(sweep)
    assert "'bad name' is skipped" in log and "last text that is kept" in log, log


def slashes(p):
    """Names as Lightning, W&B and TensorBoard write them: reported by a shell, by Python, in a CSV file and on the output,
    bounded by a constraint, listed, exported, and added to another sweep."""
    folder = os.path.join(p.assay.data, "slashes")
    os.makedirs(folder)
    with open(os.path.join(folder, "train.sh"), "w") as f:
        f.write(textwrap.dedent("""
            case $1 in
            shell) echo '{"step": 1, "val/acc": 0.5, "val/loss.mean": 0.25}' >>"$ASSAY_REPORT" ;;
            python) "$PYTHON" -c 'import assay; assay.report(step=1, **{"val/acc": 0.25, "val/loss.mean": 1, "mAP50-95(B)": 7})' ;;
            csv) printf 'epoch,val/acc,val/loss.mean,Epoch time\\n1,0.75,3,20\\n' >metrics.csv ;;
            stdout) echo 'epoch 1: accuracy 0.375, loss 0.5' ;;
            tell) ;;
            esac
        """))
    doc = {"name": "slashes", "metric": {"name": "val/acc", "goal": "maximize"}, "constraints": [{"metric": "val/loss.mean", "max": 1}],
           "parameters": {"way": {"type": "categorical", "values": ["shell", "python", "csv", "stdout"]}}, "search": {"method": "grid"},
           "limits": {"max_concurrent_trials": 1},
           "trial": {"command": ["sh", "train.sh", "${way}"], "directory": folder,
                     "report": {"stdout": r"epoch (?P<step>\d+): accuracy (?P<acc>[0-9.]+), loss (?P<loss>[0-9.]+)",
                                "groups": {"acc": "val/acc", "loss": "val/loss.mean"}, "csv": "metrics.csv", "step": "epoch"},
                     "env": {"PYTHON": PYTHON, "PYTHONPATH": CLIENT}}}
    sweep = p.assay.call("POST", "/v1/sweeps", doc)["id"]
    p.assay.wait_ended(sweep)
    trials = {t["params"]["way"]: t for t in p.assay.trials(sweep)}
    want = {"shell": (0.5, 0.25, True), "python": (0.25, 1, True), "csv": (0.75, 3, False), "stdout": (0.375, 0.5, True)}
    for way, (acc, loss, feasible) in want.items():
        t = trials[way]
        assert t["state"] == "completed" and t["value"] == acc and t["feasible"] == feasible, t
        assert t["metrics"]["val/acc"] == acc and t["metrics"]["val/loss.mean"] == loss, t
    assert trials["python"]["metrics"]["mAP50-95(B)"] == 7 and trials["csv"]["metrics"]["Epoch_time"] == 20, trials
    of_csv = trials["csv"]["number"]
    got = p.assay.call("GET", f"/v1/sweeps/{sweep}/trials/{of_csv}/measurements?metric=val%2Floss.mean")["series"]
    assert got == {"val/loss.mean": {"steps": [1], "values": [3]}}, got
    assert p.assay.call("GET", f"/v1/sweeps/{sweep}/importance?metric=val%2Facc")["metric"] == "val/acc"
    best = p.assay.cli("best", sweep, "--json").stdout
    assert json.loads(best)["items"][0]["params"] == {"way": "shell"}, best
    listed = p.assay.cli("trials", sweep, "--sort", "value", "--desc").stdout
    assert "val/acc" in listed and listed.index("csv") < listed.index("shell") < listed.index("stdout") < listed.index("python"), listed
    for key, want in (("val/loss.mean", ["shell", "stdout", "python", "csv"]), ("way", ["shell", "python", "csv", "stdout"]), ("metric:val/acc", ["python", "stdout", "shell", "csv"])):
        listed = p.assay.cli("trials", sweep, "--sort", key, "--json").stdout
        assert [t["params"]["way"] for t in json.loads(listed)["items"]] == want, (key, listed)
    odd = p.assay.cli("trials", sweep, "--sort", "odd", check=False)
    assert odd.returncode == 64 and "'odd' is no field, parameter or metric" in odd.stderr, odd
    table = os.path.join(folder, "all.csv")
    p.assay.cli("export", sweep, "--csv", "--output", table)
    with open(table) as f:
        assert {"metric.val/acc", "metric.val/loss.mean"} <= set(next(csv.reader(f)))
    doc = {**doc, "name": "slashes-told", "search": {"method": "random"}, "limits": {"max_trials": 4}}
    del doc["trial"]
    told = p.assay.call("POST", "/v1/sweeps", doc)["id"]
    p.assay.cli("trials", "add", told, "--file", table)
    known = {t["params"]["way"]: t["metrics"] for t in p.assay.trials(told)}
    assert known == {way: {k: v for k, v in t["metrics"].items()} for way, t in trials.items()}, known
    alone = p.assay.call("POST", "/v1/sweeps", {**doc, "name": "slashes-asked"})["id"]
    asked = json.loads(p.assay.cli("ask", alone, "--client", "me", "--json").stdout)["items"][0]["number"]
    p.assay.cli("report", alone, str(asked), "--step", "3", "val/acc=0.3", "--client", "me")
    p.assay.cli("tell", alone, str(asked), "val/acc=0.4", "val/loss.mean=0.1", "--client", "me")
    t = p.trial(alone, asked)
    assert t["value"] == 0.4 and t["feasible"], t
    text = p.assay.cli("trial", f"{alone}/{asked}").stdout
    assert "val/loss.mean" in text, text


def skipped(p):
    """A field whose name no metric can have is named where the trial fails for want of a metric."""
    sweep, _ = p.run("""
        import json, os
        with open(os.environ["ASSAY_REPORT"], "w") as f:
            f.write(json.dumps({"val acc": 0.4, "val/loss": 1}) + "\\n")
    """, {"json": "other.jsonl"}, metric="val/acc")
    trial = p.trial(sweep)
    assert trial["state"] == "failed", trial
    for part in ("the metric 'val/acc' was never reported", "reported were val/loss", "skipped were 'val acc'", "a letter or _"):
        assert part in trial["reason"], (part, trial["reason"])


def refused(p):
    bad = ((None, {"stdout": "loss: (?P<loss>[0-9"}, "/trial/report/stdout", "at offset 19"),
           (None, {"stdout": [EPOCHS, "no group"]}, "/trial/report/stdout/1", "no named group"),
           (None, {"stdout": r"(?P<step>\d+)"}, "/trial/report/stdout", "the only named group is step"),
           (None, {"csv": "../m.csv"}, "/trial/report/csv", "below the folder"),
           (None, {"csv": "/etc/passwd"}, "/trial/report/csv", "below the folder"),
           (None, [{"json": "a"}, {"json": "${y}"}], "/trial/report/1/json", "'y'"),
           (None, {"tensorboard": "runs", "tags": {"a": "b c"}}, "/trial/report/tags/a", "name of a metric"),
           (None, {"stdout": EPOCHS, "step": "epoch"}, "/trial/report/step", "csv and json"),
           (None, {"csv": "a", "tags": {}}, "/trial/report/tags", "tensorboard"),
           (None, {}, "/trial/report", "found none"), (None, [], "/trial/report", "empty"), (None, "x", "/trial/report", "a string"),
           (None, {"cvs": "a"}, "/trial/report/cvs", "csv"))
    for _, report, pointer, part in bad:
        try:
            p.run("", report)
        except Problem as e:
            assert e.status == 400 and e.body["errors"][0]["pointer"] == pointer and part in e.body["detail"], (report, e.body)
        else:
            raise AssertionError(report)
    sweep, _ = p.run("", {"csv": "${x}"}, {"x": {"type": "categorical", "values": ["../m"]}})
    assert p.trial(sweep)["state"] == "failed" and "below the program's folder" in p.trial(sweep)["reason"], p.trial(sweep)


def main():
    with Assay(runners=2) as assay:
        programs = Programs(assay)
        names = sys.argv[1:]
        for case in (printed, live, rewritten, old_files, shared_file, shared_runs, slow_pattern, buffered, came_near, notes, slashes, skipped, refused, much_output):
            if names and case.__name__ not in names:
                continue
            began = time.monotonic()
            case(programs)
            print(f"{case.__name__}: ok, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
