#!/usr/bin/env python3
"""A trial of PyTorch with DistributedDataParallel: one process for each rank, started by Assay instead of torchrun. It
runs unchanged under `torchrun --nproc-per-node 2`, but for the file that it reports to."""
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CHECKPOINT = os.path.join(os.environ.get("ASSAY_CHECKPOINTS", "."), "state.pt")
EPOCHS = 5


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")  # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(int(os.environ.get("ASSAY_SEED", "1")) % 2**31)
    x = torch.rand(512, 4)
    y = (x.sum(dim=1, keepdim=True) > 2).float()
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
    first = 0
    if os.path.exists(CHECKPOINT):
        state = torch.load(CHECKPOINT, map_location=device)
        model.load_state_dict(state["model"])
        first = state["epoch"]
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(os.environ.get("ASSAY_PARAM_lr", "0.5")))
    for epoch in range(first, EPOCHS):
        for part in range(rank, 16, size):
            rows = slice(part * 32, part * 32 + 32)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x[rows].to(device)), y[rows].to(device))
            optimizer.zero_grad()
            loss.backward()  # the gradients are averaged over the ranks here
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            with open(os.environ.get("ASSAY_REPORT", "/dev/stdout"), "a") as f:
                f.write(json.dumps({"step": epoch + 1, "loss": total.item() / size, "ranks": size}) + "\n")
            torch.save({"model": model.module.state_dict(), "epoch": epoch + 1}, CHECKPOINT + ".tmp")
            os.rename(CHECKPOINT + ".tmp", CHECKPOINT)
    dist.destroy_process_group()


main()
