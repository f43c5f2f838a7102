#!/usr/bin/env python3
"""try_image.py DIR: the image in DIR is whole, small, and runs as it should: not as root, with a root that is read-only.

Without an engine: namespaces of unshare and chroot stand in for it. Where buildah is installed, it reads the image, too."""
import glob
import gzip
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "tests", "e2e"))
from harness import LONG_LEASE, PATIENCE_S, Assay, folder_place

MOST_BYTES = 120_000_000
REPORT = "echo '{\"val_error\": 1}' >> \"$ASSAY_REPORT\""
TRAIN = {"dataset": "digits", "model": {"kind": "mlp", "layers": [8]}, "optimizer": {"kind": "adamw", "lr": "${lr}"}, "epochs": 2}


def unpack(path, root):
    """Check every digest, and unpack the layers; the image's configuration is returned."""
    with tarfile.open(path) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}

    def blob(entry):
        data = files.pop("blobs/sha256/" + entry["digest"].removeprefix("sha256:"))
        assert hashlib.sha256(data).hexdigest() == entry["digest"].removeprefix("sha256:") and len(data) == entry["size"], entry
        return data

    assert json.loads(files.pop("oci-layout"))["imageLayoutVersion"] == "1.0.0"
    [entry] = json.loads(files.pop("index.json"))["manifests"]
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(entry)) for entry in manifest["layers"]]
    assert not files, f"blobs that nothing names: {list(files)}"
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]
    size = sum(len(layer) for layer in layers)
    assert size <= MOST_BYTES, f"{size} bytes"
    for layer in layers:
        subprocess.run(["tar", "-x", "--numeric-owner", "-C", root, "-f", "-"], input=layer, check=True)
    print(f"whole: {size / 1e6:.0f} MB", flush=True)
    return config


def command(root, user, *words):
    """The words in a container: read-only, of this user, with /work, /tmp and /proc of its own, and the machine's network."""
    at = shlex.quote(root)
    script = f"""
mount --bind {at} {at}; mount -o remount,bind,ro {at}
mount -t tmpfs tmpfs {at}/tmp; mount -t tmpfs -o uid={user},gid={user},mode=0700 tmpfs {at}/work
mount -t tmpfs tmpfs {at}/dev
for d in null zero random urandom; do : > {at}/dev/$d; mount --bind /dev/$d {at}/dev/$d; done
mount -t proc proc {at}/proc
cd /
exec chroot --userspec={user}:{user} --groups= {at} {' '.join(shlex.quote(w) for w in words)}
"""
    return ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "sh", "-ec", script]


def end(unshare):
    """SIGKILL to the first process of the container: chroot, which changes the user, does not keep unshare's --kill-child."""
    for pid in open(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read().split():
        os.kill(int(pid), signal.SIGKILL)
    unshare.wait()


def programs_start(root, user):
    for name in ("assay", "assayd", "assay-runner", "assay-serve", "assay-train"):
        done = subprocess.run(command(root, user, f"/usr/bin/{name}", "--help"), capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        assert done.returncode == 0 and name in done.stdout, (name, done.stdout, done.stderr)
    who = subprocess.run(command(root, user, "sh", "-c", "id -u; touch /new || echo read-only; touch /work/new && echo written"), capture_output=True, text=True)
    assert who.stdout.split() == [str(user), "read-only", "written"], who.stdout + who.stderr
    print("programs start, the root is read-only", flush=True)


def a_sweep_runs(root, user):
    """The image's server over a database of the machine, and its runner: trials of a command and of the trainer."""
    with Assay(runners=0, args=LONG_LEASE) as assay:
        token = assay.call("POST", "/v1/tokens", {"role": "runner", "name": "image"})["token"]
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ASSAY_TOKEN": token, "ASSAY_SERVER": assay.url, "ASSAY_RUNNER_NAME": "image"}
        assay.cli("data", "add", "digits", os.path.join(os.environ["ASSAY_SOURCE_ROOT"], "examples/digits.csv"), "--target", "class")
        runner = subprocess.Popen(command(root, user, "assay-runner", "--work", "/work/runner", "--cache", "/work/cache"), env=env)
        try:
            for name, trial in (("trained", {"train": TRAIN}), ("own", {"command": ["sh", "-c", REPORT]})):
                sweep = assay.call("POST", "/v1/sweeps", {"name": name, "metric": {"name": "val_error", "goal": "minimize"}, "ensemble": False,
                                                          "parameters": {"lr": {"type": "float", "min": 0.001, "max": 0.1}}, "search": {"method": "random"},
                                                          "limits": {"max_trials": 2}, "trial": trial})["id"]
                assay.wait_ended(sweep)
                assert assay.sweep(sweep)["counts"]["completed"] == 2, (name, assay.sweep(sweep)["counts"])
            checked = subprocess.run(command(root, user, "assay", "sweeps"), env={**env, "ASSAY_TOKEN": assay.token}, capture_output=True, text=True, timeout=PATIENCE_S)
            assert "trained" in checked.stdout, checked.stdout + checked.stderr
        finally:
            end(runner)
    print("its runner ran a trainer's sweep and a command's", flush=True)


def an_engine_reads_it(path):
    if not shutil.which("buildah"):
        print("buildah is not installed", flush=True)
        return
    with tempfile.TemporaryDirectory() as store:
        places = ["--storage-driver", "vfs", "--root", os.path.join(store, "root"), "--runroot", os.path.join(store, "run")]
        done = subprocess.run(["buildah", *places, "from", "oci-archive:" + path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    print("buildah reads it", flush=True)


def main(folder):
    [path] = glob.glob(os.path.join(folder, "assay-*.oci.tar"))
    root = tempfile.mkdtemp(prefix="assay-image-", dir=folder_place())
    try:
        os.chmod(root, 0o755)
        config = unpack(path, root)
        user = int(config["config"]["User"].split(":")[0])
        assert user != 0
        programs_start(root, user)
        a_sweep_runs(root, user)
        an_engine_reads_it(os.path.abspath(path))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(*sys.argv[1:])
