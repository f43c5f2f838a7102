#!/usr/bin/env python3
"""A trial in plain Python, standard library only: logistic regression by gradient descent on two noisy rings.

It shows all that a trial may do: read its parameters, report, leave a checkpoint that the next attempt goes on
from, leave when asked to, and take part in the sweep's ensemble."""
import json
import math
import os
import random
import signal
import struct
import sys

CHECKPOINT = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state.json")
ROWS, HELD_OUT = 300, 100
asked_to_leave = False


def on_sigterm(signum, frame):
    global asked_to_leave
    asked_to_leave = True


def make_data():
    """The same rows in every trial: the ensemble compares trials on the same held-out examples."""
    draw = random.Random(1)
    rows = []
    for i in range(ROWS):
        label, angle = i % 2, draw.uniform(0, 2 * math.pi)
        radius = (1.0 if label else 1.8) + draw.gauss(0, 0.35)
        rows.append(((radius * math.cos(angle), radius * math.sin(angle)), label))
    draw.shuffle(rows)
    return rows[HELD_OUT:], rows[:HELD_OUT]


def features(point, degree):
    x, y = point
    return [x**i * y**j for i in range(degree + 1) for j in range(degree + 1 - i)]


def predict(weights, row):
    z = sum(w * f for w, f in zip(weights, row))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


def write_atomically(path, data):
    """Under a temporary name first, so that no half-written file is ever copied."""
    with open(path + ".tmp", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)


def write_npy(name, kind, shape, values):
    """A NumPy file by hand: float32 ('<f4') or int64 ('<i8')."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    body = struct.pack("<%d%s" % (len(values), "f" if kind == "<f4" else "q"), *values)
    write_atomically(os.path.join(os.environ["ASSAY_ARTIFACTS"], name),
                     b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)


def load_checkpoint():
    try:
        with open(CHECKPOINT) as f:
            state = json.load(f)
        print("going on after epoch", state["epoch"])
        return state
    except FileNotFoundError:
        return None


def main():
    signal.signal(signal.SIGTERM, on_sigterm)
    with open(os.environ["ASSAY_PARAMS"]) as f:
        params = json.load(f)
    lr, decay, degree, epochs = params["lr"], params["decay"], params["degree"], params["epochs"]
    train, held_out = make_data()
    train = [(features(p, degree), label) for p, label in train]
    held_out = [(features(p, degree), label) for p, label in held_out]
    draw = random.Random(int(os.environ["ASSAY_SEED"]))
    state = load_checkpoint() or {"epoch": 0, "weights": [draw.gauss(0, 0.01) for _ in train[0][0]]}
    weights = state["weights"]
    with open(os.environ["ASSAY_REPORT"], "a", buffering=1) as report:
        for epoch in range(state["epoch"] + 1, epochs + 1):
            gradient = [decay * w for w in weights]
            for row, label in train:
                error = predict(weights, row) - label
                gradient = [g + error * f / len(train) for g, f in zip(gradient, row)]
            weights = [w - lr * g for w, g in zip(weights, gradient)]
            wrong = sum((predict(weights, row) > 0.5) != label for row, label in held_out)
            loss = -sum(math.log(max(1e-12, p if label else 1 - p))
                        for p, label in ((predict(weights, row), label) for row, label in held_out))
            report.write(json.dumps({"step": epoch, "val_error": wrong / HELD_OUT, "val_loss": loss / HELD_OUT}) + "\n")
            if epoch == epochs:
                break
            if epoch % 10 == 0 or asked_to_leave:
                write_atomically(CHECKPOINT, json.dumps({"epoch": epoch, "weights": weights}).encode())
            if asked_to_leave:
                print("leaving after epoch", epoch)
                return 75  # try again: the next attempt goes on from the checkpoint
    ones = [predict(weights, row) for row, _ in held_out]
    write_npy("predictions.npy", "<f4", (HELD_OUT, 2), [v for p in ones for v in (1 - p, p)])
    write_npy("targets.npy", "<i8", (HELD_OUT,), [label for _, label in held_out])
    print("epochs", epochs, "error", wrong / HELD_OUT)
    return 0


sys.exit(main())
