"""What defaults.py has learned, without a server: which configurations are good, what a rule that chooses among them would gain on a
table that it has not seen, and the table of C that is shipped."""
import json
import math
import random
import re
import statistics

LEAST = 2e-3  # added to losses before their ratio, so that an AUC of 0.9999 is not ten times as good as one of 0.999
DRAWN = {"boosted_trees": 10, "mlp": 8, "extra_trees": 4, "linear": 2}  # configurations that all tables try
SHIPPED = ("kind", "rate", "leaves", "rows", "columns", "leaf_weight", "per_split", "lr", "numbers", "width", "dropout", "neighbours",
           "nearness", "smoothing", "spread")


def shuffle(rows, seed):
    random.Random(seed).shuffle(rows)


def figures(table):
    """What the tags of a sweep of `assay fit` say of its table (cli/fit/fit_similar.c)."""
    return {k: float(v) for k, v in (t.split("=", 1) for t in table["tags"] if "=" in t)}


# ---- configurations ----

def loss(table, value):
    """Less is better: of an AUC what is missing to 1."""
    return 1 - value if table["metric"]["goal"] == "maximize" else value


def best_of_kinds(table, most):
    """The best trial of each of the best kinds, the best kind first: {kind: trial}."""
    found = {}
    for t in sorted(table["trials"], key=lambda t: loss(table, t["value"])):
        found.setdefault(t["params"]["kind"], t)
    return dict(list(found.items())[:most])


def within(doc, params):
    """The configuration in another table's sweep; None: one of its values lies outside, or its kind is not there."""
    kind, spaces = params["kind"], doc["parameters"]
    for text in doc.get("parameter_constraints", []):  # as cli/fit/fit_sweep.c writes them
        of, least = re.fullmatch(r"kind != '(\w+)' or leaf_weight >= (\d+)", text).groups()
        if kind == of and params["leaf_weight"] < float(least):
            return None
    if kind not in spaces["kind"]["values"]:
        return None
    moved = {}
    for name, space in spaces.items():
        asked = space.get("when", {}).get("kind", kind)
        if kind not in (asked if isinstance(asked, list) else [asked]):
            continue
        value = params.get(name)
        if space["type"] == "constant":
            moved[name] = space["value"]
        elif name not in SHIPPED or value is None:  # of the other table alone, such as class weights
            moved[name] = space["values"][0] if "values" in space else None
        elif "values" in space:
            moved[name] = value if value in space["values"] else None
        else:
            moved[name] = value if space["min"] <= value <= space["max"] else None
        if moved[name] is None and not (space.get("values") or [0])[0] is None:
            return None
    return moved


def drawn(spaces):
    """The same configurations for each table, drawn within ranges that most tables have."""
    r = random.Random(31)

    def between(low, high):
        return float(f"{math.exp(r.uniform(math.log(low), math.log(high))):.2g}")
    found = []
    for _ in range(DRAWN["boosted_trees"]):
        found.append({"kind": "boosted_trees", "rate": between(0.02, 0.2), "leaves": round(between(4, 24)), "rows": round(r.uniform(0.5, 1), 2),
                      "columns": round(r.uniform(0.3, 1), 2), "leaf_weight": between(1, 10)})
    for _ in range(DRAWN["mlp"]):
        found.append({"kind": "mlp", "lr": between(0.001, 0.02), "width": r.choice((64, 128)), "dropout": round(r.uniform(0, 0.4), 2),
                      "numbers": r.choice(("none", "piecewise_linear"))})
    for _ in range(DRAWN["extra_trees"]):
        found.append({"kind": "extra_trees", "leaf_weight": between(1, 4), "per_split": round(r.uniform(0.3, 1), 2)})
    linear = next(k for k in ("logistic", "linear") if k in spaces["kind"]["values"])
    for i in range(DRAWN["linear"]):
        found.append({"kind": linear, "lr": between(0.003, 0.03), "numbers": ("none", "piecewise_linear")[i % 2]})
    return found


# ---- rules ----

def first_trials(table):
    """Those with which `assay fit` begins by itself: one of each kind, and three of boosted trees (cli/fit/fit_first.c)."""
    n = len(table["document"]["parameters"]["kind"]["values"]) + 2
    return [t for t in sorted(table["trials"], key=lambda t: t["number"]) if t["number"] < n]


def kind_of(c):
    """Of a configuration by its name in values_of()."""
    return c.split()[0] if isinstance(c, str) else [k for k, n in DRAWN.items() for _ in range(n)][c]


def values_of(learned, tried, name):
    """{configuration: loss on this table}: of drawn ones by their number, of first trials by their kind and place among it."""
    table = learned[name]
    found = {t["drawn"]: loss(table, t["value"]) for t in tried[name]["trials"]}
    seen = {}
    for t in first_trials(table):
        kind = "linear" if t["params"]["kind"] == "logistic" else t["params"]["kind"]
        seen[kind] = seen.get(kind, 0) + 1
        found[f"{kind} {seen[kind]}"] = loss(table, t["value"])
    return found


def of_first(values):
    return [c for c in values if isinstance(c, str)]


def portfolio(values, among, n):
    """The n configurations that are best together on these tables, chosen one by one (F. Pfisterer et al., "Learning multiple
    defaults for machine learning algorithms", GECCO 2021); a table that cannot have one is as it was without. Tables of all tasks count
    alike: five of one are too few. So linear models, which have other names by task, keep their place behind. The first boosted
    trees come to the front: they are cheap, and the shortest search must have a model."""
    best = {t: min(values[t].values()) for t in among}
    so_far = {t: statistics.median(values[t].values()) for t in among}
    chosen = []
    candidates = sorted({c for t in among for c in values[t] if kind_of(c) != "linear"}, key=str)

    def total(c):
        return sum(math.log((min(so_far[t], values[t].get(c, math.inf)) + LEAST) / (best[t] + LEAST)) for t in among)
    while len(chosen) < min(n, len(candidates)):
        c = min((c for c in candidates if c not in chosen), key=total)
        chosen.append(c)
        so_far = {t: min(so_far[t], values[t].get(c, math.inf)) for t in among}
    trees = next((c for c in chosen if kind_of(c) == "boosted_trees"), chosen[0])
    return [trees] + [c for c in chosen if c != trees]


def best_after(losses, k):
    return min(losses[:k])


def sequence(values, front):
    return [values[c] for c in front if c in values] + [values[c] for c in of_first(values) if c not in front]


def judge(learned, tried, budgets=(1, 2, 3, 4, 6, 9, 12)):
    """Each table left out: the best loss after k trials with what the others taught in front, as a part of that without."""
    values = {n: values_of(learned, tried, n) for n in learned if n in tried}
    for n in (2, 3, 6, 9):
        ratios = {k: [] for k in budgets}
        for name in values:
            front = portfolio(values, [t for t in values if t != name], n)
            searched = [loss(learned[name], t["value"]) for t in sorted(learned[name]["trials"], key=lambda t: t["number"])]
            rest = searched[len(of_first(values[name])):]
            warm, cold = sequence(values[name], front) + rest, sequence(values[name], []) + rest
            for k in budgets:
                ratios[k].append(math.log((best_after(warm, k) + LEAST) / (best_after(cold, k) + LEAST)))
        line = {"in front": n, "tables": len(values)}
        for k, r in ratios.items():
            error = statistics.stdev(r) / math.sqrt(len(r))
            line[f"after {k}"] = f"{100 * math.expm1(statistics.mean(r)):+.1f} +- {100 * error:.1f} % ({sum(x < -1e-9 for x in r)}:{sum(x > 1e-9 for x in r)})"
        print(json.dumps(line), flush=True)


def compare(found, budgets=(1, 2, 3, 4, 6, 9)):
    """Fits with defaults, as parts of those without: the best trial after k, and the loss on test rows."""
    for what in (*budgets, "test"):
        r = []
        for f in found:
            pair = [f[way]["test"] if what == "test" else best_after(f[way]["trials"], what) for way in ("with", "without")]
            r.append(math.log((pair[0] + LEAST) / (pair[1] + LEAST)))
        error = statistics.stdev(r) / math.sqrt(len(r)) if len(r) > 1 else math.nan
        print(json.dumps({"after": what, "fits": len(r), "with / without": f"{100 * math.expm1(statistics.mean(r)):+.1f} ± {100 * error:.1f} %",
                          "better": sum(x < -1e-9 for x in r), "worse": sum(x > 1e-9 for x in r)}), flush=True)


# ---- what is shipped ----

def text_of(value):
    return f"{value:.2g}" if isinstance(value, float) else str(value)


def config_of(params):
    """NAME=VALUE …, numbers with two digits. A network sees numbers as they are unless it says so."""
    said = {n: v for n, v in params.items() if v is not None and (n, v, params["kind"]) != ("numbers", "none", "mlp")}
    return " ".join(f"{n}={text_of(said[n])}" for n in SHIPPED if n in said)


def gained(table, tried):
    """The loss of the best trial of each kind, the best first."""
    both = dict(table, trials=table["trials"] + tried["trials"])
    return ", ".join(f"{kind} {loss(table, t['value']):.3g}" for kind, t in list(best_of_kinds(both, 4).items()))


def params_of(learned, tried, name, c):
    """Of a configuration, by a table that has tried it."""
    if not isinstance(c, str):
        return next(t["params"] for t in tried[name]["trials"] if t["drawn"] == c)
    kind, place = c.split()
    of = [t["params"] for t in first_trials(learned[name]) if t["params"]["kind"].replace("logistic", "linear") == kind]
    return of[int(place) - 1]


def describe(learned, tried, values, chosen, sources):
    """Lines of a comment: the tables, and what they gained."""
    for name in values:
        f, table = figures(learned[name]), learned[name]
        first, last = min(values[name][c] for c in of_first(values[name])), min(values[name][c] for c in chosen if c in values[name])
        what = ("1 - " if table["metric"]["goal"] == "maximize" else "") + table["metric"]["name"][4:]
        yield f" * {name}: {f['rows']:.0f} rows, {f['columns']:.0f} columns, {f['classes']:.0f} classes, {100 * f['categories']:.0f} % categories"
        yield f" *   ({sources[name][0]}, {sources[name][1]})"
        yield f" *   {what}: {gained(table, tried[name])};"
        yield f" *   of the first trials without these {first:.3g}, of these {last:.3g}"


def write(learned, tried, path, n, sources):
    """cli/fit/fit_learned.c: the configurations that are best together, in the order in which they run."""
    values = {t: values_of(learned, tried, t) for t in learned if t in tried}
    chosen = portfolio(values, list(values), n)
    lines = ["/* Made by bench/models/defaults.py; do not edit. The configurations that are best together on the",
             " * public tables below, chosen one by one. A kind alone is the first trial of its kind.",
             " * Of a table at most 1,000 rows were drawn; losses are those of three folds, of the best trials of",
             " * four kinds.", " *"]
    lines += list(describe(learned, tried, values, chosen, sources)) + [" */"]
    lines += ['#include "cli/fit/fit_learned.h"', "", '#include "base/mem.h"', "", "const char *const fit_learned[] = {"]
    for c in chosen:
        table = next(t for t in values if c in values[t])
        if isinstance(c, str) and c.endswith(" 1") and kind_of(c) != "boosted_trees":
            lines.append(f'    "kind={kind_of(c)}",')
        else:
            lines.append(f'    "{config_of(params_of(learned, tried, table, c))}",')
    lines += ["};", "", "const size_t fit_n_learned = AS_ARRAY_LEN(fit_learned);", ""]
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines))
