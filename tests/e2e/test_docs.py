#!/usr/bin/env python3
"""Every command of README.md and docs/*.md runs as it stands there.

Usage: test_docs.py [DOCUMENT…]

Each document that has commands gets a fresh folder, a fresh `assay up` and one shell, like a reader who types the
page into a terminal from top to bottom. The shell stops at the first command that does not exit 0. The script has
each command at its line of the document, so that bash's messages and trace name the document's lines.

Files that a document shows are written first: a fenced block whose first line is a comment that begins with the
file's name, or that follows a line of prose that ends with the name between backquotes and a colon. A file that the
repository has already must be shown as it is there.

What a test cannot run stands in INSTEAD, with the reason. An entry that no document has any more is an error."""
import concurrent.futures
import gzip
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from harness import ASSAY, BUILD, LONG_LEASE, PATIENCE_S, SOURCE, Assay, database_url

PROGRAMS = [os.path.join(BUILD, folder) for folder in ("cli", "api/server", "trial-runner/agent", "trial-runner/train", "serve")]
COMMANDS = "sh"
SHOWN = {"yaml", "python", "json", "csv", "c", ""}  # languages of blocks that are no commands

# document, text, what runs instead, why. The text is replaced wherever the document's commands have it.
INSTEAD = [
    ("README.md", "./dev demo --keep", ":", "installs packages and stays; ./dev demo itself is CI's"),
    ("README.md", "./dev demo", ":", "installs packages and builds; CI runs it"),
    ("README.md", "./dev test", ":", "it is what runs this test"),
    ("README.md", "./dev build", ":", "built already"),
    ("README.md", "assay up &", ":", "the harness started it, at another port and folder"),
    ("README.md", "examples/digits.csv | head", "examples/digits.csv | sed -n 1,10p", "head may end before the last rows come"),
    ("docs/cli.md", "assay up --data ~/assay-data --runners 4", "assay help up", "the harness started one"),
    ("docs/cli.md", "assay runners drain gpu-box", "assay runners drain local-1", "the harness's runners"),
    ("docs/cli.md", "assay runners remove gpu-box", "assay runners remove local-1", "the harness's runners"),
    ("docs/cli.md", "assay token revoke ID",
     "assay token revoke \"$(assay token list | awk '/gpu-box/ { print $1 }')\"", "the reader's ID"),
    ("docs/cli.md", "assay serve digits@champion best.safetensors --listen 127.0.0.1:8000", "assay help serve",
     "it stays; docs/serving.md starts one"),
    ("docs/cli.md", "assay serve digits@champion", "assay help serve", "it stays, and the model comes further below"),
    ("docs/cli.md", "assay ensemble digits-mlp digits-cnn --size 30", "assay ensemble digits-mlp --size 30",
     "the page has no second sweep"),
    ("docs/cli.md", "assay ensemble houses --method stacking --layers 2", "assay help ensemble",
     "there is no sweep with folds here; test_layers.py has one"),
    ("docs/cli.md", "assay ensemble houses --method bucketing --by town",
     "assay ensemble digits-mlp --method bucketing --by pixel_0_1", "the page has one sweep"),
    ("docs/serving.md", "assay serve digits@champion", "assay help serve", "it stays"),
    ("docs/serving.md", "assay serve best.safetensors --listen 127.0.0.1:7118", "assay help serve", "it stays"),
    ("docs/serving.md", "localhost:7118", "\"$(cat serve-address)\"", "any free port"),
    ("docs/serving.md", "assay-serve iris=models/iris-7.safetensors", "serve_iris",
     "in the background, on a model that is trained before"),
    ("docs/serving.md", "assay-serve --dir models", "assay-serve --help", "it stays"),
    ("docs/serving.md", "curl -s", "curl -sS --fail-with-body", "so that a refused request does not exit 0"),
    ("docs/ask-tell.md", "http://127.0.0.1:7117", "$URL", "another port"),
    ("docs/ask-tell.md", "curl -H", "curl -sS --fail-with-body -H", "so that a refused request does not exit 0"),
    ("docs/fleet.md", "--time 4h\nassay launch slurm --name lab --status", "--time 4h --print\nassay help launch",
     "there may be no Slurm: tests/e2e/test_fleet_slurm.py submits"),
    ("docs/fleet.md", "assay launch slurm --name lab --scale 12", "assay help launch", "the same"),
    ("docs/fleet.md", "assay launch slurm --name lab --stop", "assay help launch", "the same"),
    ("docs/fleet.md", "http://assayd.research.svc:7117\nassay launch kubernetes --name ml --stop",
     "http://assayd.research.svc:7117 --print\nassay help launch", "tests/e2e/test_fleet_kubernetes.py submits"),
    ("docs/fleet.md", "/opt/assay/bin/assay-runner\nassay launch ssh --name pcs --stop",
     "/opt/assay/bin/assay-runner --print\nassay help launch", "tests/e2e/test_fleet_ssh.py signs in"),
    ("docs/fleet.md", "--runners 0\nassay autoscale lab --max 20 --dry-run --once",
     "--runners 0 --print > /dev/null\nassay help autoscale", "there may be no Slurm"),
    ("docs/fleet.md", "assay autoscale lab --max 20", "assay help autoscale", "it stays"),
    ("docs/operations.md", "./dev build", ":", "built already"),
    ("docs/operations.md", "meson install -C build", "install_into \"$PWD/installed\"",
     "not into the machine's folders"),
    ("docs/operations.md", "assayd --database postgresql://assay@db.example/assay",
     "until_ready 'curl -sf \"$(cat address)/readyz\"' assayd --address-file address --database \"$DATABASE\"",
     "the private cluster, and in the background"),
    ("docs/operations.md", "assayd --listen 0.0.0.0:7117",
     "until_ready 'test -s tls-address' assayd --listen 127.0.0.1:0 --address-file tls-address",
     "any free port, and in the background"),
    ("docs/operations.md", "https://assay.example:7117", "\"$(sed s/127.0.0.1/localhost/ tls-address)\"", "the same"),
    ("docs/operations.md", "createdb --maintenance-db postgresql://assay@new.example/postgres assay",
     "createdb --maintenance-db \"$DATABASE\" restored", "the private cluster has the name assay already"),
    ("docs/operations.md", "postgresql://assay@db.example/assay", "\"$DATABASE\"", "the private cluster"),
    ("docs/operations.md", "postgresql://assay@new.example/assay", "\"${DATABASE/\\/assay?//restored?}\"",
     "the database that createdb made"),
    ("docs/operations.md", "127.0.0.1:7117", "127.0.0.1:0", "any free port"),
    ("docs/operations.md", "/etc/assay/", "etc/", "not into the machine's folders"),
    ("docs/operations.md", "ASSAY_SERVER=https://assay.example assay-runner",
     "until_ready 'test \"$(assay runners | wc -l)\" -eq 2' env ASSAY_SERVER=\"$(cat address)\" assay-runner",
     "the server of the block before, and in the background"),
    ("docs/operations.md", "/scratch/assay", "scratch", "not into the machine's folders"),
    ("docs/operations.md", "assay token revoke ID",
     "assay token revoke \"$(assay token list | awk '/laptop/ { print $1 }')\"", "the reader's ID"),
    ("docs/python.md", "python3 -m pip install clients/python", ":", "not into the machine's Python"),
    ("docs/python.md", "python3 clients/python/wheel.py /tmp", ":", "tests/clients builds the wheel"),
    ("docs/python.md", "python3 clients/python/join.py assay.py", ":", "tests/clients joins it, and runs this page's Python"),
    ("docs/scale.md", "./dev bench scale --json > bench/scale/machine.jsonl", ":", "minutes, on a quiet machine"),
    ("docs/scale.md", "bench/scale/scale.py", ": bench/scale/scale.py", "it would write this page; lint_scale checks it"),
    ("docs/search.md", "./dev bench", ": ./dev bench", "minutes to hours"),
    ("docs/search.md", "bench/search/publish.py", ": bench/search/publish.py", "reads what the hours made"),
]

PREAMBLE = r"""
set -eE -o pipefail
background=""
# until_ready CONDITION PROGRAM…: runs the program until the page ends; then SIGTERM must end it with 0.
until_ready() {
    local condition=$1 pid
    shift
    "$@" &
    pid=$!
    background="$pid $background" # a runner ends before its server
    until eval "$condition"; do kill -0 $pid; sleep 0.1; done > /dev/null 2>&1
}
install_into() {
    [ -z "$MESON" ] && return
    $MESON install -C build --no-rebuild --quiet --destdir "$1"
    "$(find "$1" -name assayd -type f)" --version
}
# The model of docs/serving.md.
serve_iris() {
    assay data add flowers flowers.csv --target species
    assay run flowers.yaml --watch
    assay models add flowers iris
    mkdir models
    assay models get iris models/iris-7.safetensors
    until_ready 'curl -sf "$(cat serve-address)/v2/health/ready"' assay-serve --listen 127.0.0.1:0 \
        --address-file serve-address iris=models/iris-7.safetensors
}
finish() {
    local code=$? pid
    trap - EXIT
    set +e
    for pid in $background; do
        kill $pid
        wait $pid || code=1
    done
    exit $code
}
trap finish EXIT
PS4='+ $PAGE:$LINENO: '
set -x
"""


def npy(kind, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def idx(shape, data):
    return gzip.compress(struct.pack(">HBB", 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + data)


# What the reader has: data and programs of their own.
FLOWERS = ("length,colour,species\n" + "".join(
    f"{'' if n % 9 == 0 else 4 + n % 7 / 2},{('red', 'blue')[n % 2]},{('setosa', 'virginica')[n % 2]}\n"
    for n in range(80))).encode()
FLOWERS_YAML = b"""
name: flowers
metric: {name: val_error, goal: minimize}
parameters: {lr: {type: float, min: 0.01, max: 0.1}}
limits: {max_trials: 2}
trial: {train: {dataset: flowers, epochs: 3, model: {layers: [8]}, optimizer: {lr: "${lr}"}}}
"""
# Three pages run this sweep. test_examples.py runs it as it is; the pages name its trial 17.
SHORTER = [("max_trials: 64", "max_trials: 20"), ("epochs: 100", "epochs: 10")]
READERS = {
    "docs/cli.md": {
        "x_train.npy": npy("<f4", (8, 3), struct.pack("<24f", *range(24))),
        "y_train.npy": npy("<i8", (8,), struct.pack("<8q", *[n % 2 for n in range(8)])),
        "train-images-idx3-ubyte.gz": idx((8, 2, 2), bytes(range(32))),
        "train-labels-idx1-ubyte.gz": idx((8,), bytes(n % 2 for n in range(8))),
    },
    "docs/ask-tell.md": {"train": b"#!/bin/sh\necho 0.25\n"},
    "docs/serving.md": {"flowers.csv": FLOWERS, "flowers.yaml": FLOWERS_YAML},
}


def shorten(path):
    text = path.read_text()
    for long, short in SHORTER:
        assert long in text, f"{path.name} has no '{long}'"
        text = text.replace(long, short)
    path.write_text(text)


class Page:
    """A document: its commands, each at its line, and the files that it shows."""

    def __init__(self, name):
        self.name, self.script, self.files, self.used = name, [], {}, set()
        lines = pathlib.Path(SOURCE, name).read_text().split("\n")
        prose, start = "", None
        for number, line in enumerate(lines, 1):
            if line.startswith("```") and start is None:
                start, language = number, line[3:].strip()
                assert language in SHOWN | {COMMANDS}, f"{name}:{number}: is '{language}' a block of commands?"
                self.script.append("")
            elif line.startswith("```"):
                self.add_block(language, start, lines[start:number - 1], prose)
                start = None
                self.script.append("")
            elif start is None:
                prose = line.strip() or prose
                self.script.append("")
        assert start is None, f"{name}:{start}: the block has no end"
        self.has_commands = any(line and not line.startswith((":", "#")) for line in self.script)

    def add_block(self, language, number, lines, prose):
        first = lines[1] if lines[0].startswith("#!") else lines[0]
        shown = re.match(r"# ([\w./-]+\.\w+)[\s:]", first + "\n") or re.search(r"`([\w./-]+\.\w+)`[^`]{0,12}:$", prose)
        if shown:
            self.add_file(shown[1], number, lines)
        elif language == COMMANDS:
            self.script += self.replaced("\n".join(lines)).split("\n")
            return
        self.script += [""] * len(lines)

    def add_file(self, path, number, lines):
        at = pathlib.Path(SOURCE, path)
        text = "\n".join(lines) + "\n"
        if not at.exists():
            self.files[path] = text.encode()
            return

        def content(t):
            return [line for line in t.split("\n") if line and not line.startswith("#")]
        assert content(text) == content(at.read_text()), f"{self.name}:{number}: {path} is not what stands here"

    def replaced(self, text):
        for entry in INSTEAD:
            document, old, new, _ = entry
            if document == self.name and old in text:
                self.used.add(entry)
                text = text.replace(old, new)
        return text.replace(" && ", "; ")  # the shell does not stop at a command that fails before &&


def write_folder(page, folder, data):
    """What the reader's folder holds: the page's files, and the repository's build and examples."""
    home = folder / "home"
    (home / ".local" / "share").mkdir(parents=True)
    (home / ".local" / "share" / "assay").symlink_to(data)
    (folder / "etc").mkdir()
    shutil.copytree(pathlib.Path(SOURCE, "examples"), folder / "examples")
    shorten(folder / "examples" / "digits.yaml")
    (folder / "build").symlink_to(BUILD)
    for path, content in {**READERS.get(page.name, {}), **page.files}.items():
        (folder / path).write_bytes(content)
        (folder / path).chmod(0o755)
    (folder / ".preamble").write_text(PREAMBLE)
    (folder / ".commands").write_text("\n".join([". ./.preamble" + page.script[0], *page.script[1:]]))


def run_page(page, folder):
    state = folder / "home" / ".local" / "state"
    # Commands find this `assay up`, and no other, by the note that it leaves for its user.
    with Assay(runners=0 if page.name == "docs/operations.md" else 2, args=LONG_LEASE,
               env={"XDG_STATE_HOME": str(state)}) as assay:
        write_folder(page, folder, assay.data)
        env = {n: v for n, v in os.environ.items() if not n.startswith(("ASSAY_", "XDG_"))}
        path = [] if page.name == "README.md" else PROGRAMS  # the README says how to set it
        env.update(PATH=":".join([*path, os.environ["PATH"]]), HOME=str(folder / "home"), PAGE=page.name,
                   URL=assay.url, DATABASE=database_url(assay), MESON=shutil.which("meson") or "")
        with open(folder / ".output", "w+") as output:
            done = subprocess.run(["bash", ".commands"], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, timeout=2 * PATIENCE_S)
            output.seek(0)
            if done.returncode != 0:
                raise AssertionError(f"{page.name}: exit {done.returncode}\n" + "".join(output.readlines()[-40:]))


def check_page(page):
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)  # the trials may run as another user
        run_page(page, pathlib.Path(folder))
    print(f"{page.name}: {time.monotonic() - start:.1f} s", flush=True)


def main():
    names = ["README.md", *sorted(f"docs/{p.name}" for p in pathlib.Path(SOURCE, "docs").glob("*.md"))]
    pages = [Page(name) for name in names]
    unused = set(INSTEAD) - {e for page in pages for e in page.used}
    assert not unused, f"no document has these any more: {unused}"
    wanted = sys.argv[1:] or names
    # They wait more than they compute: two at once.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(check_page, page) for page in pages if page.has_commands and page.name in wanted]
        assert wanted is not names or len(runs) >= 5, [page.name for page in pages if page.has_commands]
        for run in runs:
            run.result()


main()
