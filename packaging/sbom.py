"""sbom.py VERSION OUT: write OUT/assay-VERSION.spdx.json, in SPDX 2.3: the packages, the Debian packages whose libraries
they link or open, and the npm packages that the dashboard contains. Made from what was built, not from what was asked for."""
import datetime
import functools
import glob
import hashlib
import json
import os
import re
import sys
import tempfile
import uuid

from linked import elf_files, libraries_of, opened_at_run_time, packages_of, run

HERE = os.path.dirname(os.path.abspath(__file__))


def spdx_id(kind, name):
    return "SPDXRef-" + kind + "-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(kind, name, version, license_declared="NOASSERTION", purl=None, **more):
    made = {"SPDXID": spdx_id(kind, name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": license_declared,
            "copyrightText": "NOASSERTION", **more}
    if purl:
        made["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return made


@functools.cache
def debian_package(name):
    version, arch, source = run("dpkg-query", "--show", "--showformat", "${Version}\t${Architecture}\t${source:Package}", name).split("\t")
    plain = name.split(":")[0]
    return package("deb", plain, version, purl=f"pkg:deb/debian/{plain}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={arch}",
                   supplier="Organization: Debian", sourceInfo=f"built from the Debian source package {source}")


def stranger(path):
    """A library that came without a Debian package: its name and version are those of its file."""
    name, _, version = os.path.basename(os.path.realpath(path)).partition(".so.")
    return package("generic", name, version or "NOASSERTION", purl=f"pkg:generic/{name}@{version}" if version else None)


def npm_packages():
    """What the dashboard contains: the packages that are needed at run time, from the lock file."""
    lock = json.load(open(os.path.join(HERE, "..", "web", "package-lock.json")))
    for path, entry in sorted(lock["packages"].items()):
        if path.startswith("node_modules/") and not entry.get("dev"):
            name = path.removeprefix("node_modules/")
            yield package("npm", name, entry["version"], entry.get("license", "NOASSERTION"), f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}")


def needs_of(deb, folder):
    """(relationship, SPDX package) of everything that the programs of the package link or may open."""
    run("dpkg-deb", "--extract", deb, folder)
    linked, may_train = set(), False
    for path in elf_files(folder):
        linked |= set(libraries_of(path).values())
        may_train = may_train or os.path.basename(path) in ("assay-train", "assay-serve", "assay")
    opened = set(opened_at_run_time().values()) if may_train else set()
    came_with = packages_of(linked | opened, strangers=True)
    own = [("DYNAMIC_LINK", stranger(path)) for path in sorted(linked - set(came_with))]
    linked, opened = ({came_with[p] for p in paths if p in came_with} for paths in (linked, opened))
    return own + [("DYNAMIC_LINK", debian_package(name)) for name in sorted(linked)] + \
        [("OPTIONAL_DEPENDENCY_OF", debian_package(name)) for name in sorted(opened - linked)]


def document(version, out):
    packages, relations = {}, []

    def add(p):
        return packages.setdefault(p["SPDXID"], p)["SPDXID"]

    def relate(a, kind, b):
        relations.append({"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b})

    debs = [d for d in sorted(glob.glob(os.path.join(out, f"*_{version}_*.deb"))) if "-dbgsym_" not in d]
    digests = hashlib.sha256()
    for deb in debs:
        digest = hashlib.sha256(open(deb, "rb").read()).hexdigest()
        digests.update(digest.encode())
        name, arch = os.path.basename(deb).split("_")[0], deb.rsplit("_", 1)[1].removesuffix(".deb")
        own = add(package("assay", name, version, "Apache-2.0", f"pkg:deb/{name}@{version}?arch={arch}", packageFileName=os.path.basename(deb),
                          checksums=[{"algorithm": "SHA256", "checksumValue": digest}]))
        relate("SPDXRef-DOCUMENT", "DESCRIBES", own)
        with tempfile.TemporaryDirectory() as folder:
            for kind, needed in needs_of(deb, folder):
                other = add(needed)
                relate(*((own, kind, other) if kind == "DYNAMIC_LINK" else (other, kind, own)))
            if os.path.isdir(os.path.join(folder, "usr/share/assay/web")):
                for p in npm_packages():
                    relate(own, "CONTAINS", add(p))
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"assay-{version}",
            "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'assay/' + digests.hexdigest())}",
            "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: assay-sbom-{version}"]},
            "packages": [packages[k] for k in sorted(packages)], "relationships": relations}


if __name__ == "__main__":
    version, out = sys.argv[1:]
    with open(os.path.join(out, f"assay-{version}.spdx.json"), "w") as f:
        json.dump(document(version, out), f, indent=1)
        f.write("\n")
