#!/usr/bin/env python3
"""Content outside of the database: a folder, with assayd killed during uploads and a full disk; and an S3
service that checks signatures. `assay files` fetches what a trial left, once."""
import contextlib
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import Assay, Problem
from s3_server import Service

BIG = 9 << 20  # three parts
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "AWS_REGION": "eu-test-1", "AWS_SESSION_TOKEN": "a/token+with=signs"}
# The trial ends when its checkpoint is stored: the test makes the file GO.
LEAVES = {
    "name": "leaves", "metric": {"name": "loss", "goal": "minimize"}, "limits": {"max_trials": 1},
    "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random"},
    "trial": {"command": ["sh", "-c", "mkdir $ASSAY_ARTIFACTS/plots && echo one > $ASSAY_ARTIFACTS/plots/one && "
                          "yes model | head -c 9437184 > $ASSAY_ARTIFACTS/big && echo state > $ASSAY_CHECKPOINTS/state "
                          "&& echo hello && while [ ! -e GO ]; do sleep 0.1; done && echo '{\"loss\": 1}' >> $ASSAY_REPORT"]},
}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def put(assay, data):
    assay.call("PUT", f"/v1/blobs/{digest(data)}", raw=data)
    return digest(data)


def logs(assay):
    return "".join(open(name).read() for name in glob.glob(os.path.join(assay.data, "logs", "*")))


def check_files(assay, folder):
    """List, fetch, fetch again; nothing is written through a link or over what is no file."""
    go = os.path.join(folder, "go")
    assay.call("POST", "/v1/sweeps", json.loads(json.dumps(LEAVES).replace("GO", go)))
    assay.wait(lambda: assay.call("GET", "/v1/sweeps/leaves/trials/0/artifacts?kind=checkpoint")["items"],
               "the checkpoint")
    open(go, "w").close()
    assay.wait_ended("leaves")
    rows = [line.split("\t")[:2] for line in assay.cli("files", "leaves/0").stdout.strip().split("\n")]
    assert rows == [["kind", "path"], ["artifact", "big"], ["artifact", "plots/one"], ["checkpoint", "state"]], rows
    out = os.path.join(folder, "out")
    assert "3 files fetched" in assay.cli("files", "leaves/0", "--output", out).stderr
    big = (b"model\n" * (BIG // 6 + 1))[:BIG]
    with open(os.path.join(out, "artifacts", "big"), "rb") as f:
        assert f.read() == big
    with open(os.path.join(out, "log.txt")) as f:
        assert "hello" in f.read()
    before = os.stat(os.path.join(out, "artifacts", "big")).st_ino
    os.unlink(os.path.join(out, "artifacts", "plots", "one"))
    with open(os.path.join(out, "checkpoints", "state"), "w") as f:
        f.write("STATE\n")  # the same size
    done = json.loads(assay.cli("files", "leaves/0", "--output", out, "--json").stdout)["items"]
    assert {d["path"]: d["fetched"] for d in done} == {"big": False, "plots/one": True, "state": True}, done
    assert os.stat(os.path.join(out, "artifacts", "big")).st_ino == before
    shutil.rmtree(os.path.join(out, "artifacts", "plots"))
    os.mkdir(os.path.join(folder, "else"))
    os.symlink(os.path.join(folder, "else"), os.path.join(out, "artifacts", "plots"))
    failed = assay.cli("files", "leaves/0", "--output", out, check=False)
    assert failed.returncode != 0 and "no folder" in failed.stderr, failed.stderr
    assert os.listdir(os.path.join(folder, "else")) == []
    os.unlink(os.path.join(out, "artifacts", "plots"))
    os.unlink(os.path.join(out, "checkpoints", "state"))
    os.mkfifo(os.path.join(out, "checkpoints", "state"))
    failed = assay.cli("files", "leaves/0", "--output", out, check=False)
    assert failed.returncode != 0 and "not a regular file" in failed.stderr, failed.stderr
    return big


def check_s3(folder):
    service = Service(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"], KEYS["AWS_REGION"],
                      KEYS["AWS_SESSION_TOKEN"])
    service.fail_next = 2  # tried again
    with Assay(runners=1, env={**KEYS, "ASSAY_BLOB_STORE": "s3://models/assay/one",
                               "ASSAY_S3_ENDPOINT": service.url}) as assay:
        big = check_files(assay, folder)
        assert not service.refused, service.refused
        parts = [big[i:i + (4 << 20)] for i in range(0, BIG, 4 << 20)]
        for part in parts:
            assert service.objects[f"models/assay/one/{digest(part)[:2]}/{digest(part)}"] == part
        # a trial whose file differs in its last byte: two of its parts are there, and are not sent again
        sent = [name for method, name in service.requests if method == "PUT"]
        other = big[:-1] + b"!"
        body = {"size": BIG, "parts": [digest(other[i:i + (4 << 20)]) for i in range(0, BIG, 4 << 20)]}
        assert assay.call("PUT", f"/v1/blobs/{digest(other)}/parts", body)["missing"] == [2]
        put(assay, other[8 << 20:])
        assert assay.call("PUT", f"/v1/blobs/{digest(other)}/parts", body)["missing"] == []
        assert assay.call("GET", f"/v1/blobs/{digest(other)}") == other
        assert len([name for method, name in service.requests if method == "PUT"]) == len(sent) + 1
        # altered and lost: the digest is named
        small = put(assay, b"small")
        service.objects[f"models/assay/one/{small[:2]}/{small}"] = b"SMALL"
        with contextlib.suppress(Exception):
            raise AssertionError(assay.call("GET", f"/v1/blobs/{small}"))
        assay.wait(lambda: f"{small} was altered" in logs(assay), "the log to name the content")
        # a deleted sweep frees its objects
        assert b'assay_content_bytes{place="store"}' in assay.call("GET", "/metrics")
        assay.call("DELETE", "/v1/sweeps/leaves")
        gone = f"models/assay/one/{digest(parts[2])[:2]}/{digest(parts[2])}"
        assay.wait(lambda: gone not in service.objects, "the content of the deleted sweep to go")
        assert not service.refused, service.refused


def stored_right(store):
    """Every file under a digest has that content."""
    names = glob.glob(os.path.join(store, "??", "*"))
    for name in names:
        with open(name, "rb") as f:
            assert digest(f.read()) == os.path.basename(name), name
    return len(names)


def check_killed(store):
    """assayd is killed with SIGKILL again and again while content arrives."""
    env = {"ASSAY_BLOB_STORE": store}
    with Assay(runners=0, env=env) as assay:
        stop, stored = threading.Event(), []

        def upload():
            for i in range(10000):
                if stop.is_set():
                    return
                with contextlib.suppress(Exception):
                    stored.append(put(assay, (b"%06d" % i) * 900000))  # 5.4 MB: two parts
        thread = threading.Thread(target=upload)
        thread.start()
        for kill in range(2):
            wanted = len(stored) + 2
            assay.wait(lambda: len(stored) >= wanted, "uploads")
            for pid in assay.processes("assayd"):
                os.kill(pid, signal.SIGKILL)
            if kill == 0 and not assay.processes("assayd"):
                time.sleep(1)
                if assay.up.poll() is not None:
                    assay.start()
        stop.set()
        thread.join()
        if assay.up.poll() is not None:
            assay.start()
        assert stored_right(store) > 0
        assay.wait(lambda: assay.call("GET", "/readyz") is not None, "assayd")
        for name in stored[:3] + stored[-3:]:
            assert digest(assay.call("GET", f"/v1/blobs/{name}")) == name


def check_full(folder):
    """A full disk: the upload fails, says why, and what was there stays."""
    store = os.path.join(folder, "small")
    os.mkdir(store)
    mounted = os.getuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0777", "none", store],
                                                  capture_output=True).returncode == 0
    if not mounted:
        print("no tmpfs could be mounted: the full disk is not tested")
        return
    try:
        with Assay(runners=0, env={"ASSAY_BLOB_STORE": store}) as assay:
            kept = put(assay, b"k" * 3000000)
            try:
                put(assay, os.urandom(4 << 20))
                raise AssertionError("the disk was not full")
            except Problem as p:
                assert p.status >= 500, p
            assay.wait(lambda: "No space left" in logs(assay), "the log to say why")
            assert digest(assay.call("GET", f"/v1/blobs/{kept}")) == kept
            assert os.listdir(os.path.join(store, "draft")) == [] and stored_right(store) == 1
            put(assay, b"n" * 100000)
    finally:
        subprocess.run(["umount", store], check=True)


def main():
    folder = tempfile.mkdtemp(prefix="assay-blob-store-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        check_s3(folder)
        store = os.path.join(folder, "store")
        os.mkdir(store, 0o777)
        os.chmod(store, 0o777)
        check_killed(store)
        check_full(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
