#!/usr/bin/env python3
"""The Helm chart. chart/rendered.json is what Helm's own engine made of it (chart/render.sh); it has to be newer than the last
change of the chart. Each object fits the published schemas, what names another part names one that is there, the options and
variables are those of the programs, and every pod has its walls."""
import hashlib
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CHART = os.path.join(HERE, "..", "..", "packaging", "helm")
RENDERED = os.path.join(HERE, "chart", "rendered.json")


def digest():
    """Of all files that go into rendered.json."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(CHART) for name in names if name != "README.md"]
    paths += [os.path.join(HERE, "chart", name) for name in ("least.yaml", "all.yaml", "render.go")]
    whole = hashlib.sha256()
    for path in sorted(paths, key=lambda p: os.path.relpath(p, HERE)):
        with open(path, "rb") as f:
            whole.update(os.path.relpath(path, HERE).encode() + b"\0" + f.read() + b"\0")
    return whole.hexdigest()


def sign(source, to):
    with open(source) as f:
        rendered = json.load(f)
    with open(to, "w") as f:
        json.dump({"of": digest(), **rendered}, f, indent=1, sort_keys=True)
        f.write("\n")


def help_of(*path):
    return subprocess.run([os.path.join(os.environ["ASSAY_BUILD_ROOT"], *path), "--help"], capture_output=True, text=True, check=True).stdout


def pods(objects):
    return [(o["metadata"]["name"], o["spec"]["template"]) for o in objects if o["kind"] == "Deployment"]


def check_objects(objects, resources, check_whole):
    for o in objects:
        check_whole(o, resources[o["kind"]])
        assert o["metadata"]["namespace"] == "research", o
    kinds = sorted(o["kind"] for o in objects)
    assert kinds == ["Deployment"] * 2 + ["NetworkPolicy"] * 2 + ["PodDisruptionBudget"] * 2 + ["Service", "ServiceAccount"], kinds


def selected(objects, labels):
    return [name for name, pod in pods(objects) if labels.items() <= pod["metadata"]["labels"].items()]


def check_names(objects):
    """Selectors find the pods of their own part, and ports and accounts are there."""
    for o in objects:
        if o["kind"] == "PodDisruptionBudget":
            assert selected(objects, o["spec"]["selector"]["matchLabels"]) == [o["metadata"]["name"]], o
        elif o["kind"] == "NetworkPolicy":
            assert selected(objects, o["spec"]["podSelector"]["matchLabels"]) == [o["metadata"]["name"]], o
            assert selected(objects, o["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]) == ["lab-runner"], o
        elif o["kind"] == "Service":
            assert selected(objects, o["spec"]["selector"]) == [o["metadata"]["name"]] == ["lab-server"], o
            [[container]] = [pod["spec"]["containers"] for name, pod in pods(objects) if name == "lab-server"]
            assert [p["targetPort"] for p in o["spec"]["ports"]] == [p["name"] for p in container["ports"]] == ["http"], o
    [account] = [o for o in objects if o["kind"] == "ServiceAccount"]
    assert not account["automountServiceAccountToken"]
    assert all(pod["spec"]["serviceAccountName"] == account["metadata"]["name"] for _, pod in pods(objects))


def check_walls(name, pod):
    spec = pod["spec"]
    [c] = spec["containers"]
    assert spec["automountServiceAccountToken"] is False and spec["securityContext"]["runAsNonRoot"] is True, name
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
    assert c["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, name
    assert c["resources"]["limits"]["memory"] and c["resources"]["requests"]["cpu"], name
    for m in c["volumeMounts"]:  # written to are volumes alone
        [volume] = [v for v in spec["volumes"] if v["name"] == m["name"]]
        assert "emptyDir" in volume or m["readOnly"], m


def check_program(name, pod, text):
    """Its options and variables are known, and its probes ask what the server answers under a name that it has."""
    [c] = pod["spec"]["containers"]
    for arg in c["args"]:
        assert re.search(rf"{re.escape(arg.split('=')[0])}\b", text), (name, arg)
    for e in c["env"]:
        assert e["name"].startswith("POD_") or f"[{e['name']}]" in text, (name, e)
    with open(os.path.join(HERE, "..", "..", "api", "openapi.yaml")) as f:
        routes = f.read()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = c.get(probe, {}).get("httpGet")
        assert (get is None) == (name == "lab-runner"), name
        if get:
            assert f"\n  {get['path']}:" in routes and get["httpHeaders"] == [{"name": "Host", "value": "localhost"}], get
            assert get["scheme"] == ("HTTP" if "--insecure-http" in c["args"] else "HTTPS"), get


def check_faults_are_seen(objects, resources, check_whole, refused):
    for kind, change in (("Deployment", lambda o: o["spec"].pop("selector")), ("Deployment", lambda o: o["spec"]["selector"]["matchLabels"].update(x="y")),
                         ("Service", lambda o: o["spec"]["ports"][0].pop("port")), ("PodDisruptionBudget", lambda o: o["spec"].update(maxUnavailable=True)),
                         ("NetworkPolicy", lambda o: o["spec"]["ingress"][0].update(to=[])), ("ServiceAccount", lambda o: o.update(rules=[]))):
        o = json.loads(json.dumps(next(o for o in objects if o["kind"] == kind)))
        change(o)
        try:
            check_whole(o, resources[kind])
        except refused:
            continue
        raise AssertionError(f"a wrong {kind} was taken")


def main():
    if sys.argv[1:2] == ["--sign"]:
        return sign(*sys.argv[2:])
    sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
    from kubernetes_api import RESOURCES, Refused, check_whole
    resources = {kind: resource for resource, (_, kind) in RESOURCES.items()}
    with open(RENDERED) as f:
        rendered = json.load(f)
    assert rendered["of"] == digest(), "the chart has changed: tests/packaging/chart/render.sh writes rendered.json anew"
    programs = {"lab-server": help_of("api", "server", "assayd"), "lab-runner": help_of("trial-runner", "agent", "assay-runner")}
    for objects in rendered["cases"].values():
        check_objects(objects, resources, check_whole)
        check_names(objects)
        for name, pod in pods(objects):
            check_walls(name, pod)
            check_program(name, pod, programs[name])
    check_faults_are_seen(objects, resources, check_whole, Refused)
    print(f"{len(rendered['cases'])} renderings by Helm {rendered['helm']}")


if __name__ == "__main__":
    main()
