#!/usr/bin/env python3
"""Each room of the layer table in the top README links alone: its whole archive, with the archives of the
rooms that its row names, what those stand on in turn, and the system's libraries, leaves no symbol
undefined. So the table also holds where a declaration and its definition lie in different rooms."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from layers import layer_table  # noqa: E402

ROOT, BUILD, CC = sys.argv[1:4]
OPTIONAL = sys.argv[4:]  # libraries that this build found, and the linker of tests
SYSTEM = ["-ljansson", "-lyaml", "-lssl", "-lcrypto", "-lz", "-lpcre2-8", "-lm", "-ldl", "-lpthread", "-lcurl", "-lmicrohttpd",
          "-lpq", "-lpng", "-ljpeg"]


def archives(room):
    """lib<name>.a of a room, and of its part that is compiled with other flags; [] when there is none."""
    name = "libassay-" + room.replace("/", "-")
    top = room.split("/")[0]
    found = [os.path.join(BUILD, folder, name + part + ".a") for folder in {top, room} for part in ("", "-cpu")]
    return [path for path in found if os.path.exists(path)]


def below(room, table, seen):
    """The rooms that `room` stands on: those of its row, and theirs."""
    for other in table.get(room, []):
        if other not in seen:
            seen.append(other)
            below(other, table, seen)
    return seen


def has_code(room, rooms):
    """Has the room a .c file that is no program?"""
    inner = [r for r in rooms if r.startswith(room + "/")]
    for folder, _, names in os.walk(os.path.join(ROOT, room)):
        inside = os.path.relpath(folder, ROOT) + "/"
        if any(inside.startswith(b + "/") for b in inner):
            continue
        texts = (open(os.path.join(folder, name)).read() for name in names if name.endswith(".c"))
        if any("\nint main(" not in text for text in texts):
            return True
    return False


def main():
    table, bad, linked = layer_table(ROOT), [], 0
    for room in table:
        if room.startswith(("tests/", "bench")) or not has_code(room, table):
            continue
        own = archives(room)
        if not own:
            bad.append(f"{room}: no archive of it under {BUILD}")
            continue
        rest = [a for r in below(room, table, []) for a in archives(r)]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*CC.split(), "-shared", "-o", os.path.join(folder, "room.so"), "-Wl,--no-undefined",
                                   "-Wl,--whole-archive", *own, "-Wl,--no-whole-archive", "-Wl,--start-group", *rest,
                                   "-Wl,--end-group", *SYSTEM, *OPTIONAL], capture_output=True, text=True)
        linked += 1
        if done.returncode != 0:
            missing = sorted({line.split("undefined reference to ")[1].strip("`'") for line in done.stderr.split("\n")
                              if "undefined reference to " in line})
            bad.append(f"{room}: {' '.join(missing) or done.stderr.strip()}")
    print("\n".join(bad) or f"{linked} rooms link alone")
    return bool(bad) or linked == 0


sys.exit(main())
