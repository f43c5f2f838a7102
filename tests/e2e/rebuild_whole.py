#!/usr/bin/env python3
"""Whole model files, rebuilt with numpy from docs/models.md alone: extra trees, neighbours, naive Bayes, networks (rebuild.py),
means and stacked ensembles of them, calibrated or not. Nothing of Assay is used.

rebuild_whole.py MODEL ROWS OUTPUT   rows of a CSV file to probabilities or numbers (.npy)"""
import csv
import json
import struct
import sys

import numpy as np

import rebuild


class Member:
    """One member of a model file, as rebuild.py sees a trial's file."""

    def __init__(self, about, tensors):
        self.train, self.record, self.weight, self.at = about["train"], about["preprocessing"], about["weight"], about.get("input")
        self.net, self.tensors = self.train.get("model", {}), tensors

    def __getitem__(self, name):
        return rebuild.as_floats(self.tensors[name])

    def bytes(self, name):
        return self.tensors[name][0]


class Reader:
    """Arrays one after another in the bytes of a tensor."""

    def __init__(self, data, magic):
        assert data[:8] == magic, data[:8]
        self.data, self.at = data, 8

    def take(self, kind, *shape):
        a = np.frombuffer(self.data, kind, int(np.prod(shape)), self.at).reshape(shape)
        self.at += a.nbytes
        return a


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    manifest = json.loads(header.pop("__metadata__")["model"])
    tensors = {n: (data[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]], t) for n, t in header.items()}
    members = []
    for i, about in enumerate(manifest["members"]):
        own = f"members/{i}/"
        members.append(Member(about, {n[len(own):]: t for n, t in tensors.items() if n.startswith(own)}))
    return manifest, members


# ---- kinds that are no networks ----

def columns_as_they_are(m, rows):
    """Inputs of trees and naive Bayes: numbers, and categories as the index of the value; a missing cell is NaN."""
    columns = []
    for c in m.record["columns"]:
        cells = [row[c["column"]].strip() for row in rows]
        if c["kind"] == "numeric":
            columns.append([np.float32(cell) if cell else np.nan for cell in cells])
        else:
            known = {value: k for k, value in enumerate(c["values"])}
            columns.append([known.get(cell, len(known)) if cell else np.nan for cell in cells])
    return np.array(columns, np.float32).T


def extra_trees(m, rows):
    r = Reader(m.bytes("trees"), b"assayet1")
    inputs, outputs, trees, nodes, values, words = r.take("<u4", 6)
    r.take("<f8", 3, inputs)
    roots = r.take("<u4", trees)
    node, value, word = r.take("<u4", nodes, 3), r.take("<f4", values, outputs), r.take("<u4", words)
    x = columns_as_they_are(m, rows)
    found = np.zeros((len(x), outputs))
    for i, row in enumerate(x):
        for at in roots:
            while not node[at, 0] >> 31:
                split, left, point = (int(v) for v in node[at])
                cell = row[split & 0x1fffffff]
                if np.isnan(cell):
                    goes_left = bool(split >> 29 & 1)
                elif split >> 30 & 1:
                    goes_left = bool(int(word[point + int(cell) // 32]) >> int(cell) % 32 & 1)
                else:
                    goes_left = cell < np.array(point, "<u4").view("<f4")
                at = left if goes_left else left + 1
            found[i] += value[node[at, 1]]
    return found / trees


def neighbours(m, rows):
    r = Reader(m.bytes("neighbours"), b"assaynn1")
    inputs, outputs, n, of_classes = r.take("<u4", 4)
    known = r.take("<f4", n, inputs).astype(float)
    what = np.eye(outputs)[r.take("<u4", n)] if of_classes else r.take("<f4", n, outputs).astype(float)
    counts = r.take("<f4", n).astype(float)
    x, _ = rebuild.encode(m, rows)
    x = np.float32(x).astype(float)
    found = np.zeros((len(x), outputs))
    for i, row in enumerate(x):
        squares = np.float32(((known - row) ** 2).sum(1)).astype(float)
        squares[squares < 1e-12 * ((known ** 2).sum(1) + (row ** 2).sum())] = 0
        near = np.argsort(squares, kind="stable")[:m.net["neighbours"]]
        weight = counts[near]
        if m.net.get("weights") == "distance":
            zero = squares[near] == 0
            weight = weight * zero if zero.any() else weight / np.sqrt(squares[near])
        found[i] = weight @ what[near] / weight.sum()
    return found


def naive_bayes(m, rows):
    r = Reader(m.bytes("naive_bayes"), b"assaynb1")
    inputs, classes, _, _ = r.take("<u4", 4)
    kinds = r.take("<u4", inputs)
    r.at = (r.at + 7) // 8 * 8
    x = columns_as_they_are(m, rows).astype(float)
    score = np.tile(r.take("<f8", classes), (len(x), 1))
    for i, kind in enumerate(kinds):
        there = ~np.isnan(x[:, i])
        if kind == 0:
            mean, variance = r.take("<f8", classes), r.take("<f8", classes)
            terms = -(np.log(2 * np.pi * variance) + (x[there, i, None] - mean) ** 2 / variance) / 2
        else:
            terms = r.take("<f8", kind, classes)[x[there, i].astype(int)]
        score[there] += terms
    return rebuild.softmax(score)


def predict_member(m, rows):
    """Probabilities of the classes, or numbers in the target's own unit."""
    kind = m.net.get("kind", "mlp")
    if kind in ("mlp", "linear", "logistic"):
        return rebuild.predictions(m, rebuild.mlp(m, rows))
    found = {"extra_trees": extra_trees, "knn": neighbours, "naive_bayes": naive_bayes}[kind](m, rows)
    if "target" in m.record:
        target = m.record["target"]
        return found * np.array(target["scale"]) + np.array(target["mean"])
    if kind == "extra_trees":
        return np.concatenate([1 - found, found], 1) if found.shape[1] == 1 else found / found.sum(1, keepdims=True)
    return found


# ---- how members make one prediction ----

def combine(manifest, members, rows):
    how = manifest["combine"]
    each = [predict_member(m, rows) for m in members]
    if how["kind"] == "mean":
        p = sum(m.weight * e for m, e in zip(members, each))
    else:
        assert how["kind"] == "linear", how["kind"]
        logarithms = how["inputs"] == "log"
        p = np.tile(np.array(how["biases"], float), (len(rows), 1))
        for k, weight in enumerate(how["weights"]):
            own = [(m.weight, e) for m, e in zip(members, each) if m.at == k]
            mean = sum(w * e for w, e in own) / sum(w for w, _ in own)
            p += weight * (np.log(np.clip(mean, 1e-7, 1)) if logarithms else mean)
        p = rebuild.softmax(p) if logarithms else p
    if "calibration" in how:
        score = how["calibration"]["slope"] * np.log(np.clip(np.float32(p).astype(float), 1e-7, 1))
        score[:, -1] += how["calibration"].get("bias", 0)
        p = rebuild.softmax(score)
    return p


def main(model, rows, output):
    manifest, members = read(model)
    with open(rows, encoding="utf-8") as f:
        np.save(output, combine(manifest, members, list(csv.DictReader(f))))


if __name__ == "__main__":
    main(*sys.argv[1:])
