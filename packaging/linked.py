"""What the programs of the packages link: the shared libraries, and the Debian packages that brought them."""
import glob
import os
import subprocess

# Opened at run time where they are wanted, and not linked: XGBoost for trees, OpenBLAS for suggestions.
OPENED = ["libopenblas.so.0", "libxgboost.so.0"]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def unpack(out, version, folder, names=("server", "runner", "cli")):
    """Unpack the packages of this version into one tree."""
    for name in names:
        [deb] = glob.glob(os.path.join(out, f"assay-{name}_{version}_*.deb"))
        run("dpkg-deb", "--extract", deb, folder)


def elf_files(folder):
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    if f.read(4) == b"\x7fELF":
                        found.append(path)
    return sorted(found)


def libraries_of(path):
    """The libraries that the loader takes for this program, and theirs: {name: path}; with them the loader itself."""
    found = {}
    for line in run("ldd", path).splitlines():
        words = line.split()
        if "=>" in words and "not" not in words:
            found[words[0]] = words[2]
        elif words and words[0].startswith("/lib"):
            found[words[0]] = words[0]
        elif "not" in words:
            raise SystemExit(f"{path}: {line.strip()}")
    return found


def opened_at_run_time():
    """Those of OPENED that this machine has: {name: path}."""
    known = {words[0]: words[-1] for words in (line.split() for line in run("/sbin/ldconfig", "-p").splitlines()) if "=>" in words}
    return {name: known[name] for name in OPENED if name in known}


def packages_of(paths, strangers=False):
    """The Debian packages that files of this machine came with: {path: package}. One look for all of them, because each
    reads the lists of all packages. /lib and /usr/lib are one folder, and dpkg knows either. strangers: a file may have come
    without a package, as NVIDIA's installer brings CUDA, and is left out; else it ends the program."""
    spelled = {}
    for path in paths:
        real = os.path.realpath(path)
        spelled |= {real: path, real.removeprefix("/usr"): path}
    done = subprocess.run(["dpkg-query", "--search", *spelled], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    found = {}
    for line in done.stdout.splitlines():
        names, _, file = line.partition(": ")
        if file in spelled:
            found[spelled[file]] = names.split(",")[0]
    for path in () if strangers else set(paths) - set(found):
        raise SystemExit(f"no Debian package has {path}")
    return found
