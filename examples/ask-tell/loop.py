#!/usr/bin/env python3
"""Ask and tell in Python, standard library alone: run as many of these side by side as you like.

    python3 loop.py SWEEP [NAME]          with ASSAY_SERVER and ASSAY_TOKEN_FILE set

NAME is whose trials these are. Start the loop again under the same name and it goes on with the trial it had begun;
two loops that run at the same time need two names, or they would be handed the same trials."""
import json, math, os, sys, time, urllib.error, urllib.request

SERVER, TOKEN = os.environ["ASSAY_SERVER"], open(os.environ["ASSAY_TOKEN_FILE"]).read().strip()
SWEEP, CLIENT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "loop-py"


def post(path, **body):
    """Every request may be repeated: a server that is away for a while costs nothing but time."""
    data = json.dumps({"client": CLIENT, **body}).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    while True:
        try:
            request = urllib.request.Request(f"{SERVER}/v1/sweeps/{SWEEP}/suggestions{path}", data, headers)
            return json.load(urllib.request.urlopen(request, timeout=90))
        except urllib.error.HTTPError as e:
            if e.code == 409 and path:
                return None  # the lease had ended and somebody else has the trial: ask for another
            if e.code < 500 and e.code != 429:
                raise SystemExit(e.read().decode())  # a wrong request does not get better
        except OSError:
            pass
        time.sleep(1)


def loss(lr, width, kind):
    """Yours goes here: train something, measure something."""
    return math.log10(lr / 0.03) ** 2 + math.log2(width / 128) ** 2 / 8 + (0.1 if kind == "plain" else 0)


while not (answer := post("", lease_ms=60_000))["done"]:
    for trial in answer["items"]:  # none when nothing was free within half a minute: ask again
        try:
            value = float(loss(**trial["params"]))
            if not math.isfinite(value):  # JSON has no NaN
                raise ValueError(f"the loss is {value}")
            result = {"metrics": {"loss": value}}
        except Exception as e:  # that it does not work is worth knowing, too: the search avoids it
            result = {"outcome": "failed", "reason": repr(e)[:2000]}
        post(f"/{trial['number']}/complete", **result)
