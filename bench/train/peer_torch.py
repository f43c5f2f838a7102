"""PyTorch trains the same model, for bench/train/peer.c.

One line of JSON in, one out. A request: {"case": {…}, "threads": 2, "seconds": 1.0, "device": "cpu"}.
case: {"model": "mlp", "widths": […]} or {"model": "cnn", "input": [C, H, W], "layers": [["conv", out,
kernel, padding], ["pool", size], ["dense", out], …]} or {"model": "transformer", "depth", "width", "heads",
"context", "vocab"}, each with "batch" and "optimizer" ("sgd" or "adamw"). The answer: {"rate": rows per
second of whole steps (batch by index, forward, loss, backward, step)}: the best of PyTorch's own ways to
run the optimizer. The data lie in memory, the median of the step's time counts.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        if hasattr(F, "scaled_dot_product_attention"):
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((t, t), float("-inf"), device=x.device).triu(1)
            mixed = (q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5 + mask).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens, self.places = nn.Embedding(c["vocab"], c["width"]), nn.Embedding(c["context"], c["width"])
        self.blocks = nn.Sequential(*[Block(c["width"], c["heads"]) for _ in range(c["depth"])])
        self.norm, self.head = nn.LayerNorm(c["width"]), nn.Linear(c["width"], c["vocab"])

    def forward(self, x):
        x = self.tokens(x) + self.places.weight
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


def mlp(c):
    layers = []
    for i, o in zip(c["widths"], c["widths"][1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn(c):
    layers, x, flat = [], torch.zeros(1, *c["input"]), False
    for kind, size, *conv in c["layers"]:
        if kind == "dense" and not flat:
            layers.append(nn.Flatten())
            x, flat = layers[-1](x), True
        if kind == "conv":
            layers += [nn.Conv2d(x.shape[1], size, conv[0], padding=conv[1]), nn.ReLU()]
            x = layers[-2](x)
        elif kind == "pool":
            layers.append(nn.MaxPool2d(size))
            x = layers[-1](x)
        else:
            layers += [nn.Linear(x.shape[1], size), nn.ReLU()]
            x = layers[-2](x)
    return nn.Sequential(*layers[:-1])


def data(c, device):
    rows = 8 * c["batch"]
    if c["model"] == "transformer":
        x = torch.randint(c["vocab"], (rows, c["context"] + 1), device=device)
        return x[:, :-1].contiguous(), x[:, 1:].contiguous()
    shape = c["widths"][:1] if c["model"] == "mlp" else c["input"]
    classes = c["widths"][-1] if c["model"] == "mlp" else c["layers"][-1][1]
    return torch.randn(rows, *shape, device=device), torch.randint(classes, (rows,), device=device)


def rate(c, seconds, device, foreach):
    torch.manual_seed(1)
    model = {"mlp": mlp, "cnn": cnn, "transformer": Transformer}[c["model"]](c).to(device)
    x, y = data(c, device)
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01, foreach=foreach),
            "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=foreach)}[c["optimizer"]]
    opt = make(model.parameters())

    def step():
        rows = torch.randint(len(x), (c["batch"],), device=device)
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(model(x[rows]), y[rows].flatten()).backward()
        opt.step()
        if device != "cpu":
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return c["batch"] / statistics.median(times)


def answer(request):
    torch.set_num_threads(request["threads"])
    half = request["seconds"] / 2
    return {"rate": max(rate(request["case"], half, request["device"], f) for f in (False, True))}


def main():
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as e:  # the parent reports it
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), flush=True)


main()
