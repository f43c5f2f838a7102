"""What the peers share: a line of JSON for each request on stdin, and one for each answer on stdout."""
import json
import os
import sys


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
