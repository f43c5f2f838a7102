"""Public tables on which the shipped defaults of `assay fit` are learned and judged (defaults.py). None of them is in this
repository, and none is a table that the project is tested on or that its acceptance may use.

Each is a file of a public git repository, read from a clone (`git show HEAD:PATH`), so that no table is copied into this one."""
import csv
import io
import os
import random
import re
import subprocess

TARGET = "target"
MOST_ROWS = 1000  # of a table; the others are left out by a draw

# name: (repository, path, target: the name of a column; None: the last)
ARFF = "renatopp/arff-datasets"
R = "vincentarelbundock/Rdatasets"
CSV = "jbrownlee/Datasets"
LEARNED = {
    # two classes
    "credit-g": (ARFF, "classification/credit.g.arff", None),
    "kr-vs-kp": (ARFF, "classification/kr.vs.kp.arff", None),
    "ionosphere": (ARFF, "classification/ionosphere.arff", None),
    "tic-tac-toe": (ARFF, "classification/tic-tac-toe.arff", None),
    "sick": (ARFF, "classification/sick.arff", None),
    # more classes
    "car": (ARFF, "classification/car.arff", None),
    "vehicle": (ARFF, "classification/vehicle.arff", None),
    "segment": (ARFF, "classification/segment.arff", None),
    "cmc": (ARFF, "classification/cmc.arff", None),
    "splice": (ARFF, "classification/splice.arff", None),
    # numbers
    "auto-mpg": (ARFF, "regression/autompg.arff", None),
    "cpu-small": (ARFF, "regression/cpu.small.arff", None),
    "kin8nm": (ARFF, "regression/kin8nm.arff", None),
    "stock": (ARFF, "regression/stock.arff", None),
    "triazines": (ARFF, "regression/triazines.arff", None),
}
JUDGED = {
    "banknotes": (CSV, "banknote_authentication.csv", 4),
    "pima": (CSV, "pima-indians-diabetes.csv", 8),
    "credit-a": (ARFF, "classification/credit.a.arff", None),
    "attrition": (R, "csv/modeldata/attrition.csv", "Attrition"),
    "dermatology": (ARFF, "classification/dermatology.arff", None),
    "page-blocks": (ARFF, "classification/page.blocks.arff", None),
    "vowel": (ARFF, "classification/vowel.arff", None),
    "bank8fm": (ARFF, "regression/bank8FM.arff", None),
    "puma8nh": (ARFF, "regression/puma8NH.arff", None),
    "saratoga": (R, "csv/mosaicData/SaratogaHouses.csv", "price"),
}


def read_arff(text):
    head, body = re.split(r"(?im)^\s*@data\s*$", text, maxsplit=1)
    names = [(q or d or p).strip() for q, d, p in re.findall(r"""(?im)^\s*@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))""", head)]
    lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("%")]
    rows = [[c.strip().strip("'\"") for c in r] for r in csv.reader(lines, quotechar="'", skipinitialspace=True)]
    rows = [r[:-1] if len(r) == len(names) + 1 and r[-1] == "" else r for r in rows]  # a comma at the line's end
    return names, [["" if c == "?" else c for c in r] for r in rows if len(r) == len(names)]


def _read_csv(text, repository):
    rows = list(csv.reader(io.StringIO(text)))
    if repository == CSV:  # without a header
        return [f"x{i}" for i in range(len(rows[0]))], rows
    return rows[0][1:], [["" if c == "NA" else c for c in r[1:]] for r in rows[1:]]  # the first column is a number of the row


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(clones, name):
    """(names, rows, task) of a table: its target last, named TARGET; at most MOST_ROWS rows, in an order drawn once.
    clones: a folder with OWNER+NAME/repo, a git directory of each repository."""
    repository, path, target = {**LEARNED, **JUDGED}[name]
    git = os.path.join(clones, repository.replace("/", "+"), "repo")
    text = subprocess.run(["git", "-C", git, "show", f"HEAD:{path}"], capture_output=True, check=True).stdout.decode("utf-8", "replace")
    names, rows = read_arff(text) if path.endswith(".arff") else _read_csv(text, repository)
    at = len(names) - 1 if target is None else target if isinstance(target, int) else names.index(target)
    order = [i for i in range(len(names)) if i != at] + [at]
    rows = [[r[i] for i in order] for r in rows if r and r[at] != ""]
    random.Random(1).shuffle(rows)
    values = {r[-1] for r in rows}
    numbers = all(_is_number(v) for v in values)
    task = "regression" if numbers and len(values) > 20 else "classification"
    if task == "classification":
        rows = [r[:-1] + [f"c{r[-1]}"] for r in rows]
    plain = [re.sub(r"[^A-Za-z0-9_]", "_", names[i]) for i in order[:-1]]
    return [f"c{i}_{n}" for i, n in enumerate(plain)] + [TARGET], rows[:MOST_ROWS], task
