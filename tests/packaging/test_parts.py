#!/usr/bin/env python3
"""The list of parts (packaging/sbom.py) of a package with two real programs: what SPDX 2.3 requires is there, what the programs
link is in it, what they do not is not, and the same packages give the same bytes."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ["ASSAY_SOURCE_ROOT"], os.environ["ASSAY_BUILD_ROOT"]
PROGRAMS = ["cli/assay", "trial-runner/agent/assay-runner", "trial-runner/train/assay-train"]
CONTROL = "Package: assay-runner\nVersion: 1.2.3\nArchitecture: amd64\nMaintainer: Nobody <nobody@assay.invalid>\nDescription: a test\n"
# the fields that the specification of SPDX 2.3 requires, and the form of their values
DOCUMENT = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": ".+",
            "documentNamespace": r"[a-z]+:[^#\s]+"}
PACKAGE = {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "name": ".+", "downloadLocation": ".+"}
KINDS = {"DESCRIBES", "DYNAMIC_LINK", "OPTIONAL_DEPENDENCY_OF", "CONTAINS"}


def make_package(folder, programs):
    tree = os.path.join(folder, "tree")
    os.makedirs(os.path.join(tree, "DEBIAN"))
    os.makedirs(os.path.join(tree, "usr/bin"))
    open(os.path.join(tree, "DEBIAN/control"), "w").write(CONTROL)
    for program in programs:
        shutil.copy(os.path.join(BUILD, program), os.path.join(tree, "usr/bin"))
    deb = os.path.join(folder, "assay-runner_1.2.3_amd64.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, deb], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return deb


def parts(folder):
    subprocess.run([sys.executable, os.path.join(SOURCE, "packaging/sbom.py"), "1.2.3", folder], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    return open(os.path.join(folder, "assay-1.2.3.spdx.json"), "rb").read()


def check_form(tree):
    def holds(thing, fields):
        for field, form in fields.items():
            assert re.fullmatch(form, thing[field]), (field, thing)
    holds(tree, DOCUMENT)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", tree["creationInfo"]["created"]) and tree["creationInfo"]["creators"]
    ids = {"SPDXRef-DOCUMENT"}
    for package in tree["packages"]:
        holds(package, PACKAGE)
        assert package["SPDXID"] not in ids, package
        ids.add(package["SPDXID"])
        assert package["filesAnalyzed"] is False
        for ref in package.get("externalRefs", []):
            assert ref["referenceType"] == "purl" and ref["referenceLocator"].startswith("pkg:"), ref
    for r in tree["relationships"]:
        assert {r["spdxElementId"], r["relatedSpdxElement"]} <= ids and r["relationshipType"] in KINDS, r
    assert {r["relatedSpdxElement"] for r in tree["relationships"] if r["relationshipType"] == "DESCRIBES"} == {"SPDXRef-assay-assay-runner"}


def check_strangers(folder):
    """A library that no Debian package brought, such as CUDA by NVIDIA's installer, is a part, too."""
    sys.path.insert(0, os.path.join(SOURCE, "packaging"))
    from linked import packages_of
    from sbom import stranger
    path = os.path.join(folder, "libstranger.so.13")
    open(path + ".1.2", "w").close()
    os.symlink(path + ".1.2", path)
    assert packages_of([path], strangers=True) == {}
    try:
        packages_of([path])
    except SystemExit as e:
        assert path in str(e), e
    else:
        raise AssertionError("no package has it, and nobody says so")
    part = stranger(path)
    assert (part["name"], part["versionInfo"]) == ("libstranger", "13.1.2") and re.fullmatch(PACKAGE["SPDXID"], part["SPDXID"]), part


def main():
    for program in ("dpkg-deb", "dpkg-query", "ldd"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        deb = make_package(folder, PROGRAMS)
        text = parts(folder)
        tree = json.loads(text)
        check_form(tree)
        own = next(p for p in tree["packages"] if p["name"] == "assay-runner")
        assert own["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(open(deb, "rb").read()).hexdigest()}]
        linked = {r["relatedSpdxElement"] for r in tree["relationships"] if r["relationshipType"] == "DYNAMIC_LINK"}
        # libcurl4t64 in Debian 13, which renamed what has times of 64 bits
        assert linked & {"SPDXRef-deb-libcurl4", "SPDXRef-deb-libcurl4t64"} and not any("libpq" in name or "openblas" in name for name in linked), linked
        assert parts(folder) == text, "the same packages, other bytes"
        check_strangers(folder)
    print(f"{len(tree['packages'])} parts")


if __name__ == "__main__":
    main()
