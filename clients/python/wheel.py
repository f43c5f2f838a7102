#!/usr/bin/env python3
"""Makes the wheel of the client without any package: wheel.py [FOLDER] prints the path of the wheel.

pip uses it too: pyproject.toml names it as the build backend (PEP 517), so that `pip install .` needs neither
setuptools nor a network. The same modules give the same bytes."""
import base64
import hashlib
import os
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import join  # noqa: E402


def project():
    """name, description and requires-python of pyproject.toml."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        text = f.read()
    return {n: re.search(rf'^{n} = "([^"]+)"', text, re.M).group(1) for n in ("name", "description", "requires-python")}


def contents():
    """The name of the wheel, without its folder, and its files by their names."""
    module, field = join.joined(), project()
    version = re.search(r'^__version__ = "([^"]+)"', module, re.M).group(1)
    info = f"{field['name']}-{version}.dist-info"
    files = {
        "assay/__init__.py": module,
        "assay/py.typed": "",  # type checkers read packages with this file, and no lone modules (PEP 561)
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {field['name']}\nVersion: {version}\n"
                            f"Summary: {field['description']}\nLicense: Apache-2.0\n"
                            f"Requires-Python: {field['requires-python']}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: assay\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join("{},sha256={},{}\n".format(
        name, base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode(), len(text.encode()))
        for name, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    return f"{field['name']}-{version}-py3-none-any.whl", files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: make the wheel in a folder; its name."""
    base, files = contents()
    path = os.path.join(wheel_directory, base)
    if os.path.lexists(path) and not os.path.isfile(path):
        sys.exit(f"{path}: found something that is no regular file, expected a file or nothing")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            z.writestr(entry, text)
    return base


if __name__ == "__main__":
    into = sys.argv[1] if len(sys.argv) > 1 else "."
    print(os.path.join(into, build_wheel(into)))
