#!/usr/bin/env python3
"""Networks of a model file, rebuilt with numpy from docs/models.md ("Tensors") alone: nothing of Assay is used.

rebuild.py MODEL ROWS OUTPUT   rows of a CSV file, or images of a .npy file, to predictions (.npy)
rebuild.py MODEL TEXT          prints the mean loss of the held-out windows of a text"""
import csv
import json
import math
import struct
import sys

import numpy as np


def as_floats(tensor):
    """Of its bytes and its entry in the header."""
    return np.frombuffer(tensor[0], "<f4").reshape(tensor[1]["shape"]).astype(np.float64)


class Model:
    """A trial's model.safetensors."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        self.meta = {k: json.loads(v) if v[:1] in "{[" else v for k, v in header.pop("__metadata__").items()}
        self.tensors = {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            self.tensors[name] = as_floats((data[8 + length + begin:8 + length + end], t))
        self.train = self.meta["train"]
        self.record = self.meta["preprocessing"]
        self.net = self.train.get("model", {})

    def __getitem__(self, name):
        return self.tensors[name]


def relu(x):
    return np.maximum(x, 0)


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


ACTIVATIONS = {"relu": relu, "tanh": np.tanh, "gelu": gelu, "none": lambda x: x}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- rows of a table ----

def slot_of(column, cell):
    """The number of a category's slot."""
    if cell in column["values"]:
        return column.get("input", column.get("code")) + column["values"].index(cell)
    return column["other"] if cell else column.get("missing", column["other"])


def pieces(edges, values, bins):
    """The values of a number for each bin [rows, bins]."""
    x = np.zeros((len(values), bins))
    last = len(edges) - 2
    for k in range(last + 1):
        v = (values - edges[k]) / (edges[k + 1] - edges[k])
        x[:, k] = np.clip(v, None if k == 0 else 0, None if k == last else 1) if 0 < last else v
    return x


def encode(m, rows):
    """Inputs [rows, numbers and one-hot categories], and codes [rows, columns of categories]."""
    bins = m.record.get("bins", 0)
    cut = sum("edges" in c for c in m.record["columns"]) * (bins - 1)
    x = np.zeros((len(rows), m["input.mean"].size + cut))
    codes = []
    for c in m.record["columns"]:
        cells = [row[c["column"]].strip() for row in rows]
        if c["kind"] == "numeric":
            values = np.float32([float(cell) if cell else c["missing"] for cell in cells])
            if "edges" in c:
                x[:, c["input"]:c["input"] + bins] = pieces(np.float32(c["edges"]), values, bins)
            else:
                x[:, c["input"]] = (values - np.float32(c["mean"])) / np.float32(c["scale"])
            if "indicator" in c:
                x[:, c["indicator"]] = [not cell for cell in cells]
        elif "input" in c:
            x[np.arange(len(rows)), [slot_of(c, cell) for cell in cells]] = 1
        else:
            codes.append([slot_of(c, cell) for cell in cells])
    return x, np.array(codes, int).T


# ---- layers ----

def norm(m, name, x):
    scale = m[name + ".weight"] / np.sqrt(m[name + ".running_var"] + 1e-5)
    return (x - m[name + ".running_mean"]) * scale + m[name + ".bias"]


def finish(m, name, x, activation):
    x = norm(m, name + ".norm", x) if name + ".norm.weight" in m.tensors else x + m[name + ".bias"]
    return activation(x)


def dense(m, name, x, activation):
    return finish(m, name, x.reshape(len(x), -1) @ m[name + ".weight"], activation)


def windows(x, size, stride, pad, fill):
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    v = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
    return v[:, ::stride, ::stride]  # [rows, height, width, channels, size, size]


def conv(m, name, x, item, activation):
    w = m[name + ".weight"]
    size = w.shape[0]
    pad = {"same": (size - 1) // 2, "valid": 0}.get(item.get("padding", "same"), item.get("padding"))
    v = windows(x, size, item.get("stride", 1), pad, 0)
    groups = x.shape[-1] // w.shape[2]
    parts = np.split(w, groups, axis=3)
    outs = [np.einsum("nhwcij,ijco->nhwo", v[:, :, :, g * w.shape[2]:(g + 1) * w.shape[2]], p) for g, p in enumerate(parts)]
    return finish(m, name, np.concatenate(outs, -1), activation)


def layer(m, name, x, item, activation):
    own = ACTIVATIONS[item.get("activation", "relu")] if "activation" in item else activation
    if "conv" in item:
        return conv(m, name, x, {"kernel": 3, **item}, own)
    if "dense" in item:
        return dense(m, name, x, own)
    if "dropout" in item:
        return x
    if item["pool"] == "global":
        return x.mean((1, 2), keepdims=True)
    size = item.get("size", 2)
    v = windows(x, size, item.get("stride", size), item.get("padding", 0), -np.inf if item["pool"] == "max" else 0)
    return v.max((-2, -1)) if item["pool"] == "max" else v.mean((-2, -1))


def residual(m, name, x, items, activation):
    y = x
    for i, item in enumerate(items):
        y = layer(m, f"{name}.{i}", y, item, activation)
    if x.shape != y.shape:
        stride = next(s for s in range(1, 99) if (x.shape[1] - 1) // s + 1 == y.shape[1])
        x = conv(m, name + ".projection", x, {"padding": 0, "stride": stride}, ACTIVATIONS["none"])
    return relu(y + x)


# ---- networks ----

def mlp(m, rows):
    x, codes = encode(m, rows)
    if codes.size:
        vectors = m["categories.weight"][codes]
        x = np.concatenate([x, vectors.reshape(len(x), -1)], 1)
    activation = ACTIVATIONS[m.net.get("activation", "relu")]
    n = 0 if m.net.get("kind") in ("linear", "logistic") else len(m.net.get("layers", [64]))
    for i in range(n):
        x = dense(m, f"layers.{i}", x, activation)
    return dense(m, f"layers.{n}", x, ACTIVATIONS["none"])


def cnn(m, images):
    x = (images - m["input.mean"]) / m["input.scale"]
    activation = ACTIVATIONS[m.net.get("activation", "relu")]
    for i, item in enumerate(m.net["layers"]):
        name = f"layers.{i}"
        x = residual(m, name, x, item["residual"], activation) if "residual" in item else layer(m, name, x, item, activation)
    return dense(m, f"layers.{len(m.net['layers'])}", x, ACTIVATIONS["none"])


def layer_norm(m, name, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * m[name + ".weight"] + m[name + ".bias"]


def linear(m, name, x):
    return x @ m[name + ".weight"] + m[name + ".bias"]


def attention(qkv, heads):
    rows, tokens, width = qkv.shape
    q, k, v = (part.reshape(rows, tokens, heads, -1).transpose(0, 2, 1, 3) for part in np.split(qkv, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
    scores[:, :, ~np.tri(tokens, dtype=bool)] = -np.inf
    return (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(rows, tokens, width // 3)


def transformer(m, tokens):
    x = m["embedding.tokens"][tokens] + m["embedding.positions"]
    for i in range(m.net.get("depth", 4)):
        b = f"blocks.{i}."
        a = attention(linear(m, b + "qkv", layer_norm(m, b + "norm1", x)), m.net.get("heads", 4))
        x = x + linear(m, b + "projection", a)
        h = gelu(linear(m, b + "mlp.0", layer_norm(m, b + "norm2", x)))
        x = x + linear(m, b + "mlp.1", h)
    return layer_norm(m, "norm", x) @ m["head.weight"]


def predictions(m, outputs):
    """Probabilities, or numbers in the targets' own unit."""
    if "target" in m.record:
        return outputs * m["target.scale"] + m["target.mean"]
    if m.train.get("loss") == "bce":
        p = 1 / (1 + np.exp(-outputs))
        return np.concatenate([1 - p, p], 1)
    return softmax(outputs)


def text_loss(m, path):
    """Of the windows that follow the training tokens, each of which predicts the token after each of its own."""
    with open(path, "rb") as f:
        tokens = np.frombuffer(f.read(), np.uint8).astype(int)
    context, first = m.record["text"]["context"], m.record["text"]["training_tokens"]
    n = m.record["validation_rows"] * context
    seen, after = tokens[first:first + n].reshape(-1, context), tokens[first + 1:first + n + 1].reshape(-1, context)
    p = softmax(transformer(m, seen))
    return float(-np.log(np.take_along_axis(p, after[:, :, None], 2)).mean())


def main(model, rows, output=None):
    m = Model(model)
    if output is None:
        print(repr(text_loss(m, rows)))
        return
    if rows.endswith(".npy"):
        outputs = cnn(m, np.load(rows).astype(np.float64))
    else:
        with open(rows, encoding="utf-8") as f:
            outputs = mlp(m, list(csv.DictReader(f)))
    np.save(output, predictions(m, outputs))


if __name__ == "__main__":
    main(*sys.argv[1:])
