#!/usr/bin/env python3
"""Search methods on the surrogates of YAHPO Gym (https://github.com/slds-lmu/yahpo_data): learners of two large studies
of real tuning runs (rbv2, iaml), flat as other tools get them or with the conditions that the project declares.

    yahpo.py data REPOSITORY DIR
    yahpo.py run BUILD --data DIR --surrogate FILE --out FILE.jsonl [--problems rbv2_svm-37,...] [--methods gp,random]
             [--seeds 5] [--first-seed 1] [--trials 110] [--pending 1] [--declared] [--optuna-path DIR]
    yahpo.py learned BUILD --data DIR --surrogate FILE [--problems ...] [--seeds 10] [--first-seed 1] [--trials 110]
    yahpo.py report FILE.jsonl... [--methods gp,random,tpe,hebo,botorch] [--half tune|report] [--at 110]

`data` copies the models and spaces out of a clone of yahpo_data (its git directory): for each scenario the newest model that a
clone without large files has, with the encoding and the space of that commit. FILE is a program like
../shared/bench/surrogate.py, of which Model and OPS are used. Methods: those of the search (driven by
build/bench/search-ask, without a server), `tpe`, `optuna-gp` (Optuna), `hebo`, `botorch` (the recipes). A sweep that the
file of results has is not run again. `:flat` and `:declared` spaces of one problem are two problems.

Regret is (best value - the best that anything found) / (median of random points - that best), so 1 is a random
point's. The best that anything found includes 20,000 random points and climbs from the best of them.

`learned` counts what `gp` says has no effect at the last trial: wrong, if among 400 random points with that value, drawing
the number anew changes the value by more than 0.02 (in the unit of regret) in more than one of twenty."""
import argparse
import collections
import importlib.util
import json
import math
import os
import random
import statistics
import subprocess
import sys

import numpy as np

from peer_protocol import Asked

HERE = os.path.dirname(os.path.abspath(__file__))
OLD_RBV2 = ["mmce", "f1", "auc", "logloss", "timetrain", "timepredict"]
RBV2 = ["acc", "bac", "auc", "brier", "f1", "logloss", "timetrain", "timepredict", "memory"]
IAML = ["mmce", "f1", "auc", "logloss", "ramtrain", "rammodel", "rampredict", "timetrain", "timepredict", "mec", "ias", "nf"]
XGBOOST = ["nrounds", "eta", "gamma", "lambda", "alpha", "subsample", "max_depth", "min_child_weight", "colsample_bytree",
           "colsample_bylevel", "rate_drop", "skip_drop"]
RPART, GLMNET, SVM = ["cp", "maxdepth", "minbucket", "minsplit"], ["alpha", "s"], ["cost", "gamma", "tolerance", "degree"]
FOREST, AKNN = ["num.trees", "sample.fraction", "mtry.{}", "min.node.size", "num.random.splits"], ["k", "M", "ef", "ef_construction"]
IMPUTE, FULL = "num.impute.selected.cpo", {"trainsize": 1.0, "repl": 10, "epoch": 98}


def of(learner, names, *more):
    return [f"{learner}.{name.format(*more)}" for name in names]


def forest(share):
    return [name.format(share) for name in FOREST]


RBV2_SUPER = (of("svm", SVM) + of("glmnet", GLMNET) + of("rpart", RPART) + of("ranger", FOREST, "power") + of("aknn", AKNN)
              + of("xgboost", XGBOOST))
IAML_SUPER = of("ranger", FOREST, "ratio") + of("rpart", RPART) + of("glmnet", GLMNET) + of("xgboost", XGBOOST)
EDGES = [f"edge_{kind}_{i}" for kind in ("normal", "reduce") for i in range(14)]
INPUTS = [f"inputs_node_{kind}_{i}" for kind in ("normal", "reduce") for i in (3, 4, 5)]

# The order of a model's inputs and outputs (yahpo_gym/benchmarks of the date of the data): numbers and categories after the
# task, the targets, the target that is searched, and whether more of it is better.
SCENARIOS = {
    "rbv2_svm": (SVM, ["kernel", IMPUTE], OLD_RBV2, "mmce", False),
    "rbv2_aknn": (AKNN, ["distance", IMPUTE], OLD_RBV2, "mmce", False),
    "rbv2_glmnet": (GLMNET, [IMPUTE], OLD_RBV2, "mmce", False),
    "rbv2_ranger": (forest("power"), ["respect.unordered.factors", "splitrule", IMPUTE], OLD_RBV2, "logloss", False),
    "rbv2_rpart": (RPART, [IMPUTE], RBV2, "auc", True),
    "rbv2_super": (RBV2_SUPER, ["learner", "svm.kernel", "ranger.respect.unordered.factors", "ranger.splitrule", "aknn.distance",
                                "xgboost.booster", IMPUTE], OLD_RBV2, "mmce", False),
    "iaml_glmnet": (GLMNET, [], IAML, "auc", True),
    "iaml_rpart": (RPART, [], IAML, "mmce", False),
    "iaml_ranger": (forest("ratio"), ["replace", "respect.unordered.factors", "splitrule"], IAML, "logloss", False),
    "iaml_xgboost": (XGBOOST, ["booster"], IAML, "mmce", False),
    "iaml_super": (IAML_SUPER, ["learner", "ranger.replace", "ranger.respect.unordered.factors", "ranger.splitrule",
                                "xgboost.booster"], IAML, "mmce", False),
    "nb301": ([], EDGES + INPUTS, ["val_accuracy", "runtime"], "val_accuracy", True),
}
# The commit of yahpo_data and the model's file in it; the order above is that of this commit.
FIRST, SECOND, THIRD, LAST = "3a646b8", "24aa31f", "c311f80", "efdab90"
COMMITS = {
    **dict.fromkeys(["rbv2_svm", "rbv2_aknn", "rbv2_glmnet", "rbv2_ranger", "rbv2_super", "nb301"], (FIRST, "new_model.onnx")),
    **dict.fromkeys(["iaml_rpart", "iaml_ranger", "iaml_xgboost"], (SECOND, "new_model.onnx")),
    "iaml_super": (THIRD, "new_model.onnx"), "iaml_glmnet": (LAST, "model.onnx"), "rbv2_rpart": (LAST, "model.onnx"),
}
TASKS = {"tune": {"rbv2": ["31", "1489", "40981"], "iaml": ["40981", "41146"], "nb301": ["CIFAR10"]},
         "report": {"rbv2": ["37", "1494", "23381", "4538"], "iaml": ["1067", "1489"], "nb301": []}}


def problems_of(half=None):
    if half is None:
        return problems_of("tune") + problems_of("report")
    names = []
    for scenario in SCENARIOS:
        for task in TASKS[half][scenario.split("_")[0]]:
            names.append(f"{scenario}-{task}")
    return names


def load_model(given, scenario):
    spec = importlib.util.spec_from_file_location("surrogate", given.surrogate)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.OPS.update({
        "MatMul": lambda x, at: x[0] @ x[1],
        "Clip": lambda x, at: np.clip(x[0], at.get("min", -np.inf) if len(x) < 2 or x[1] is None else x[1],
                                      at.get("max", np.inf) if len(x) < 3 or x[2] is None else x[2]).astype(x[0].dtype),
        "Selu": lambda x, at: (1.0507009873554805 * np.where(x[0] > 0, x[0], 1.6732632423543772 * np.expm1(np.minimum(x[0], 0)))).astype(x[0].dtype),
        "ConstantOfShape": lambda x, at: np.full([int(v) for v in x[0]], np.ravel(at.get("value", np.zeros(1, np.float32)))[0]),
    })
    return module.Model(os.path.join(given.data, scenario, "model.onnx"))


def short(name):
    """The parameters of nb301 have a prefix of 39 letters, all the same."""
    return name.rsplit("_COLON_", 1)[-1]


class Problem:
    """A space, and the value of a configuration; the smaller the better."""

    def __init__(self, given, name):
        scenario, task = name.rsplit("-", 1)
        self.numbers, self.categories, targets, target, self.is_more_better = SCENARIOS[scenario]
        self.column = targets.index(target)
        self.model = load_model(given, scenario)
        with open(os.path.join(given.data, scenario, "encoding.json"), encoding="utf-8") as f:
            self.codes = {short(n): codes for n, codes in json.load(f).items()}
        with open(os.path.join(given.data, scenario, "config_space.json"), encoding="utf-8") as f:
            described = json.load(f)
        self.task = [self.codes["task_id"][task]] if "task_id" in self.codes else []
        self.fixed = [FULL[n] for n in ("trainsize", "repl", "epoch") if any(h["name"] == n for h in described["hyperparameters"])]
        self.when = {}
        for c in [one for c in described["conditions"] for one in c.get("conditions", [c])]:
            self.when.setdefault(short(c["child"]), {})[short(c["parent"])] = c["values"] if c["type"] == "IN" else [c["value"]]
        self.space = {}
        for h in described["hyperparameters"]:
            if short(h["name"]) in self.numbers + self.categories:
                self.space[short(h["name"])] = self.parameter(h)
        if given.declared:
            for child, when in self.when.items():
                self.space[child]["when"] = when
        self.name = f"{name}:{'declared' if given.declared else 'flat'}"

    @staticmethod
    def parameter(h):
        if h["type"] == "categorical":
            return {"type": "categorical", "values": h["choices"]}
        log = {"scale": "log"} if h["log"] and h["upper"] > h["lower"] > 0 else {}
        return {"type": "int" if h["type"] == "uniform_int" else "float", "min": h["lower"], "max": h["upper"], **log}

    def is_active(self, name, params):
        return name in params and all(params.get(parent) in values and self.is_active(parent, params)
                                      for parent, values in self.when.get(name, {}).items())

    def values(self, configurations):
        categories, numbers = [], []
        for params in configurations:
            on = {n: v for n, v in params.items() if self.is_active(n, params)}
            categories.append(self.task + [self.codes[n].get(on.get(n, "#na#"), 0) for n in self.categories])
            numbers.append([float(on.get(n, 0)) for n in self.numbers] + self.fixed)
        feeds = {self.model.inputs[0]: np.array(categories, np.int32), self.model.inputs[1]: np.array(numbers, np.float32)}
        with np.errstate(all="ignore"):
            y = self.model.run(feeds)[:, self.column].astype(float)
        return -y if self.is_more_better else y

    def draw(self, r, names=None):
        out = {}
        for n in names or self.space:
            s = self.space[n]
            if s["type"] == "categorical":
                out[n] = r.choice(s["values"])
            else:
                u = r.random()
                v = s["min"] * (s["max"] / s["min"]) ** u if "scale" in s else s["min"] + u * (s["max"] - s["min"])
                out[n] = min(max(round(v), s["min"]), s["max"]) if s["type"] == "int" else v
        return out

    def near(self, r, params):
        """One to three values changed, numbers by a step of any size."""
        out = dict(params)
        for n in r.sample(list(self.space), min(len(self.space), r.randint(1, 3))):
            s = self.space[n]
            other = self.draw(r, [n])[n]
            if s["type"] == "float":
                share = 10 ** -r.uniform(0, 3)
                a, b = out[n], other
                other = math.exp(math.log(a) + share * (math.log(b) - math.log(a))) if "scale" in s else a + share * (b - a)
                other = min(max(other, s["min"]), s["max"])
            out[n] = other
        return out

    def reference(self):
        """The median of random points, and the best value of these and of climbs from the best."""
        r = random.Random(self.name.split(":")[0])
        points = [self.draw(r) for _ in range(20000)]
        values = self.values(points)
        order = np.argsort(values)
        best = [(values[i], points[i]) for i in order[:10]]
        for _ in range(150):
            tried = [self.near(r, p) for _, p in best for _ in range(20)]
            for k, v in enumerate(self.values(tried)):
                if v < best[k // 20][0]:
                    best[k // 20] = (v, tried[k])
        return {"problem": self.name, "median": float(np.median(values)), "best": float(min(b[0] for b in best))}


def has_effect(problem, number, where, scale):
    """See `learned` in the text above. scale: the median of random points less the best."""
    r = random.Random(number)
    points = [{**problem.draw(r), **where} for _ in range(400)]
    others = [{**p, **problem.draw(r, [number])} for p in points]
    moved = np.abs(problem.values(points) - problem.values(others)) / scale
    return float(np.mean(moved > 0.02)) > 0.05


class Method(Asked):
    """search-ask, peer_optuna.py or peer_recipes.py."""

    def __init__(self, given, method):
        self.own = method not in ("tpe", "optuna-gp", "hebo", "botorch")
        self.method = method.replace("optuna-", "")
        self.reason = {}  # of the last suggestion, if it has one
        script = "peer_recipes.py" if method in ("hebo", "botorch") else "peer_optuna.py"
        command = [os.path.join(given.build, "bench", "search-ask")] if self.own else [sys.executable, os.path.join(HERE, script)]
        super().__init__(command, {"OMP_NUM_THREADS": "1", "OPTUNA_PATH": given.optuna_path}, subprocess.DEVNULL)
        if not self.own:
            self.answer()

    def begin(self, space, seed):
        if self.own:
            return self.call("begin", method=self.method, parameters=space, seed=seed)
        return self.call("begin", sampler=self.method, parameters=space, seed=seed, deterministic=True)

    def ask(self, index):
        said = self.call("ask") if self.own else self.call("ask", trial=index)
        self.reason = said.get("reason", self.reason)
        return None if "exhausted" in said else (said.get("number", index), said["params"])

    def tell(self, number, value):
        if self.own:
            self.call("tell", number=number, value=value)
        else:
            self.call("tell", trial=number, value=value)


def sweep(asked, problem, seed, trials, pending):
    """The values in the order in which they were asked for. `pending` are asked for before the oldest is told."""
    asked.begin(problem.space, seed)
    waiting, values = [], []
    for index in range(trials):
        if len(waiting) == pending:
            asked.tell(*waiting.pop(0))
        said = asked.ask(index)
        if said is None:
            break
        value = float(problem.values([said[1]])[0])
        values.append(value)
        waiting.append((said[0], value))
    return values


def named(given):
    return given.problems.split(",") if given.problems else problems_of()


def run(given):
    have, path = set(), given.out
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for row in map(json.loads, f):
                have.add((row["problem"], row.get("method"), row.get("seed")))
    with open(path, "a", encoding="utf-8") as out:
        for name in named(given):
            problem = Problem(given, name)
            if (problem.name, None, None) not in have:
                print(json.dumps(problem.reference()), file=out, flush=True)
            for method in given.methods.split(","):
                label = method + (f":{given.pending}" if given.pending > 1 else "")
                todo = [s for s in range(given.first_seed, given.first_seed + given.seeds) if (problem.name, label, s) not in have]
                if not todo:
                    continue
                with Method(given, method) as asked:
                    for seed in todo:
                        values = sweep(asked, problem, seed, given.trials, given.pending)
                        print(json.dumps({"problem": problem.name, "method": label, "seed": seed, "values": values}), file=out, flush=True)
                print(f"{problem.name} {label}", file=sys.stderr, flush=True)


def learned(given):
    """How many statements of the reason's `no_effect` are true, for each problem."""
    total = collections.Counter()
    for name in named(given):
        problem, said, known = Problem(given, name), collections.Counter(), {}
        ends = problem.reference()
        with Method(given, "gp") as asked:
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                sweep(asked, problem, seed, given.trials, 1)
                for fact in asked.reason.get("no_effect", []):
                    key = (fact["parameter"], *fact["where"].items())
                    if key not in known:
                        known[key] = has_effect(problem, fact["parameter"], fact["where"], ends["median"] - ends["best"])
                    said["wrong" if known[key] else "true"] += 1
        print(f"{name}: {said['true']} true, {said['wrong']} wrong", flush=True)
        total += said
    print(f"all: {total['true']} true, {total['wrong']} wrong")


def copy_data(given):
    for scenario, (commit, model) in COMMITS.items():
        folder = os.path.join(given.dir, scenario)
        os.makedirs(folder)
        for source, name in ((model, "model.onnx"), ("encoding.json",) * 2, ("config_space.json",) * 2):
            with open(os.path.join(folder, name), "xb") as f:
                subprocess.run(["git", "--git-dir", given.repository, "show", f"{commit}:{scenario}/{source}"], stdout=f, check=True)


def read(paths, methods):
    """{problem: {method: {seed: values}}}, {problem: (best, median)}"""
    rows, scale = {}, {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for row in map(json.loads, f):
                best, median = scale.get(row["problem"], (math.inf, None))
                if "median" in row:
                    scale[row["problem"]] = (min(best, row["best"]), row["median"])
                    continue
                scale[row["problem"]] = (min([best] + row["values"]), median)
                if row["method"] in methods:
                    rows.setdefault(row["problem"], {}).setdefault(row["method"], {})[row["seed"]] = row["values"]
    return rows, scale


def report(given):
    methods = given.methods.split(",")
    rows, scale = read(given.files, methods)
    kept = problems_of(given.half)
    print("| problem | " + " | ".join(methods) + " |\n| --- |" + " ---: |" * len(methods))
    ranks, logs = {m: [] for m in methods}, {m: [] for m in methods}
    for problem in sorted(rows):
        if problem.split(":")[0] not in kept or any(m not in rows[problem] for m in methods):
            continue
        best, median = scale[problem]
        mean = {m: statistics.mean((min(v[:given.at]) - best) / (median - best) for v in rows[problem][m].values()) for m in methods}
        for m in methods:
            ranks[m].append(1 + sum(mean[o] < mean[m] for o in methods) + sum(mean[o] == mean[m] for o in methods if o != m) / 2)
            logs[m].append(math.log10(max(mean[m], 1e-4)))
        print(f"| {problem} | " + " | ".join(f"{mean[m]:.4f}" for m in methods) + " |")
    print("| mean rank | " + " | ".join(f"{statistics.mean(ranks[m]):.2f}" for m in methods) + " |")
    print("| geometric mean | " + " | ".join(f"{10 ** statistics.mean(logs[m]):.4f}" for m in methods) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    do = parser.add_subparsers(dest="do", required=True)
    copy = do.add_parser("data")
    copy.add_argument("repository")
    copy.add_argument("dir")
    sweeps = argparse.ArgumentParser(add_help=False)
    sweeps.add_argument("build")
    for name in ("--data", "--surrogate"):
        sweeps.add_argument(name, required=True)
    sweeps.add_argument("--problems", default="")
    for name, value in (("--seeds", 5), ("--first-seed", 1), ("--trials", 110)):
        sweeps.add_argument(name, type=int, default=value)
    one = do.add_parser("run", parents=[sweeps])
    one.add_argument("--out", required=True)
    one.add_argument("--methods", default="gp,random")
    one.add_argument("--optuna-path", default="")
    one.add_argument("--declared", action="store_true")
    one.add_argument("--pending", type=int, default=1)
    do.add_parser("learned", parents=[sweeps]).set_defaults(declared=False, optuna_path="")
    two = do.add_parser("report")
    two.add_argument("files", nargs="+")
    two.add_argument("--methods", default="gp,random,tpe,hebo,botorch")
    two.add_argument("--half", choices=["tune", "report"])
    two.add_argument("--at", type=int, default=110)
    given = parser.parse_args()
    {"data": copy_data, "run": run, "learned": learned, "report": report}[given.do](given)


if __name__ == "__main__":
    main()
