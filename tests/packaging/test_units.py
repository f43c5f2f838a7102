#!/usr/bin/env python3
"""The units of the packages: systemd takes them, their sandbox is tight, and what they and their settings name exists."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["ASSAY_SOURCE_ROOT"], os.environ["ASSAY_BUILD_ROOT"]
DEBIAN = os.path.join(SOURCE, "packaging", "debian")
PROGRAMS = {"assayd": "api/server/assayd", "assay-serve": "serve/assay-serve", "assay-runner": "trial-runner/agent/assay-runner"}
UNITS = {"assayd": "assay-server.assayd.service", "assay-serve": "assay-server.assay-serve.service", "assay-runner": "assay-runner.service"}
MOST_EXPOSED = 30  # tenths


def analyze(*args):
    return subprocess.run(["systemd-analyze", *args], capture_output=True, text=True)


def is_taken_and_tight(name, unit, folder):
    """With the programs of the build in place of those that the package installs."""
    path = os.path.join(folder, name + ".service")
    with open(path, "w") as f:
        f.write(unit.replace(f"/usr/bin/{name} ", os.path.join(BUILD, PROGRAMS[name]) + " "))
    taken = analyze("verify", "--man=no", path)
    assert taken.returncode == 0 and name not in taken.stderr, taken.stderr
    tight = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", path)
    assert tight.returncode == 0, tight.stdout.splitlines()[-1:]


def names_what_exists(name, unit):
    """Options and variables, in the unit and in the file of settings, are the program's."""
    known = subprocess.run([os.path.join(BUILD, PROGRAMS[name]), "--help"], capture_output=True, text=True, check=True).stdout
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    [settings] = re.findall(r"^EnvironmentFile=/etc/assay/(.*)$", unit, re.M)
    text = open(os.path.join(DEBIAN, settings)).read()
    more = re.search(r"\$([A-Z_]+)$", start).group(1)
    assert f"#{more}=" in text, f"{settings} does not say what {more} is for"
    options = re.findall(r"--[a-z-]+", start) + re.findall(rf"^#?{more}=(--[a-z-]+)", text, re.M)
    variables = re.findall(r"^#?([A-Z_]+)=", text, re.M) + re.findall(r"(ASSAY_[A-Z_]+)=", " ".join(re.findall(r"^Environment=(.*)$", unit, re.M)))
    assert options and variables
    for word in options + [v for v in variables if v != more]:
        assert word in known, f"{name} --help has no {word}"


def main():
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd-analyze is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for name, file in UNITS.items():
            unit = open(os.path.join(DEBIAN, file)).read()
            is_taken_and_tight(name, unit, folder)
            names_what_exists(name, unit)
            loose = re.sub(r"^(Protect|Restrict|SystemCall|Capability|Private|NoNew|Device).*\n", "", unit, flags=re.M)
            try:  # the check sees what it is for
                is_taken_and_tight(name, loose, folder)
            except AssertionError:
                continue
            raise AssertionError(f"{name}: a unit without a sandbox was taken")


if __name__ == "__main__":
    main()
