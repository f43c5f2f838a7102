"""A model of the registry as an ONNX file: fetched and converted in one step, it has the bytes of the
file that is fetched and then converted without a server. A failure leaves what was there."""
import json
import os
import subprocess
import tempfile

from digits_sweep import digits_sweep
from harness import ASSAY, PATIENCE_S, SOURCE, Assay, skip

SWEEP = digits_sweep(max_trials=3)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def alone(work, *args):
    """The command where no server is to be found."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
    env.update(HOME=work, XDG_RUNTIME_DIR=work, XDG_CONFIG_HOME=work)
    return subprocess.run([ASSAY, "models", "get", *args], env=env, cwd=work, capture_output=True, text=True, timeout=PATIENCE_S)


def check_conversion(assay, work):
    graph, file, again = (os.path.join(work, n) for n in ("m.onnx", "m.safetensors", "again.onnx"))
    told = json.loads(assay.cli("models", "get", "Digits", graph, "--format", "onnx", "--json").stdout)
    assert told["file"] == graph and told["format"] == "onnx" and told["version"] == 1, told
    assay.cli("models", "get", "Digits", file)
    done = alone(work, again, "--from", file, "--format", "onnx")
    assert done.returncode == 0, done
    assert read(graph) == read(again) and len(read(graph)) > 10000
    assert b"probabilities" in read(graph) and b"ai.onnx.ml" in read(graph)
    piped = subprocess.run([ASSAY, "models", "get", "Digits", "-", "--format", "onnx"], env=assay.env, cwd=SOURCE,
                           capture_output=True, timeout=PATIENCE_S)
    assert piped.returncode == 0 and piped.stdout == read(graph), piped.stderr
    assay.cli("models", "get", "Digits@1", work, "--format", "onnx")
    assert read(os.path.join(work, "Digits-1.onnx")) == read(graph)
    return graph, file


def check_failures(assay, work, graph, file):
    whole = read(graph)
    cut = os.path.join(work, "cut.safetensors")
    with open(cut, "wb") as f:
        f.write(read(file)[:-1])
    names = sorted(os.listdir(work))
    for words, args in (
        (["cut.safetensors"], [graph, "--from", cut, "--format", "onnx"]),
        (["nothing"], [graph, "--from", "nothing", "--format", "onnx"]),
        (["--format onnx"], [graph, "--from", file]),
        (["safetensors", "onnx", "pickle"], [graph, "--from", file, "--format", "pickle"]),
        (["/dev/full"], ["/dev/full", "--from", file, "--format", "onnx"]),
        (["expected `list`"], [graph, "more", "--from", file, "--format", "onnx"]),
    ):
        done = alone(work, *args)
        assert done.returncode != 0 and all(w in done.stderr for w in words), (args, done)
    missing = assay.cli("models", "get", "Nobody", graph, "--format", "onnx", check=False)
    assert missing.returncode != 0 and "Nobody" in missing.stderr, missing
    assert read(graph) == whole and sorted(os.listdir(work)) == names, os.listdir(work)


def main():
    with tempfile.TemporaryDirectory(prefix="assay-onnx-", dir="/var/tmp") as work:
        if "cannot write ONNX" in alone(work, "x", "--from", "x", "--format", "onnx").stderr:
            skip("this build cannot write ONNX")
        document = os.path.join(work, "keep.yaml")
        with open(document, "w") as f:
            f.write(SWEEP)
        with Assay(runners=2) as assay:
            assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
            assay.cli("run", document)
            assay.wait_ended("keep")
            assay.cli("models", "add", "keep", "Digits", "--use", "ensemble")
            check_failures(assay, work, *check_conversion(assay, work))
    print("onnx: ok")


if __name__ == "__main__":
    main()
