#!/usr/bin/env python3
"""Make the problems optimisers-*: surrogates of real training runs of a small network, 20 parameters.

    /usr/bin/python3 bench/search/learners/make_optimisers.py --data DIR [NAME…]

DIR as make_learners.py has it. Needs numpy, scikit-learn and PyTorch. A run trains a network of one to five layers on
400 rows and measures its error on 1,000 rows held out. Each optimiser is a part (forests.py), with 110 runs.
"""
import argparse
import math
import sys

import numpy as np

import forests
import make_learners
from forests import choice, real, whole

SEED = 20261130
N_TRAIN, N_VALID, N_RUNS = 400, 1000, 110
OPTIMISERS = ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop")
ADAMS = ["adam", "adamw"]

SPACE = {
    "optimizer": choice(*OPTIMISERS),
    "learning_rate": real(1e-5, 1),
    "momentum": real(0, 0.99, "linear", optimizer=["momentum", "nesterov", "rmsprop"]),
    "beta1": real(0.5, 0.99, "linear", optimizer=ADAMS),
    "beta2": real(0.8, 0.9999, "linear", optimizer=[*ADAMS, "rmsprop"]),
    "eps": real(1e-10, 0.1, "log", optimizer=[*ADAMS, "rmsprop"]),
    "weight_decay": real(1e-8, 1),
    "schedule": choice("constant", "step", "cosine"),
    "step_size": whole(1, 10, "linear", schedule="step"),
    "gamma": real(0.05, 0.95, "linear", schedule="step"),
    "epochs": whole(2, 16),
    "batch_size": choice(16, 32, 64, 128, 256),
    "activation": choice("relu", "tanh", "gelu", "sigmoid"),
    "normalisation": choice("none", "batch", "layer"),
    "dropout": real(0, 0.8, "linear"),
    "n_layers": whole(1, 5),
    "units_1": whole(4, 128, "log"),
    **{f"units_{k}": whole(4, 128, "log", n_layers={"min": k}) for k in range(2, 6)},
}


def network(c, n_in, n_out):
    from torch import nn
    layers = []
    for k in range(1, c["n_layers"] + 1):
        width = c[f"units_{k}"]
        layers.append(nn.Linear(n_in, width))
        if c["normalisation"] != "none":
            layers.append(nn.BatchNorm1d(width) if c["normalisation"] == "batch" else nn.LayerNorm(width))
        layers.append({"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "sigmoid": nn.Sigmoid}[c["activation"]]())
        if c["dropout"] > 0:
            layers.append(nn.Dropout(c["dropout"]))
        n_in = width
    return nn.Sequential(*layers, nn.Linear(n_in, n_out))


def optimiser(c, weights):
    from torch import optim
    rate, decay, kind = c["learning_rate"], c["weight_decay"], c["optimizer"]
    if kind in ADAMS:
        make = optim.Adam if kind == "adam" else optim.AdamW
        return make(weights, rate, (c["beta1"], c["beta2"]), c["eps"], decay)
    if kind == "rmsprop":
        return optim.RMSprop(weights, rate, c["beta2"], c["eps"], decay, c["momentum"])
    return optim.SGD(weights, rate, c.get("momentum", 0), 0, decay, kind == "nesterov" and c["momentum"] > 0)


def rate_at(c, epoch):
    """The factor of the rate."""
    if c["schedule"] == "step":
        return c["gamma"] ** (epoch // c["step_size"])
    return 0.5 * (1 + math.cos(math.pi * epoch / c["epochs"])) if c["schedule"] == "cosine" else 1


def run(c, data):
    import torch
    xa, ya, xb, yb = data
    torch.manual_seed(SEED)
    net = network(c, xa.shape[1], int(ya.max()) + 1)
    opt = optimiser(c, net.parameters())
    loss = torch.nn.CrossEntropyLoss()
    for epoch in range(c["epochs"]):
        for group in opt.param_groups:
            group["lr"] = c["learning_rate"] * rate_at(c, epoch)
        order = torch.randperm(len(xa))
        for at in range(0, len(xa), c["batch_size"]):
            rows = order[at:at + c["batch_size"]]
            opt.zero_grad()
            value = loss(net(xa[rows]), ya[rows])
            value.backward()
            opt.step()
        if not torch.isfinite(value):
            break
    net.eval()
    with torch.no_grad():
        out = torch.nan_to_num(net(xb))
    return float((out.argmax(1) != yb).float().mean())


def make(name, folder):
    import torch
    print(name, file=sys.stderr)
    of = name.split("-")[1]
    x, y = make_learners.SETS["learners-" + of](folder)
    order = np.random.RandomState(SEED).permutation(len(x))[:N_TRAIN + N_VALID]
    x, y = x[order], np.unique(y[order], return_inverse=True)[1]
    x = (x - x[:N_TRAIN].mean(0)) / (x[:N_TRAIN].std(0) + 1e-9)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    data = x[:N_TRAIN], y[:N_TRAIN], x[N_TRAIN:], y[N_TRAIN:]
    rng = np.random.default_rng(SEED)
    made = [forests.part_of(SPACE, {"optimizer": k}, N_RUNS, lambda c: [(c, run(c, data))], rng, SEED)
            for k in OPTIMISERS]
    about = (f"Error on {N_VALID} rows held out of a network trained on {N_TRAIN} rows of {of}, with one of six "
             f"optimisers. make_optimisers.py, seed {SEED}, PyTorch {torch.__version__}, numpy {np.__version__}.")
    forests.write(name, about, SPACE, made)


NAMES = ["optimisers-letter", "optimisers-adult", "optimisers-california"]


def main():
    import torch
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", default="data")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    args = p.parse_args()
    torch.set_num_threads(1)
    for name in args.names or NAMES:
        make(name, args.data)


if __name__ == "__main__":
    main()
