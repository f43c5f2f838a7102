#!/usr/bin/env python3
"""docs/coming-from.md: the scripts of examples/coming-from run through a real service, with as few changed lines as the
page says; those of the other tool run where it is installed, and are only compiled elsewhere."""
import difflib
import importlib.util
import os
import re
import shutil
import subprocess
import sys

from harness import BUILD, PATIENCE_S, SOURCE, Assay

FOLDER = os.path.join(SOURCE, "examples", "coming-from")
CLIENT = os.path.join(BUILD, "clients", "python")
# name on the page; the folder; the libraries that its scripts need before and after; is a server of the tool's needed?
TOOLS = [("Optuna", "optuna", ["optuna"], [], False), ("W&B Sweeps", "wandb", ["wandb"], [], True),
         ("Ray Tune", "ray", ["ray"], [], False), ("Hydra", "hydra", ["hydra"], ["hydra"], False),
         ("a shell loop", "shell", [], [], False)]
# docs.wandb.ai/guides/sweeps/sweep-config-keys, November 2026
DISTRIBUTIONS = ["constant", "categorical", "int_uniform", "uniform", "q_uniform", "log_uniform", "log_uniform_values",
                 "q_log_uniform", "q_log_uniform_values", "inv_log_uniform", "inv_log_uniform_values", "normal", "q_normal",
                 "log_normal", "q_log_normal"]


def lacks(modules):
    return [m for m in modules if importlib.util.find_spec(m) is None]


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def changed_lines(folder):
    """How many lines of the program after it are not in the one before."""
    if not os.path.exists(os.path.join(folder, "after.py")):
        return 0
    before, after = (read(folder, name).splitlines() for name in ("before.py", "after.py"))
    return sum(line.startswith("+ ") and line != "+ " for line in difflib.ndiff(before, after))


def stated(page, name):
    cell = re.search(r"^\| (?:\[%s\]\([^)]*\)) \| (\w+) \|" % re.escape(name), page, re.M).group(1)
    return 0 if cell == "none" else int(cell)


def python(path, env):
    done = subprocess.run([sys.executable, os.path.basename(path)], cwd=os.path.dirname(path), env=env, text=True,
                          capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def before(folder, tool, modules, needs_server):
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            compile(read(folder, name), name, "exec")
    if tool == "shell":
        out = subprocess.run(["sh", "before.sh"], cwd=folder, text=True, capture_output=True, check=True).stdout
        assert "lr=0.3 width=8" in out, out
        return "ran"
    missing = lacks(modules)
    if missing or needs_server:
        return f"only compiled: {', '.join(missing) + ' is not installed' if missing else 'it needs a server of the tool'}"
    out = python(os.path.join(folder, "before.py"), dict(os.environ))
    assert "best" in out or "loss" in out, out
    return "ran"


def after(assay, folder, tool, modules):
    env = {**assay.env, "PYTHONPATH": CLIENT}
    missing = lacks(modules)
    if missing:
        return f"not run: {', '.join(missing)} is not installed"
    if not os.path.exists(os.path.join(folder, "after.yaml")):
        out = python(os.path.join(folder, "after.py"), env)
        value = float(re.search(r"^best (\S+)", out, re.M).group(1))
        assert value < 0.5, out
        return f"best {value:.3g}"
    assay.cli("run", "after.yaml", "--watch", cwd=folder)
    sweep = assay.sweep(f"from-{tool}")
    assert sweep["state"] == "completed" and sweep["counts"]["completed"] == sweep["counts"]["total"] > 0, sweep
    assert sweep["best"]["value"] < 0.5, sweep["best"]
    return f"best {sweep['best']['value']:.3g} of {sweep['counts']['total']}"


def distributions(assay, page):
    """Each parameter in the table of W&B's distributions is one that a sweep may have."""
    table = page[page.index("**Distributions.**"):page.index("**`wandb.config.x`**")]
    named = re.findall(r"^\| `distribution: (\w+)", table, re.M)
    assert sorted(named) == sorted(DISTRIBUTIONS), named
    parameters = re.findall(r"`(\{type: .*?\})`", table)
    assert len(parameters) >= len(named) - 3, parameters
    path = os.path.join(assay.data, "distributions.yaml")
    with open(path, "w") as f:
        f.write("name: from-distributions\nmetric: {name: loss, goal: minimize}\nparameters:\n")
        f.writelines(f"  p{i}: {p}\n" for i, p in enumerate(parameters))
        f.write("limits: {max_trials: 1}\ntrial: {command: ['false']}\n")
    assay.cli("run", path, "--paused")
    assert len(assay.sweep("from-distributions")["document"]["parameters"]) == len(parameters)
    return f"{len(named)} distributions, {len(parameters)} parameters"


def main():
    page = read(SOURCE, "docs", "coming-from.md")
    # the runners' Python finds the client, as that of a reader who has put it on PYTHONPATH
    with Assay(runners=2, env={"PYTHONPATH": CLIENT}) as assay:
        own = os.path.join(assay.data, "coming-from")
        shutil.copytree(FOLDER, own)
        print(f"W&B: {distributions(assay, page)}", flush=True)
        for name, tool, modules, modules_after, needs_server in TOOLS:
            folder = os.path.join(own, tool)
            lines = changed_lines(folder)
            assert lines == stated(page, name), (name, lines)
            print(f"{name}: before {before(folder, tool, modules, needs_server)}; after, {lines} lines, "
                  f"{after(assay, folder, tool, modules_after)}", flush=True)


if __name__ == "__main__":
    main()
