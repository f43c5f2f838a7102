#!/usr/bin/env python3
"""Every #include against the layer table in the top README: a folder includes itself and what its row
names, and no other. docs/architecture.md lists the same rooms. Also: who may include the headers of PostgreSQL, libmicrohttpd, CUDA and libcurl."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
ONLY = {  # a library's header, and the only places that may include it
    "libpq-fe.h": ("scheduler/store/", "tests/scheduler/", "tests/support/", "bench/claims.c", "bench/cycles.c", "bench/fleet/", "bench/scheduler/"),  # whose floors have no service
    "microhttpd.h": ("api/http/http.c", "tests/"),
    "curl/curl.h": ("api/client/", "scheduler/content/piece_s3.c", "tests/"),
    "onnx.pb-c.h": ("model/onnx/graph.c",),
    "yaml.h": ("base/yaml_reader.c",),
    "cuda_runtime.h": ("kernels/cuda/",),
    "cublas_v2.h": ("kernels/cuda/", "tests/kernels/emu/"),
    "cblas.h": ("base/", "bench/"),
}


def layer_table(root):
    """Rows of the README's table `| folder | may include |`."""
    table = {}
    rows = open(os.path.join(root, "README.md")).read().split("\n")
    start = next((i for i, r in enumerate(rows) if re.match(r"\|\s*folder\s*\|\s*may include", r)), None)
    if start is None:
        sys.exit("README.md has no table '| folder | may include |'")
    for row in rows[start + 2:]:
        if not row.startswith("|"):
            break
        cells = [c.strip() for c in row.strip("|").split("|")]
        folder = cells[0].strip("`/")
        table[folder] = [f.strip().strip("`/") for f in cells[1].split(",") if f.strip() not in ("", "nothing")]
    return table


ARCHITECTURE = "docs/architecture.md"
NO_ROOMS = {"bench", "tests/support", "cli", "web", "clients"}  # of one list only: they have a program or no C


def listed_rooms(root):
    """The rooms of docs/architecture.md's table `| part | folders |`. A short name is in the folder of the
    name before it: `cli/view/`, `files/` is cli/view and cli/files."""
    rooms, inside = set(), False
    for row in open(os.path.join(root, ARCHITECTURE)):
        if inside and not row.startswith("|"):
            break
        inside = inside or row.startswith("| part | folders")
        above = ""
        for name in re.findall(r"`([a-z/-]+)/`", row.split("|")[2] if inside else ""):
            if "/" in name:
                above = name.split("/")[0]
            is_top = "/" not in name and os.path.isdir(os.path.join(root, name)) and not os.path.isdir(os.path.join(root, above or "-", name))
            rooms.add(name if "/" in name or is_top else above + "/" + name)
    return rooms


def folder_of(path, table):
    """The longest folder of the table that holds this path."""
    best = None
    for folder in table:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def circle_of(table):
    """A circle of rooms that include one another, or None."""
    state = {}

    def visit(room, path):
        if state.get(room) == "done":
            return None
        if room in path:
            return path[path.index(room):] + [room]
        for other in table.get(room, []):
            found = visit(other, path + [room])
            if found:
                return found
        state[room] = "done"
        return None

    return next(filter(None, (visit(room, []) for room in table)), None)


def main():
    table = layer_table(ROOT)
    circle = circle_of(table)
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    code = [f for f in files if re.search(r"\.(c|h|cu|cuh)$", f) and os.path.exists(os.path.join(ROOT, f))]
    bad, seen = [], 0
    if circle:
        bad.append("README.md: rooms in a circle: " + " -> ".join(circle))
    bad += [f"README.md: the row {room} names {other}, which has no row" for room in table for other in table[room] if other not in table]
    bad += [f"README.md: the row {room} names no folder" for room in table if not os.path.isdir(os.path.join(ROOT, room))]
    bad += [f"{ARCHITECTURE}: the table of rooms and README.md's table of layers differ in {room}"
            for room in sorted((listed_rooms(ROOT) ^ set(table)) - NO_ROOMS)]
    for path in code:
        own = folder_of(path, table)
        for number, line in enumerate(open(os.path.join(ROOT, path), errors="replace"), 1):
            m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            seen += 1
            name = m.group(2)
            if name in ONLY and not path.startswith(ONLY[name]):
                bad.append(f"{path}:{number}: only {' '.join(ONLY[name])} may include <{name}>")
            if m.group(1) == "<" or path.startswith("tests/"):
                continue
            target = folder_of(name, table)
            if target is None:
                bad.append(f"{path}:{number}: \"{name}\" is not a path from the root into a known folder")
            elif own and target != own and target not in table[own]:
                bad.append(f"{path}:{number}: {own} may not include {target} ({name})")
    print("\n".join(bad) or f"{seen} includes in {len(code)} files are in order")
    return bool(bad) or seen == 0


if __name__ == "__main__":
    sys.exit(main())
