"""`assay fit`: from a messy table to a model, where no server runs before. The commands that it prints work when they
are pasted, the document that --print shows is one that `assay run` takes, and bad input is refused by its name.

Few trials and much time, so that a slow machine gives the same result."""
import contextlib
import csv
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness import ASSAY, BUILD, PATIENCE_S, Assay


PROGRAM = """
import assay, copy, importlib.util, os, pickle
rows = [{"id": 9000 + i, "age": i * 7919 % 61 if i % 20 else None, "town": "Ulm" if i * 104729 % 11 < 5 else "Bern, west"} for i in range(200)]
for row in rows:
    row["again"] = (row["age"] or 30) + 25 * (row["town"] == "Ulm") + row["id"] * 7907 % 23 > 55
model = assay.fit(rows, "again", trials=2, name="rows", time="5m", verbose=False)
assert model.metric == "auc" and model.interval[0] < model.score <= model.interval[1] and model.classes == [False, True], model
assert any("`id`: another value in each row" in r for r in model.remarks), model.remarks
unlabelled_all = [{k: v for k, v in row.items() if k != "again"} for row in rows]
unlabelled = unlabelled_all[:9]
found = model.predict(unlabelled)
shares = model.predict_proba(unlabelled)
assert [p[1] > 0.5 for p in shares] == found and all(abs(sum(p) - 1) < 1e-5 for p in shares), (found, shares)
assert sum(a == row["again"] for a, row in zip(found, rows)) >= 6, found
assert [t["value"] for t in model.leaderboard()] == sorted((t["value"] for t in model.leaderboard()), reverse=True)
model.save("rows.safetensors")
folder = model._folder
del model
assert os.path.getsize("rows.safetensors") > 0 and not os.path.exists(folder)
loaded = assay.load_model("rows.safetensors")
assert loaded.classes == ["false", "true"] and loaded.predict_proba(unlabelled) == shares and loaded.metric == "auc", loaded
folders = {loaded._folder, pickle.loads(pickle.dumps(loaded))._folder}  # the other object has ended, with a folder of its own
again = copy.copy(loaded)
assert len(folders) == 2 and os.path.exists(loaded._path) and again.predict_proba(unlabelled) == shares, folders
values = [" yes " if row["again"] else "no" for row in rows]
model = assay.fit(unlabelled_all, values, test=(unlabelled_all[:50], values[:50]), trials=1, name="values", time="5m", verbose=False)
assert model.classes == ["no", " yes "] and model.test > 0.5, (model.classes, model.test)
assert "50 of 50 test rows are rows of the table, too: their figure is too good" in model.remarks, model.remarks
coded = [{**row, "age": -999.0 if row["age"] is None else row["age"]} for row in rows]
model = assay.fit(coded, "again", trials=1, name="coded", time="5m", missing=(-999, 9999), verbose=False)
assert not any("-999" in r for r in model.remarks), model.remarks
assert model.predict_proba(coded[:21]) == model.predict_proba(rows[:21])
for bad, words in ((lambda: assay.fit(rows, "agin"), "there is no column 'agin'; did you mean 'again'?"),
                   (lambda: assay.fit(unlabelled_all, values, test=rows[:9]), "test: there is no column 'target', the target"),
                   (lambda: assay.load_model(assay.__file__), "is no model file"),
                   (lambda: loaded.predict([{"age": 4}]), "the table: line 1: there is no column"), (lambda: assay.fit(7, "y"), "the table is int"),
                   (lambda: assay.fit({"a": [1, 2], "b": [1]}, "b"), "[1, 2] rows"), (lambda: assay.fit(rows, [1, 2]), "2 values for 200 rows"),
                   (lambda: assay.fit(rows, "again", metric="rmse"), "--metric: found 'rmse'")):
    try:
        bad()
        raise SystemExit("not refused: " + words)
    except assay.AssayError as e:
        assert words in str(e), e
if importlib.util.find_spec("pandas"):
    import numpy, pandas
    frame = pandas.DataFrame(rows, index=range(500, 700))
    model = assay.fit(frame, "again", trials=2, name="frame", time="5m", test=frame[:40], verbose=False)
    assert model.test > 0.5 and list(model.predict(frame[:3]).index) == [500, 501, 502] and len(model.leaderboard()) == 2
    x = numpy.array([[i % 13, i * 7919 % 61] for i in range(200)], dtype=float)
    model = assay.fit(x, x[:, 0] * 2.5 + x[:, 1] / 7, trials=1, name="array", time="5m", verbose=False)
    assert model.predict(x[:4]).shape == (4,) and model.metric == "rmse" and model.classes is None
"""


def write_table(path, rows, separator=";"):
    """Identifiers, a text among numbers, decimal commas, dates, quoted separators, gaps, a rare class; infinite numbers, and at
    the end rows without a target."""
    with open(path, "w") as f:
        f.write(separator.join(["id", "age", "income", "joined", "town", "", "limit [k, €]", "churn"]) + "\n")
        for i in range(rows + 4):
            m = i * 2654435761 % 4294967291
            churn = ("", "NA", "?", "null")[i - rows] if i >= rows else None
            town = ("Rome", '"Ulm; east"', "Oslo", "")[m // 7 % 4]
            cells = [str(5000 + i), "heavy" if i == 17 else str(20 + m // 11 % 60), f"{m % 9000 / 7 + 0.5:.2f}".replace(".", ","),
                     f"20{10 + m % 12}-0{1 + m % 9}-1{m // 3 % 9}", town, "x", "inf" if i == 9 else str(m % 31),
                     churn if churn is not None else "yes" if town == "Oslo" and m % 5 == 0 else "no"]
            f.write(separator.join(cells) + "\n")


def write_numbers(path, rows):
    with open(path, "w") as f:
        f.write("a,b,y\n")
        for i in range(rows):
            m = i * 2654435761 % 4294967291
            f.write(f"{m % 977 / 10},{m % 13},{(m % 977) ** 2 / 50 + m % 13}\n")


def write_skewed(path, rows):
    """The target's logarithm is a line, from 1 to 50,000."""
    with open(path, "w") as f:
        f.write("a,b,price\n")
        for i in range(rows):
            a, b = i * 37 % 100 / 10, i % 13
            f.write(f"{a},{b},{math.exp(a + b / 13):.3f}\n")


FIRST = "# First trials, which were good on public tables:"


def fit(assay, work, *args, check=True, **env):
    done = subprocess.run([ASSAY, "fit", *args], capture_output=True, text=True, env={**assay.env, **env}, cwd=work, timeout=2 * PATIENCE_S)
    assert not check or done.returncode == 0, (args, done.stdout, done.stderr)
    return done


def check_slow_start(assay, work):
    """What `assay up` takes to start is no part of --time: it is held here for longer than all of it."""
    with subprocess.Popen([ASSAY, "fit", "numbers.csv", "--target", "y", "--time", "10s", "--trials", "1", "--no-warm", "--name", "slow"],
                          text=True, cwd=work, env=assay.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        line = next(x for x in run.stderr if "No server runs" in x)
        while not (pid := child_up(work)):
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.01)
        up = Started(pid)
        os.kill(up.pid, signal.SIGSTOP)
        time.sleep(10.5)
        os.kill(up.pid, signal.SIGCONT)
        said = line + run.stderr.read()
    up.end()
    took = re.search(r"It was ready after (\S+) s, which --time does not count\. .*`kill (\d+)` ends it", said)
    assert took and float(took.group(1)) > 10 and int(took.group(2)) == up.pid, said
    assert "Sweep slow-fit: by val_rmse" in said and "nothing is left" not in said, said


def child_up(work):
    """The pid of the `assay up` that was started in this folder. Its environment would not say it: it is cleared at the start."""
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if b"\0up\0--runners\0" in open(path + "/cmdline", "rb").read() and os.path.samefile(path + "/cwd", work):
                return int(os.path.basename(path))
    return None


def check_start(assay, work):
    """Nothing runs: `assay up` is started, and goes on."""
    done = fit(assay, work, "My Table.csv", "--target", "churn", "--time", "5m", "--trials", "3", "--row-time", "1m",
               "--output", "churn.model")
    for words in ("`id`: another value in each row", "`age`: 1 of 300 values is no number ('heavy', line 19); treated as",
                  'Left out: id,""', r"Taken as numbers, and as missing where they are none: age,limit \[k\, €]", "No server runs",
                  "4 of 304 rows lack `churn` (the first: line 302) and are left out"):
        assert words in done.stderr, (words, done.stderr)
    pid = int(re.search(r"`kill (\d+)` ends it", done.stderr).group(1))
    report = done.stdout
    assert re.search(r"^Score +auc 0\.\d+ \(90 % interval \S+ to \S+\), 300 rows", report, re.M), report
    assert re.search(r"^Model +my-table@1, ", report, re.M) and re.search(r"^One row +\S+ ms$", report, re.M), report
    return pid, report


def command(report, name):
    """What stands behind a label, without the words in brackets behind it."""
    return re.search(rf"^{name} +(assay .*?)(   \(.*)?$", report, re.M).group(1)


def check_commands(assay, work, report):
    shell = dict(assay.env, PATH=os.path.dirname(ASSAY) + ":" + os.environ["PATH"])
    run = lambda text: subprocess.run(["sh", "-c", text], capture_output=True, text=True, env=shell, cwd=work, timeout=PATIENCE_S)
    predicted = run(command(report, "Predict"))
    assert predicted.returncode == 0, predicted.stderr
    assert {row["prediction"] for row in csv.DictReader(predicted.stdout.splitlines())} <= {"yes", "no"}
    exported = run(command(report, "Export"))
    assert exported.returncode == 0, exported.stderr
    serve = command(report, "Serve").split()
    assert serve[:2] == ["assay", "serve"], serve
    address = os.path.join(work, "address")
    with subprocess.Popen([ASSAY, *serve[1:], "--listen", "127.0.0.1:0", "--address-file", address], env=shell, cwd=work,
                          stderr=subprocess.DEVNULL) as server:
        try:
            assay.wait(lambda: os.path.exists(address) and open(address).read(), "assay serve")
            with urllib.request.urlopen(open(address).read().strip() + "/v2/health/live", timeout=PATIENCE_S) as answer:
                assert answer.status == 200
        finally:
            server.terminate()


def check_documents(assay, work):
    """What --print shows is a document of this server; nothing else is done."""
    before = len(json.loads(assay.cli("sweeps", "--json").stdout)["items"])
    for args in (["--size", "100k"], ["--groups", "joined", "--time", "1d", "--metric", "f1"], ["--folds", "1", "--size", "1GB"]):
        printed = fit(assay, work, "My Table.csv", "--target", "churn", *args, "--print").stdout
        with open(os.path.join(work, "printed.yaml"), "w") as f:
            f.write(printed)
        assay.cli("run", os.path.join(work, "printed.yaml"), "--paused")
    assert len(json.loads(assay.cli("sweeps", "--json").stdout)["items"]) == before + 3


def check_kinds(assay, work):
    """For a column of twelve towns: a network that embeds them, and a random forest with trees of its own number."""
    path = os.path.join(work, "towns.csv")
    with open(path, "w") as f:
        f.write("town,a,y\n" + "".join(f"t{i * 31 % 12},{i * 7919 % 61},{i * 31 % 12 + i * 7919 % 61 / 9}\n" for i in range(160)))
    printed = fit(assay, work, "towns.csv", "--target", "y", "--folds", "2", "--size", "500kB", "--no-warm", "--print").stdout
    assert "  embedding: {type: categorical, values: [0, 8], when: {kind: mlp}}\n" in printed, printed
    trees = int(re.search(r"  trees: {type: constant, value: (\d+), ", printed)[1])
    assay.cli("data", "add", "towns", path, "--target", "y")
    with open(os.path.join(work, "towns.yaml"), "w") as f:
        f.write(re.sub("epochs: [0-9]+", "epochs: 3", re.sub("max_trials: [0-9]+", "max_trials: 2", printed)))
    assay.cli("run", os.path.join(work, "towns.yaml"), "--paused")
    network = {"kind": "mlp", "width": 32, "dropout": 0.1, "lr": 0.003, "numbers": "none", "embedding": 8}
    forest = {"kind": "random_forest", "trees": trees, "per_split": 0.5, "leaf_weight": 20, "refit": True}
    for params in (network, forest):
        assay.call("POST", "/v1/sweeps/towns-fit/trials", {"params": params})
    assay.cli("resume", "towns-fit")
    assert assay.wait_ended("towns-fit")["counts"]["completed"] == 2, assay.trials("towns-fit")
    for trial, wanted in ((0, rb"members/1/categories.weight"), (1, rb"n_estimators\W+%d\b" % trees)):
        model = os.path.join(work, "towns.model")
        assay.cli("artifacts", "get", f"towns-fit/{trial}", "model.safetensors", "--output", model)
        assert re.search(wanted, open(model, "rb").read()), (trial, wanted)
        assert len(assay.cli("predict", model, "--data", path).stdout.split()) == 161


def check_numbers(assay, work):
    """A regression with test rows, as JSON, on the server that runs."""
    done = fit(assay, work, "numbers.csv", "--target", "y", "--test", "numbers-test.csv", "--trials", "2", "--time", "5m", "--json")
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["model"], report["version"], report["metric"]) == ("numbers", 1, "rmse"), report
    assert report["interval"]["low"] < report["value"] < report["interval"]["high"], report
    assert report["test"]["value"] > 0 and report["size"] > 0 and report["row_ms"] > 0, report
    assert "40 of 40 test rows are rows of the table, too: their figure is too good" in report["remarks"], report
    alone = fit(assay, work, "numbers.csv", "--target", "y", "--test", "numbers-test.csv", "--trials", "1", "--time", "5m", "--row-time", "0s", "--json")
    alone = json.loads(alone.stdout.splitlines()[-1])  # no ensemble measured it: its own test figure
    assert alone["slower"] is None and alone["row_ms"] > 0, alone  # no row takes no time, and there is no smaller model
    assert alone["metric"] == "rmse" and alone["interval"] is None and alone["test"]["value"] > 0, alone
    small = fit(assay, work, "numbers.csv", "--target", "y", "--size", "1kB", "--trials", "4", "--time", "5m", "--name", "small")
    sizes = [sum(a["size"] for a in assay.call("GET", f"/v1/sweeps/small-fit/trials/{n}/artifacts")["items"] if a["path"] == "model.safetensors")
             for n in range(4)]
    assert "Size         more than 1.0 kB (--size): no smaller model was found; a model of " in small.stdout, small.stdout
    assert assay.call("GET", "/v1/models/small/versions/1")["size"] < sorted(sizes)[1], (sizes, small.stdout)
    document = assay.sweep(report["sweep"])["document"]
    assert document["limits"]["max_trials"] == 2 and document["trial"]["train"]["validation"]["folds"] == 10, document


def check_written_numbers(assay, work):
    """Thousands, dollars and percent are numbers in a column and in the target; a row to predict may have them or not."""
    with open(os.path.join(work, "cars.csv"), "w") as f:
        f.write("km,used,price\n")
        for i in range(200):
            km, used = 5000 + i * 7919 % 90000, i * 31 % 97
            f.write(f'"{km:,}",{used}%,"${40000 - km * 0.3 - used * 20:,.2f}"\n')
    done = fit(assay, work, "cars.csv", "--target", "price", "--trials", "1", "--time", "5m", "--json")
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["metric"] == "rmse", report
    assert any("`km`: numbers that are written with signs ('5,000', line 2)" in r for r in report["remarks"]), report["remarks"]
    assert "`price`: numbers that are written with signs ('$38,500.00'), and taken as numbers" in report["remarks"], report["remarks"]
    with open(os.path.join(work, "new.csv"), "w") as f:
        f.write('km,used\n"12,500",40%\n12500,40\n')
    rows = assay.cli("predict", "cars", "--data", os.path.join(work, "new.csv")).stdout.split()[1:]
    assert rows[0] == rows[1] and 20000 < float(rows[0]) < 45000, rows


def check_layers(assay, work):
    """A second layer from the one command: its sweep sees trials of the first, and one ensemble is chosen of both. The target is
    skewed: trials learn it in both ways, and predict it in its own unit."""
    args = ["skewed.csv", "--target", "price", "--metric", "mae", "--no-warm", "--time", "5m"]
    done = fit(assay, work, *args, "--name", "deep", "--layers", "2", "--folds", "2", "--trials", "3", "--json", "--output", "deep.model")
    report = json.loads(done.stdout.splitlines()[-1])
    assert {t["params"]["transform"] for t in assay.trials("deep-fit")} == {"none", "log"}
    predicted = assay.cli("predict", os.path.join(work, "deep.model"), "--data", os.path.join(work, "skewed.csv")).stdout.splitlines()[1:]
    true = [float(line.split(",")[2]) for line in open(os.path.join(work, "skewed.csv")).read().splitlines()[1:]]
    mean = sum(true) / len(true)  # a model of logarithms whose predictions are logarithms is off by nearly this
    assert sum(abs(float(p) - t) for p, t in zip(predicted, true)) / len(true) < mean / 2, (predicted[:3], true[:3])
    printed = fit(assay, work, *args, "--print").stdout
    assert "  transform: {type: categorical, values: [none, log]}" in printed and "--print" in printed, printed
    assert (report["sweep"], report["layer"], report["metric"]) == ("deep-fit", "deep-fit-layer2", "mae"), report
    layer = assay.sweep("deep-fit-layer2")
    stack = layer["document"]["trial"]["train"]["stack"]
    assert len(stack) == 3 == layer["counts"]["completed"] and all(s.startswith("deep-fit/") for s in stack), layer
    asked = assay.call("GET", "/v1/sweeps/deep-fit/ensembles")["items"]
    assert any(e["request"]["sweeps"][1:] == ["deep-fit-layer2"] and e["ensemble"]["metric"] == "mae" for e in asked), asked
    printed = fit(assay, work, "again.csv", "--target", "y", "--print").stdout
    assert "layer2" not in printed, printed  # it learned something else


def check_defaults(assay, work):
    """No server runs and none has seen anything: the document says with what the search begins, and --no-warm leaves it out."""
    printed = fit(assay, work, "numbers.csv", "--target", "y", "--print").stdout
    assert re.search(rf"^{FIRST}\n(#   kind=\S+ .*\n)+", printed, re.M), printed
    cold = fit(assay, work, "numbers.csv", "--target", "y", "--no-warm", "--print").stdout
    assert FIRST not in cold and cold.splitlines()[1:] == [x for x in printed.splitlines()[1:] if x != FIRST and not x.startswith("#   ")], cold


def check_warm(assay, work):
    """A second fit begins with what the first one found on a similar table, unless it is told not to."""
    fit(assay, work, "numbers.csv", "--target", "y", "--name", "first", "--trials", "3", "--time", "5m", "--no-warm")
    params = dict(next(t["params"] for t in assay.trials("first-fit") if t["params"]["kind"] == "boosted_trees"), rate=0.123, leaves=9)
    assay.call("POST", "/v1/sweeps/first-fit/trials", {"params": params, "metrics": {"val_rmse": 0.001}})  # so this is the best
    printed = fit(assay, work, "again.csv", "--target", "y", "--print").stdout
    assert "prior: [first-fit" in printed and "# Warm start (search.prior): first-fit (200 rows, 2 columns)" in printed, printed
    done = fit(assay, work, "again.csv", "--target", "y", "--trials", "2", "--time", "5m")
    assert "Warm start: the search begins with the best configurations of first-fit (200 rows, 2 columns)" in done.stderr, done.stderr
    sweep = assay.sweep("again-fit")
    assert sweep["document"]["search"]["prior"][0]["sweep"] == "first-fit", sweep["document"]["search"]
    began = next(t["params"] for t in assay.trials("again-fit") if t["number"] == 0)
    assert (began["kind"], began["rate"], began["leaves"]) == ("boosted_trees", 0.123, 9), began
    assert "of the first trials were good on public tables" in done.stderr and FIRST in printed, done.stderr  # behind what was seen
    cold = fit(assay, work, "again.csv", "--target", "y", "--no-warm", "--print").stdout
    assert "prior" not in cold and FIRST not in cold, cold
    other = fit(assay, work, "My Table.csv", "--target", "churn", "--print").stdout  # classes, not numbers
    assert "first-fit" not in other, other


def check_python(assay, work):
    """assay.fit(): tables of the language itself, and of pandas and numpy where they are installed."""
    program = os.path.join(work, "program.py")
    with open(program, "w") as f:
        f.write(PROGRAM)
    done = subprocess.run([sys.executable, "-W", "error", program], capture_output=True, text=True, cwd=work, timeout=2 * PATIENCE_S,
                          env=dict(assay.env, PYTHONPATH=os.path.join(BUILD, "clients", "python")))
    assert done.returncode == 0, done.stdout + done.stderr


def check_places(assay, work):
    """A search is not lost for a place that cannot be written at its end, nor for test rows without a target."""
    with open(os.path.join(work, "numbers-test.csv")) as f, open(os.path.join(work, "gaps-test.csv"), "w") as out:
        out.write(f.read() + "1,2,\n")
    args = ["numbers.csv", "--target", "y", "--trials", "1", "--time", "5m", "--no-warm"]
    done = fit(assay, work, *args, "--test", "gaps-test.csv", TMPDIR="/nonexistent")
    assert "The time of a row is not known: cannot create the temporary file" in done.stderr, done.stderr
    assert re.search(r"^Test .* test rows$", done.stdout, re.M) and command(done.stdout, "Predict"), done.stdout
    done = fit(assay, work, *args, "--output", "/dev/full", check=False)
    kept = re.search(r"The model is kept as (numbers@\d+): `assay models get", done.stderr)
    assert done.returncode == 1 and kept and "No space left on device" in done.stderr, done.stderr
    assay.cli("models", "show", kept.group(1))


def check_refused(assay, work):
    with open(os.path.join(work, "twice.csv"), "w") as f:
        f.write("a,a,y\n1,2,0\n3,4,1\n5,6,0\n")
    with open(os.path.join(work, "lacks.csv"), "w") as f:
        f.write("a,b\n1,2\n3,4\n")
    with open(os.path.join(work, "alone.csv"), "w") as f:
        f.write("a,y\n1,0\n2,1\n3,0\n")
    for args, words in (
        (["numbers.csv"], "expected --target COLUMN"),
        (["numbers.csv", "--target", "z"], "there is no target column 'z'; the columns are: a, b, y"),
        (["numbers.csv", "--target", "Y"], "there is no target column 'Y'; did you mean 'y'? The columns are: a, b, y"),
        (["numbers.csv", "--target", "y", "--test", "no.csv"], "cannot open no.csv"),
        (["numbers.csv", "--target", "y", "--test", "lacks.csv"], "lacks.csv: there is no target column 'y'"),
        (["numbers.csv", "--target", "y", "--test", "."], ". is a folder, expected a regular file"),
        (["numbers.csv", "--target", "y", "--trials", "0"], "--trials: found 0, expected 1 to 1000000"),
        (["numbers.csv", "--target", "y", "--folds", "0"], "--folds: found 0, expected 1 or more"),
        ([".", "--target", "y"], ". is a folder, expected a CSV file"),
        (["numbers.csv", "--target", "y", "--metric", "auc"], "--metric: found 'auc', expected one of rmse, mae, r2, mape"),
        (["numbers.csv", "--target", "y", "--groups", "who"], "--groups: there is no column 'who'"),
        (["numbers.csv", "--target", "y", "--layers", "3"], "--layers: found 3, expected 1 or 2"),
        (["numbers.csv", "--target", "y", "--layers", "2", "--groups", "a"], "--layers: found 2 beside --groups"),
        (["numbers.csv", "--target", "y", "--folds", "99"], "--folds: found 99, expected 1"),
        (["numbers.csv", "--target", "y", "--time", "2s"], "--time: found 2000 ms, expected 10s or more"),
        (["numbers.csv", "--target", "y", "--size", "big"], "--size: found 'big'"),
        (["numbers.csv", "--target", "y", "--missing", "-999,none"], "--missing: found 'none', expected a number"),
        (["My Table.csv", "--target", "churn", "--groups", "town"], "--groups: column 'town' lacks "),
        (["none.csv", "--target", "y"], "none.csv"),
        (["numbers.csv", "--target", "y", "--output", "none/model"], "--output: cannot create a file beside none/model"),
        (["numbers.csv", "--target", "y", "--output", "."], "--output: . is a folder"),
        (["twice.csv", "--target", "y"], "columns 1 and 2 have one name, 'a'"),
        (["alone.csv", "--target", "y"], "column 'y': the class '1' has one row, expected 2 or more of each"),
    ):
        done = fit(assay, work, *args, check=False)
        assert done.returncode != 0 and words in done.stderr, (args, done.stderr)


class Started:
    """The `assay up` that is nobody's child: enough of a Popen for the harness."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        while self.poll() is None:  # its own stop has a limit of fifteen seconds
            time.sleep(0.05)


def main():
    assay = Assay()  # for its folder and cluster: `assay fit` starts the rest
    work = tempfile.mkdtemp(prefix="assay-fit-")
    assay.give_cluster()
    assay.env = {k: v for k, v in os.environ.items() if k not in ("ASSAY_SERVER", "ASSAY_PROFILE", "ASSAY_TOKEN", "ASSAY_TOKEN_FILE")}
    assay.env.update(ASSAY_DATA=assay.data, XDG_STATE_HOME=assay.data, HOME=assay.data)
    write_table(os.path.join(work, "My Table.csv"), 300)
    write_numbers(os.path.join(work, "numbers.csv"), 200)
    write_numbers(os.path.join(work, "numbers-test.csv"), 40)
    write_numbers(os.path.join(work, "again.csv"), 300)
    write_skewed(os.path.join(work, "skewed.csv"), 200)
    try:
        check_refused(assay, work)
        check_defaults(assay, work)
        check_slow_start(assay, work)
        pid, report = check_start(assay, work)
        assay.up = Started(pid)
        note = json.load(open(os.path.join(assay.data, "assay", "up", f"{pid}.json")))
        assay.url, assay.token = note["url"].rstrip("/"), open(note["token_file"]).read().strip()
        check_commands(assay, work, report)
        check_documents(assay, work)
        check_kinds(assay, work)
        check_numbers(assay, work)
        check_written_numbers(assay, work)
        check_layers(assay, work)
        check_warm(assay, work)
        check_python(assay, work)
        check_places(assay, work)
    finally:
        if assay.up:
            assay.up.end()
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(assay.data, ignore_errors=True)


main()
