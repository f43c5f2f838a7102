#!/usr/bin/env python3
"""trial.modules with the Environment Modules or the Lmod of this machine: modules that the test writes."""
import json
import os
import sys

from harness import Assay, skip
from test_environment import DOCUMENT, PROGRAM, given, reason, write

INITS = ("/usr/share/modules/init/sh", "/usr/share/lmod/lmod/init/sh")
MODULE = "#%Module1.0\nsetenv GREETING {greeting}\nprepend-path PATH {path}\n"


def sweep(assay, folder, **trial):
    return assay.call("POST", "/v1/sweeps", {**DOCUMENT, "trial": {"directory": folder, **trial}})["id"]


def main():
    if not any(map(os.path.exists, INITS)) and not os.environ.get("LMOD_CMD"):
        skip("neither Environment Modules nor Lmod is installed")
    with Assay(runners=1) as assay:
        folder = os.path.join(assay.data, "programs")
        tools, bad = os.path.join(folder, "tools"), os.path.join(folder, "bad tools")
        for path in (os.path.join(folder, "modules", "gcc"), tools, bad, os.path.join(folder, "venv", "bin")):
            os.makedirs(path)
        write(os.path.join(folder, "program.py"), PROGRAM)
        write(os.path.join(folder, "modules", "gcc", "12.2"), MODULE.format(greeting="hello", path=tools))
        write(os.path.join(folder, "modules", "level"), MODULE.format(greeting="over", path="/nowhere"))
        for place, word in ((tools, "module"), (os.path.join(folder, "venv", "bin"), "venv")):
            # a program of the module's folder, which the venv has too
            write(os.path.join(place, "python"), f"#!/bin/sh\nLEVEL={word} exec {sys.executable} \"$@\"\n")
            os.chmod(os.path.join(place, "python"), 0o755)
        modules = {"modules": ["gcc/12.2"], "env": {"MODULEPATH": os.path.join(folder, "modules")},
                   "command": ["python", "program.py", "an argument; with $signs 'and' quotes"]}
        seen = given(assay, sweep(assay, folder, **modules))
        assert seen["GREETING"] == "hello" and seen["LEVEL"] == "module", seen
        assert tools in seen["PATH"].split(":"), seen
        print("modules: ok")
        seen = given(assay, sweep(assay, folder, **modules, venv="venv"))
        assert seen["GREETING"] == "hello" and seen["LEVEL"] == "venv", seen  # a venv comes before modules
        print("modules and a venv: ok")
        seen = given(assay, sweep(assay, folder, **{**modules, "modules": ["gcc/12.2", "level"]}))
        assert seen["GREETING"] == "over", seen  # in their order
        why = reason(assay, sweep(assay, folder, **{**modules, "modules": ["gcc/12.2", "missing/1"]}))
        assert "trial.modules" in why and "missing/1" in why, why
        print("order and failures: ok")


if __name__ == "__main__":
    main()
