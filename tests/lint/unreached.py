#!/usr/bin/env python3
"""Functions of the product that nothing in the product reaches: no other object file of a room or a program
refers to them, and their own file has nothing but their definition. Tests and benchmarks do not count. KEPT
lists those that stay, each with its reason."""
import os
import re
import subprocess
import sys

ROOT, BUILD = sys.argv[1:3]
ROOMS = ("base", "kernels", "data", "model", "search", "scheduler", "api", "serve", "trial-runner", "cli")
KEPT = {
    "columnar_parse": "reads what browsers get: tests and the fuzzer hold the writer to the format by it",
    "columnar_find": "of the same reader",
    "points_table_resolution": "how far lines were thinned, which tests compare",
    "table_cache_bytes": "the limit of memory is tested by it",
    "sweep_fronts_bytes": "as table_cache_bytes",
    "trial_orders_bytes": "as table_cache_bytes",
    "as_mem_fail_nth": "makes an allocation fail, for tests",
    "backend_freep": "for the cleanup attribute of its users",
    "clock_slowest": "the oracle of what a parameter server computes step by step",
    "csv_open": "what benchmarks measure, without what tables add",
    "date_format": "the inverse of date_parse(), which tests run both ways",
    "json_fail_with_mem": "lets as_mem_fail_nth() reach jansson, for tests",
    "ensemble_data_parse_buckets": "what a fuzz target calls without a store",
    "gang_pause_ms": "the rule that the SQL of seat_store.c follows, as its oracle",
    "gp_ehvi_boxes": "how the front was divided, which tests compare",
    "gp_ehvi_front": "the same",
    "gp_ehvi_objectives": "the same",
    "grid_index": "the inverse of grid_cell(): tables of benchmarks, and tests of both",
    "image_parse": "bytes without a file: tests and a fuzz target",
    "image_parse_size": "the same",
    "mailbox_bytes_sent": "what tests count",
    "npy_type_size": "what a fuzz target checks sizes with",
    "own_sum_count": "what tests count",
    "peers_freep": "for the cleanup attribute of its users",
    "peers_interrupt": "ends a wait for NCCL from another thread; no strategy waits that long yet, none ran on a GPU",
    "region_is_all": "what tests of regions compare",
    "seat_event_format": "names of events in the messages of table tests",
    "store_ready": "the check of readiness in one call, for tests of the store",
    "supervisor_running": "what tests wait for",
    "sweep_create": "short for sweep_request_create(), for tests and benchmarks",
    "sweep_create_paused": "the same",
    "sweep_event_format": "names of events in the messages of table tests",
    "trial_event_format": "the same",
    "web_files_count": "what tests count",
}


def objects():
    """Object files of the rooms' archives and of the programs, not of tests and benchmarks."""
    for top in ROOMS:
        for folder, _, names in os.walk(os.path.join(BUILD, top)):
            for name in names:
                if name.endswith(".o") and "test" not in os.path.basename(folder):
                    yield os.path.join(folder, name)


def mentions():
    """How often each name stands in the sources of the product, comments aside."""
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.cu", "*.inc"],
                           capture_output=True, text=True, check=True).stdout.split()
    count = {}
    for path in files:
        full = os.path.join(ROOT, path)
        if path.startswith(tuple(room + "/" for room in ROOMS)) and os.path.exists(full):
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", open(full, errors="replace").read(), flags=re.S)
            for name in re.findall(r"\b[A-Za-z_]\w+\b", text):
                count[name] = count.get(name, 0) + 1
    return count


def main():
    paths = sorted(objects())
    out = subprocess.run(["nm", "-A", "--no-sort", *paths], capture_output=True, text=True, check=True).stdout
    defined, wanted = {}, {}
    for line in out.splitlines():
        m = re.match(r"(.*?):\s*(?:[0-9a-f]+)?\s+([TUu])\s+(\w+)$", line)
        if not m:
            continue
        path, kind, name = m.groups()
        if kind == "U":
            wanted.setdefault(name, set()).add(path)
        else:
            defined[name] = path
    count = mentions()
    unreached = {name for name in defined if not wanted.get(name, set()) - {defined[name]} and count.get(name, 0) == 1}
    bad = [f"{name} ({os.path.relpath(defined[name], BUILD)}): only tests reach it" for name in sorted(unreached - set(KEPT) - {"main"})]
    bad += [f"{name}: kept in tests/lint/unreached.py, but it is reached or gone" for name in sorted(set(KEPT) - unreached)]
    print("\n".join(bad) or f"{len(defined)} functions of {len(paths)} object files are reached")
    return bool(bad) or not defined


sys.exit(main())
