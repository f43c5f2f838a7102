"""image.py VERSION OUT: write OUT/assay-VERSION.oci.tar, a container image in the OCI layout (podman load, skopeo copy
oci-archive:…, ctr image import). It has the programs of the packages, the libraries that they link, certificates and
busybox, and nothing else; no registry and no base image. Its user is not root; /work and /tmp are all that it writes to.

Own code, and not buildah: one layer of sorted files with one time has the same bytes each time it is made."""
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
import tempfile

from linked import elf_files, libraries_of, opened_at_run_time, packages_of, run, unpack

USER = 10001
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
LEFT_OUT = ["etc", "lib/systemd", "usr/lib/systemd", "usr/lib/sysusers.d", "usr/share/man", "usr/share/bash-completion",
            "usr/share/fish", "usr/share/zsh", "usr/share/lintian"]


def add_libraries(root):
    """Copy each library to the folder where the loader of this machine finds it, with the licence of its package."""
    wanted = dict(opened_at_run_time())
    for path in [*elf_files(root), *wanted.values()]:
        wanted.update(libraries_of(path))
    for path, package in packages_of(set(wanted.values())).items():
        to = os.path.join(root, os.path.dirname(path).lstrip("/").removeprefix("usr/"), os.path.basename(path))
        licence = f"usr/share/doc/{package.split(':')[0]}/copyright"
        os.makedirs(os.path.dirname(to), exist_ok=True)
        os.makedirs(os.path.dirname(os.path.join(root, licence)), exist_ok=True)
        shutil.copyfile(os.path.realpath(path), to)
        os.chmod(to, 0o755)
        shutil.copyfile(os.path.realpath("/" + licence), os.path.join(root, licence))


def add_system(root):
    for folder, mode in (("bin", 0o755), ("etc/ssl/certs", 0o755), ("tmp", 0o1777), ("work", 0o700), ("proc", 0o755), ("dev", 0o755), ("sys", 0o755)):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        os.chmod(os.path.join(root, folder), mode)
    texts = {"etc/passwd": f"root:x:0:0:root:/:/bin/false\nassay:x:{USER}:{USER}:Assay:/work:/bin/sh\n",
             "etc/group": f"root:x:0:\nassay:x:{USER}:\n", "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
    for name, text in texts.items():
        with open(os.path.join(root, name), "w") as f:
            f.write(text)
    shutil.copyfile("/etc/ssl/certs/ca-certificates.crt", os.path.join(root, "etc/ssl/certs/ca-certificates.crt"))
    busybox = os.path.join(root, "bin/busybox")
    shutil.copyfile("/bin/busybox", busybox)
    os.chmod(busybox, 0o755)
    for applet in run("/bin/busybox", "--list").split():
        if applet != "busybox":
            os.symlink("busybox", os.path.join(root, "bin", applet))


def plain(info):
    """What the bytes of an entry depend on: name, mode, content. Not who packed it, or when."""
    info.uid = info.gid = USER if info.name == "work" else 0
    info.uname = info.gname = ""
    info.mtime = EPOCH
    if not info.issym():
        info.mode = stat.S_IMODE(info.mode)
    return info


def tar_of(root):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for place, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(folders + names):
                path = os.path.join(place, name)
                tar.add(path, os.path.relpath(path, root), recursive=False, filter=plain)
    return out.getvalue()


class Layout:
    """An image in the OCI layout, as one tar."""

    def __init__(self):
        self.files = {}

    def blob(self, kind, data):
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def json(self, kind, tree):
        return self.blob(kind, json.dumps(tree, sort_keys=True).encode())

    def write(self, path, manifest, name):
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                 "manifests": [{**manifest, "annotations": {"org.opencontainers.image.ref.name": name}}]}
        self.files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
        self.files["index.json"] = json.dumps(index, sort_keys=True).encode()
        with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name, data in sorted(self.files.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), EPOCH
                tar.addfile(info, io.BytesIO(data))


def main(version, out):
    with tempfile.TemporaryDirectory() as root:
        unpack(out, version, root)
        for name in LEFT_OUT:
            shutil.rmtree(os.path.join(root, name), ignore_errors=True)
        add_libraries(root)
        add_system(root)
        os.chmod(root, 0o755)
        layer = tar_of(root)
    layout = Layout()
    packed = layout.blob("layer.v1.tar+gzip", gzip.compress(layer, 6, mtime=0))
    labels = {"org.opencontainers.image.title": "assay", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"}
    config = layout.json("config.v1+json", {
        "architecture": run("dpkg", "--print-architecture").strip(), "os": "linux",
        "config": {"User": f"{USER}:{USER}", "WorkingDir": "/work", "Env": ["PATH=/usr/bin:/bin"], "Cmd": ["/usr/bin/assayd"],
                   "ExposedPorts": {"7117/tcp": {}}, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}})
    manifest = layout.json("manifest.v1+json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                                "config": config, "layers": [packed], "annotations": labels})
    layout.write(os.path.join(out, f"assay-{version}.oci.tar"), manifest, f"assay:{version.replace('~', '-')}")
    print(f"image: {len(layer) / 1e6:.0f} MB, {packed['size'] / 1e6:.0f} MB compressed", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
