#!/usr/bin/env python3
"""`meson install` is whole, and may be moved: what it puts below DESTDIR is taken to another folder, and runs from there."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", "e2e"))
from harness import BUILD, Assay, folder_place, skip

PROGRAMS = ["assay", "assayd", "assay-runner", "assay-serve", "assay-train"]
DATA = ["bash-completion/completions/assay", "zsh/site-functions/_assay", "fish/vendor_completions.d/assay.fish", "assay/python/assay.py",
        *(f"man/man1/{name}.1" for name in PROGRAMS)]
TRAIN = {"dataset": "digits", "model": {"kind": "mlp", "layers": [8]}, "optimizer": {"kind": "adamw", "lr": "${lr}"}, "epochs": 2}


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def install(folder):
    """Install below DESTDIR, and move what lies below the prefix elsewhere; its new place is returned."""
    if not shutil.which("meson"):
        skip("meson is not installed")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder)
    [assayd] = glob.glob(os.path.join(folder, "**", "bin", "assayd"), recursive=True)
    prefix, moved = os.path.dirname(os.path.dirname(assayd)), os.path.join(folder, "moved")
    os.rename(prefix, moved)
    left = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if not place.startswith(moved)]
    assert not left, f"outside of the prefix: {left}"
    return moved


def is_whole(moved):
    for path in [f"bin/{name}" for name in PROGRAMS] + [f"share/{name}" for name in DATA]:
        assert os.path.getsize(os.path.join(moved, path)) > 0, path
    for name in PROGRAMS:
        assert name in run(os.path.join(moved, "bin", name), "--help"), name
        assert f".TH {name.upper()} 1" in open(os.path.join(moved, "share/man/man1", name + ".1")).read().upper(), name
    assert open(os.path.join(moved, "share/bash-completion/completions/assay")).read() == run(os.path.join(moved, "bin/assay"), "completion", "bash")
    run(sys.executable, "-c", "import assay; assay.Study", env={**os.environ, "PYTHONPATH": os.path.join(moved, "share/assay/python")})
    print("whole", flush=True)


def finds_its_plugin(moved):
    """The trainer looks for the plugin below the moved prefix. A stand-in is enough: it is found, then there is no driver, or
    the stand-in does not load."""
    def answer():
        done = subprocess.run([os.path.join(moved, "bin/assay-train"), "--list-devices"], capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k not in ("ASSAY_PLUGIN_DIR", "CUDA_VISIBLE_DEVICES")})
        return done.stdout + done.stderr
    libdir = next(o["value"] for o in json.loads(run("meson", "introspect", BUILD, "--buildoptions")) if o["name"] == "libdir")
    folder = os.path.join(moved, libdir, "assay")
    if not os.path.exists(folder):
        assert "no libassay-cuda.so" in answer(), answer()
        os.makedirs(folder)
        with open(os.path.join(folder, "libassay-cuda.so"), "wb"):
            pass
        assert "no libassay-cuda.so" not in answer(), answer()
    print("finds its plugin", flush=True)


def runs(moved):
    bin_folder = os.path.join(moved, "bin")
    with Assay(runners=1, installed=bin_folder, env={"PATH": "/usr/bin:/bin"}) as assay:
        for name in ("assayd", "assay-runner"):
            [pid] = assay.processes(name)
            assert os.readlink(f"/proc/{pid}/exe") == os.path.realpath(os.path.join(bin_folder, name)), name
        if os.path.isdir(os.path.join(moved, "share/assay/web")):
            page = urllib.request.urlopen(assay.url + "/").read()
            assert page == open(os.path.join(moved, "share/assay/web/index.html"), "rb").read()
        assay.cli("data", "add", "digits", os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "examples/digits.csv"), "--target", "class")
        sweep = assay.call("POST", "/v1/sweeps", {"name": "moved", "metric": {"name": "val_error", "goal": "minimize"}, "ensemble": False,
                                                  "parameters": {"lr": {"type": "float", "min": 0.001, "max": 0.1}}, "search": {"method": "random"},
                                                  "limits": {"max_trials": 2}, "trial": {"train": TRAIN}})["id"]
        assay.wait_ended(sweep)
        assert assay.sweep(sweep)["counts"]["completed"] == 2, assay.sweep(sweep)["counts"]
    print("runs where it was moved to", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="assay-install-", dir=folder_place())
    try:
        os.chmod(folder, 0o755)  # trials may run as another user
        moved = install(folder)
        is_whole(moved)
        finds_its_plugin(moved)
        runs(moved)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
