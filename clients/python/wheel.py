#!/usr/bin/env python3
"""Makes the wheel of assay.py without any package: wheel.py [FOLDER] prints the path of the wheel.

It is what `pip wheel .` makes from pyproject.toml, for machines without setuptools. The same file gives the same
bytes."""
import base64
import hashlib
import os
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return f.read()


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    module, project = read("assay.py"), read("pyproject.toml")
    version = re.search(r'^__version__ = "([^"]+)"', module, re.M).group(1)
    field = {n: re.search(rf'^{n} = "([^"]+)"', project, re.M).group(1) for n in ("name", "description", "requires-python")}
    info = f"{field['name']}-{version}.dist-info"
    files = {
        "assay.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {field['name']}\nVersion: {version}\n"
                            f"Summary: {field['description']}\nLicense: Apache-2.0\n"
                            f"Requires-Python: {field['requires-python']}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: assay\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join("{},sha256={},{}\n".format(
        name, base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode(), len(text.encode()))
        for name, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = os.path.join(folder, f"{field['name']}-{version}-py3-none-any.whl")
    if os.path.lexists(path) and not os.path.isfile(path):
        sys.exit(f"{path} is there and no regular file")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            z.writestr(entry, text)
    print(path)


main()
