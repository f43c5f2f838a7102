"""A trial of the day: a curve, a log, files of each kind that the page shows, and a failure where the rate is too high."""
import json
import os
import random
import struct
import sys
import time
import zlib

params = json.load(open(os.environ["ASSAY_PARAMS"]))
draw = random.Random(int(os.environ["ASSAY_SEED"]))
pause = float(sys.argv[1])
print("begins with", json.dumps(params, sort_keys=True), flush=True)
w = 1.0
with open(os.environ["ASSAY_REPORT"], "a", buffering=1) as report:
    for step in range(1, 9):
        w -= params["lr"] * 2 * w * (1 if params["kind"] == "plain" else 0.5) + 0.01 * draw.gauss(0, 1)
        if params["lr"] > 0.8 and step > 4:
            print("diverged at step", step, file=sys.stderr)
            sys.exit(3)
        report.write(json.dumps({"step": step, "loss": w * w + 0.1 * params["decay"], "norm": abs(w)}) + "\n")
        print("step", step, "loss", round(w * w, 5), flush=True)
        time.sleep(pause)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


rows = b"".join(b"\0" + b"".join(bytes([8 * x, 8 * y, 128]) for x in range(32)) for y in range(32))
picture = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0))
           + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
files = {
    "plot.png": picture,
    "table.csv": b"step,value\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5)),
    "summary.json": json.dumps({"w": w}).encode(),
    "note.txt": b"# done\n<script>window.pwned = 1</script>\n",
}
for name, content in files.items():
    with open(os.path.join(os.environ["ASSAY_ARTIFACTS"], name), "wb") as f:
        f.write(content)
