"""Programs that suggest: a line of JSON for each request on stdin, and one for each answer on stdout. What they share, and
the other end."""
import json
import os
import subprocess
import sys


class Asked:
    """A process that serves: one request at a time, by one thread. An error that it answers is raised here."""

    def __init__(self, command, environment=None, stderr=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
                                        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def answer(self):
        said = json.loads(self.process.stdout.readline())
        if "error" in said:
            raise RuntimeError(said["error"])
        return said

    def call(self, op, **message):
        self.process.stdin.write(json.dumps({"op": op, **message}) + "\n")
        self.process.stdin.flush()
        return self.answer()


def serve(load):
    """Call the method of a peer that each request names as `op`, with its other fields. `load` returns the first
    line, an object, and the peer. An error is the last answer, and ends the process with 1."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        hello, peer = load()
        print(json.dumps(hello), file=out)
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(getattr(peer, request.pop("op"))(**request)), file=out)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception as e:  # the parent says it
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}), file=out)
        raise SystemExit(1) from e
