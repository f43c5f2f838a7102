#!/usr/bin/env python3
"""One trial as several processes, on plain sockets, standard library only: rank 0 listens on MASTER_PORT, the others
connect, and all sum a gradient in every step. The trial goes on from its checkpoint after any death."""
import json
import os
import random
import socket
import struct
import sys
import time

RANK, WORLD_SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CHECKPOINT = os.path.join(os.environ["ASSAY_CHECKPOINTS"], "state.json")
STEPS, POINTS = 40, 600


def connect():
    """Rank 0: a list of connections, by rank. The others: the connection to rank 0."""
    where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if RANK > 0:
        for _ in range(600):  # until rank 0 listens
            try:
                peer = socket.create_connection(where)
                peer.sendall(struct.pack("<i", RANK))
                return peer
            except ConnectionRefusedError:
                time.sleep(0.05)
        sys.exit("rank 0 does not listen")
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    with socket.create_server(where, family=family) as server:
        peers = {}
        while len(peers) < WORLD_SIZE - 1:
            peer, _ = server.accept()
            peers[struct.unpack("<i", receive(peer, 4))[0]] = peer
    return [peers[rank] for rank in sorted(peers)]


def receive(peer, size):
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            sys.exit("another rank is gone")
        data += piece
    return data


def sum_over_ranks(link, values):
    """The same sum at every rank, in the order of the ranks."""
    kind = f"<{len(values)}d"
    size = struct.calcsize(kind)
    if RANK > 0:
        link.sendall(struct.pack(kind, *values))
        return list(struct.unpack(kind, receive(link, size)))
    total = list(values)
    for peer in link:
        total = [a + b for a, b in zip(total, struct.unpack(kind, receive(peer, size)))]
    for peer in link:
        peer.sendall(struct.pack(kind, *total))
    return total


def own_points():
    """Every rank has its part of the data: points of y = 3 x - 1, with noise."""
    draw = random.Random(7)
    points = [(x, 3 * x - 1 + draw.gauss(0, 0.1)) for x in (draw.uniform(-1, 1) for _ in range(POINTS))]
    return points[RANK::WORLD_SIZE]


def save(step, weights):
    with open(CHECKPOINT + ".tmp", "w") as f:
        json.dump({"step": step, "weights": weights}, f)
    os.rename(CHECKPOINT + ".tmp", CHECKPOINT)


def main():
    lr = float(os.environ["ASSAY_PARAM_lr"])
    step, weights = 0, [0.0, 0.0]
    if os.path.exists(CHECKPOINT):  # every rank finds the files that rank 0 left
        state = json.load(open(CHECKPOINT))
        step, weights = state["step"], state["weights"]
    link, points = connect(), own_points()
    while step < STEPS:
        errors = [(weights[0] * x + weights[1] - y, x) for x, y in points]
        slope, shift, loss = sum_over_ranks(link, [sum(e * x for e, x in errors), sum(e for e, _ in errors),
                                                   sum(e * e for e, _ in errors)])
        weights = [weights[0] - lr * slope / POINTS, weights[1] - lr * shift / POINTS]
        step += 1
        if RANK == 0:  # only what rank 0 writes is kept
            with open(os.environ["ASSAY_REPORT"], "a") as f:
                f.write(json.dumps({"step": step, "loss": loss / POINTS}) + "\n")
            save(step, weights)
        time.sleep(float(os.environ.get("PAUSE", "0")))
    print(f"rank {RANK} of {WORLD_SIZE}: y = {weights[0]:.3f} x + {weights[1]:.3f}")


main()
