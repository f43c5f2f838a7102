#!/usr/bin/env python3
"""All that an attempt prints is a file of its trial: bytes of any kind, a line without an end that is far beyond the limit,
the ranks of a gang, and an attempt whose runner is killed."""
import hashlib
import os
import re
import signal
import subprocess
import sys

from harness import Assay

REPORT = 'print(\'{"step": 1, "loss": 1}\', file=open(os.environ["ASSAY_REPORT"], "a"), flush=True)\n'
# A known sequence of bytes with every value, zero and escape sequences included, and no text at all.
BINARY = "import os, sys\nsys.stdout.buffer.write(bytes((i * 7 + i // 256) % 256 for i in range(200000)))\nsys.stdout.flush()\n" + REPORT
# 48 MiB as fast as it goes, without one newline.
ENDLESS = "import os, sys\nos.write(1, b'begin')\nfor i in range(768): os.write(1, b'm' * 65536)\nos.write(1, b'end')\n" + REPORT
RANK = "import os, sys\nfor i in range(9000): print('rank', os.environ['RANK'], 'line', i)\nsys.stdout.flush()\n" + REPORT
# The first attempt is killed with its runner, the second ends.
KILLED = ("import os, sys, time\nfor i in range(20000): print('attempt', os.environ['ASSAY_ATTEMPT'], 'line', i)\nsys.stdout.flush()\n"
          + REPORT + "time.sleep(600 if os.environ['ASSAY_ATTEMPT'] == '1' else 0)\n")


def begin(assay, name, program, ranks=1):
    assay.call("POST", "/v1/sweeps", {
        "name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": {"type": "float", "min": 0, "max": 1}},
        "search": {"method": "random"}, "limits": {"max_trials": 1, "max_restarts": 2}, "resources": {"ranks": ranks},
        "trial": {"command": [sys.executable, "-c", program]}})


def end_of(assay, name):
    """Wait for the end of the trial; its outputs by path."""
    assay.wait(lambda: assay.call("GET", f"/v1/sweeps/{name}/trials/0")["state"] == "completed", f"{name} to end")
    return {f["path"]: f for f in assay.call("GET", f"/v1/sweeps/{name}/trials/0/artifacts?kind=log")["items"]}


def printed(assay, name, *args):
    return subprocess.run([assay.assay, "logs", f"{name}/0", "--whole", *args], env=assay.env, capture_output=True, check=True).stdout


def check_bytes(assay):
    outputs = end_of(assay, "bytes")
    expected = bytes((i * 7 + i // 256) % 256 for i in range(200000))
    assert list(outputs) == ["attempt-1/output.log"], outputs
    assert outputs["attempt-1/output.log"]["sha256"] == hashlib.sha256(expected).hexdigest(), outputs
    assert printed(assay, "bytes", "--raw") == expected
    shown = printed(assay, "bytes")
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", shown), "control characters reach a terminal"
    assert shown.isascii() or shown.decode(), shown[:80]


def check_endless(assay):
    outputs = end_of(assay, "endless")
    text = printed(assay, "endless", "--raw")
    assert outputs["attempt-1/output.log"]["size"] == len(text) < (16 << 20) + 2000, outputs
    assert text.startswith(b"beginmmm") and b"mmmend" in text[-200:], (text[:9], text[-200:])
    gaps = re.findall(rb"\n\[assay-runner\] (\d+) bytes of the output are left out here [^\n]*\n", text)
    kept = len(re.sub(rb"\n\[assay-runner\] \d+ bytes [^\n]*\n", b"", text))
    assert gaps and sum(map(int, gaps)) + kept == 768 * 65536 + 8, (gaps, kept)


def check_ranks(assay):
    """Each runner sends the output of its rank: that of another one than the first may come after the trial's end."""
    assay.wait(lambda: len(end_of(assay, "ranks")) == 2, "the output of both ranks")
    outputs = end_of(assay, "ranks")
    assert sorted(outputs) == ["attempt-1/seat-0/output.log", "attempt-1/seat-1/output.log"], outputs
    texts = [printed(assay, "ranks", "--seat", str(seat)) for seat in (0, 1)]
    assert sorted(re.findall(rb"^rank (\d) line 0$", b"\n".join(texts), re.M)) == [b"0", b"1"], texts[0][:80]
    for text in texts:
        assert b"line 0\n" in text and b"line 8999" in text, text[:80]
    assert printed(assay, "ranks") == texts[0]


def kill_its_runner(assay):
    """Kill the runner when its trial has printed everything and the runner has had time to write it down."""
    log = lambda: assay.call("GET", "/v1/sweeps/killed/trials/0/log")["text"]  # noqa: E731
    assay.wait(lambda: "line 19999" in log(), "the output of the trial")
    name = assay.call("GET", "/v1/sweeps/killed/trials/0")["runner"]
    pid = next(p for p in assay.processes("assay-runner") if name.encode() in open(f"/proc/{p}/cmdline", "rb").read().split(b"\0"))
    os.kill(pid, signal.SIGKILL)


def check_killed(assay):
    assay.wait(lambda: len(end_of(assay, "killed")) == 2, "the output of the attempt that was lost")
    outputs = end_of(assay, "killed")
    assert sorted(outputs) == ["attempt-1/output.log", "attempt-2/output.log"], outputs
    for attempt in (1, 2):
        text = printed(assay, "killed", "--attempt", str(attempt)).decode()
        assert text.startswith(f"attempt {attempt} line 0\n") and f"attempt {attempt} line 19999\n" in text, text[:80]
    folder = os.path.join(assay.data, "fetched")
    subprocess.run([assay.assay, "files", "killed/0", "--output", folder], env=assay.env, check=True, capture_output=True)
    assert open(os.path.join(folder, "logs/attempt-1/output.log"), "rb").read().startswith(b"attempt 1 line 0\n")


def main():
    with Assay(runners=2) as assay:
        begin(assay, "killed", KILLED)
        assay.wait(lambda: assay.call("GET", "/v1/sweeps/killed")["counts"]["running"] == 1, "the trial to run")
        kill_its_runner(assay)
        begin(assay, "bytes", BINARY)
        begin(assay, "endless", ENDLESS)
        check_bytes(assay)
        check_endless(assay)
        check_killed(assay)
        begin(assay, "ranks", RANK, ranks=2)
        check_ranks(assay)
        refused = subprocess.run([assay.assay, "logs", "bytes/0", "--whole", "--follow"], env=assay.env, capture_output=True, text=True)
        assert refused.returncode == 64 and "--whole" in refused.stderr, refused
    print("all output is kept")


if __name__ == "__main__":
    main()
