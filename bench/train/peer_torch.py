"""PyTorch trains the same model, for bench/train/peer.c.

One line of JSON in, one out. A request: {"case": {…}, "threads": 2, "seconds": 1.0, "device": "cpu"}.
case: {"model": "mlp", "widths": […]} (the last one 1: a number, by the squared error) or {"model": "cnn",
"input": [C, H, W], "layers": [["conv", out, kernel, padding], ["normed", out, kernel, padding], ["residual", out,
stride], ["pool", size], ["mean", size], ["dense", out], …]} or {"model": "transformer", "depth", "width", "heads",
"context", "vocab"}, each with "batch" and "optimizer" ("sgd" or "adamw"). The answer: {"rate": rows per
second of whole steps (batch by index, forward, loss, backward, step), "cpu_us": processor time of a row in
microseconds}: each the best of PyTorch's own ways to run the optimizer. The data lie in memory, the median
of the step's time counts.
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


class Residual(nn.Module):
    """The basic block of a ResNet: two convolutions, normalised, and the input, through a projection where shapes differ."""
    def __init__(self, channels, out, stride):
        super().__init__()
        conv = lambda i, s: nn.Sequential(nn.Conv2d(i, out, 3, s, 1, bias=False), nn.BatchNorm2d(out))
        self.branch = nn.Sequential(conv(channels, stride), nn.ReLU(), conv(out, 1))
        same = channels == out and stride == 1
        self.other = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.branch(x) + self.other(x))


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
    layers, x, flat = [], torch.zeros(2, *c["input"]), False
    for kind, size, *conv in c["layers"]:
        if kind == "dense" and not flat:
            layers.append(nn.Flatten())
            x, flat = layers[-1](x), True
        made = {"conv": lambda: [nn.Conv2d(x.shape[1], size, conv[0], padding=conv[1]), nn.ReLU()],
                "normed": lambda: [nn.Conv2d(x.shape[1], size, conv[0], padding=conv[1], bias=False),
                                   nn.BatchNorm2d(size), nn.ReLU()],
                "residual": lambda: [Residual(x.shape[1], size, conv[0])],
                "pool": lambda: [nn.MaxPool2d(size)],
                "mean": lambda: [nn.AdaptiveAvgPool2d(size)],
                "dense": lambda: [nn.Linear(x.shape[1], size), nn.ReLU()]}[kind]()
        for layer in made:
            x = layer(x)
        layers += made
    return nn.Sequential(*layers[:-1])


def data(c, device):
    rows = 8 * c["batch"]
    if c["model"] == "transformer":
        x = torch.randint(c["vocab"], (rows, c["context"] + 1), device=device)
        return x[:, :-1].contiguous(), x[:, 1:].contiguous()
    shape = c["widths"][:1] if c["model"] == "mlp" else c["input"]
    classes = c["widths"][-1] if c["model"] == "mlp" else c["layers"][-1][1]
    x = torch.randn(rows, *shape, device=device)
    return x, x[:, 0].clone() if classes == 1 else torch.randint(classes, (rows,), device=device)


def loss(out, y):
    return F.mse_loss(out[:, 0], y) if y.is_floating_point() else F.cross_entropy(out, y.flatten())


def speed(c, seconds, device, foreach):
    """Rows per second, and the processor time of a row in microseconds."""
    torch.manual_seed(1)
    model = {"mlp": mlp, "cnn": cnn, "transformer": Transformer}[c["model"]](c).to(device)
    x, y = data(c, device)
    make = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01, foreach=foreach),
            "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=foreach)}[c["optimizer"]]
    opt = make(model.parameters())

    def step():
        rows = torch.randint(len(x), (c["batch"],), device=device)
        opt.zero_grad(set_to_none=True)
        loss(model(x[rows]), y[rows]).backward()
        opt.step()
        if device != "cpu":
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    times, end, cpu = [], time.perf_counter() + seconds, time.process_time()
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return c["batch"] / statistics.median(times), 1e6 * (time.process_time() - cpu) / len(times) / c["batch"]


def answer(request):
    torch.set_num_threads(request["threads"])
    half = request["seconds"] / 2
    rates, cpu = zip(*(speed(request["case"], half, request["device"], f) for f in (False, True)))
    return {"rate": max(rates), "cpu_us": min(cpu)}


def main():
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as e:  # the parent reports it
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), flush=True)


main()
