"""Models outlive their sweeps: a sweep of the built-in trainer ends, its trials and its ensemble become
versions, the sweep and its data set are deleted, and the file is the same. Aliases move; numbers are never
given twice; what cannot become a model is refused by name; a download goes on after the server died."""
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import threading

from digits_sweep import digits_sweep
from harness import ASSAY, PATIENCE_S, Assay, Problem, SOURCE

SWEEP = digits_sweep(max_trials=4)

PROGRAM = """
name: program
metric: {name: m, goal: minimize}
parameters: {x: {type: float, min: 0, max: 1}}
search: {method: random}
limits: {max_trials: 1}
trial: {command: [sh, -c, 'echo "{\\"m\\": 1}" >> "$ASSAY_REPORT"; mkdir -p "$ASSAY_ARTIFACTS"; echo no > "$ASSAY_ARTIFACTS/%s"']}
"""


def sha256_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def refused(assay, status, words, method, path, body=None, **kw):
    try:
        answer = assay.call(method, path, body, **kw)
    except Problem as p:
        assert p.status == status, p
        for word in words:
            assert word in p.body["detail"], (word, p.body)
        return p.body
    raise AssertionError(f"{method} {path} {body}: {answer}")


def check_versions(assay, work):
    """Trials and the ensemble become versions, each once."""
    added = json.loads(assay.cli("models", "add", "keep/0", "Digits", "--json").stdout)
    assert (added["version"], added["kind"], added["trials"]) == (1, "trial", [0]), added
    assert added["sweep"] == "keep" and added["members"][0]["weight"] == 1, added
    assert set(added["metrics"]) >= {"val_error"} and "train_loss" not in added["metrics"], added
    assert added["measured_on"] == "held-out rows", added
    assert len(added["outputs"]["classes"]) == 10 and added["outputs"]["target"] == "class", added
    columns = assay.call("GET", "/v1/datasets/digits")["columns"]
    assert [i["name"] for i in added["inputs"]] == [c["name"] for c in columns], added["inputs"]
    assert {i["kind"] for i in added["inputs"]} == {"number"} and not any(i["missing"] for i in added["inputs"])
    data = assay.call("GET", "/v1/datasets/digits")
    assert added["lineage"]["dataset"] == {"name": "digits", "sha256": data["sha256"]}, added["lineage"]
    assert added["lineage"]["document"]["name"] == "keep" and added["lineage"]["sweep_id"] == "keep"
    trial = assay.call("GET", "/v1/sweeps/keep/trials/0")
    assert added["members"][0]["seed"] == str(trial["seed"]) and added["members"][0]["attempt"] == trial["attempt"]
    assert added["metrics"]["val_error"] == trial["metrics"]["val_error"]

    again = assay.cli("models", "add", "keep/0", "Digits")
    assert "has this content already" in again.stderr, again.stderr
    whole = assay.call("POST", "/v1/models/Digits/versions", {"sweep": "keep", "use": "ensemble"})
    ensemble = assay.call("GET", "/v1/sweeps/keep/ensemble")
    assert (whole["version"], whole["kind"]) == (2, "ensemble"), whole
    assert {m["trial"]: m["weight"] for m in whole["members"]} == {
        m["number"]: m["weight"] for m in ensemble["members"]}, whole["members"]
    assert abs(sum(m["weight"] for m in whole["members"]) - 1) < 1e-9, whole["members"]
    assert whole["metrics"] == {ensemble["metric"]: ensemble["value"]}, whole["metrics"]
    best = assay.call("POST", "/v1/models/Digits/versions", {"sweep": "keep", "use": "single"})
    assert best["trials"] == [ensemble["best_single"]["number"]], best
    wanted = whole if ensemble["recommended"] == "ensemble" else best
    got = assay.call("POST", "/v1/models/Digits/versions", {"sweep": "keep"})
    assert got["version"] == wanted["version"], (got, wanted)
    versions = assay.call("GET", "/v1/models/Digits/versions")["items"]
    learned, cursor = [], ""
    while cursor is not None:  # one after another: the cursor is a model and a version
        page = assay.call("GET", f"/v1/datasets/digits/models?page_size=1{cursor and '&cursor=' + cursor}")
        learned, cursor = learned + page["items"], page["next_cursor"]
    assert learned == versions, learned
    refused(assay, 404, ["there is no data set 'none'"], "GET", "/v1/datasets/none/models")
    assert [s["id"] for s in assay.call("GET", "/v1/sweeps?dataset=digits")["items"]] == ["keep"]
    assert assay.call("GET", "/v1/sweeps?dataset=none")["items"] == []
    assert [v["version"] for v in versions] == sorted((v["version"] for v in versions), reverse=True)
    assert "inputs" not in versions[0] and "lineage" not in versions[0], versions[0]
    path = os.path.join(work, "whole.safetensors")
    assay.cli("models", "get", "Digits@2", path)
    assert sha256_of(path) == whole["sha256"] and os.path.getsize(path) == whole["size"]
    return whole, added


def check_at_once(assay):
    """Eight requests for four trials at once: four versions, one number each."""
    answers, failures = [], []

    def add(number):
        try:
            answers.append((number, assay.call("POST", "/v1/models/at-once/versions", {"sweep": "keep", "trial": number})))
        except Exception as e:  # noqa: BLE001: reported below
            failures.append(e)
    threads = [threading.Thread(target=add, args=(i % 4,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    numbers = {}
    for trial, v in answers:
        numbers.setdefault(trial, set()).add(v["version"])
    assert sorted(n for s in numbers.values() for n in s) == [1, 2, 3, 4], numbers


def check_aliases(assay):
    assert assay.call("GET", "/v1/models/Digits/versions/default")["version"] >= 2
    newest = assay.call("GET", "/v1/models/Digits")["default_version"]
    assert newest == assay.call("GET", "/v1/models/Digits/versions")["items"][0]["version"]
    model = json.loads(assay.cli("models", "alias", "Digits", "champion", "1", "--json").stdout)
    assert model["aliases"] == {"champion": 1} and model["default_version"] == 1, model
    assert assay.call("GET", "/v1/models/Digits/versions/default")["version"] == 1
    assay.cli("models", "alias", "Digits", "champion", "2")
    assert assay.call("GET", "/v1/models/Digits/versions/champion")["version"] == 2
    refused(assay, 409, ["champion"], "DELETE", "/v1/models/Digits/versions/2")
    refused(assay, 404, ["99"], "PUT", "/v1/models/Digits/aliases/champion", {"version": 99})
    refused(assay, 400, ["alias"], "PUT", "/v1/models/Digits/aliases/7", {"version": 1})
    refused(assay, 400, ["default"], "PUT", "/v1/models/Digits/aliases/default", {"version": 1})
    refused(assay, 404, ["nobody"], "GET", "/v1/models/Digits/versions/nobody")
    refused(assay, 404, ["nobody"], "DELETE", "/v1/models/Digits/aliases/nobody")
    listed = assay.cli("models", "list").stdout
    assert "Digits" in listed and "champion 2" in listed, listed
    shown = assay.cli("models", "show", "Digits@champion").stdout
    assert "held-out rows, cross-fitted" in shown and "ensemble" in shown, shown
    assert "champion" in assay.cli("models", "show", "Digits").stdout
    # what the model's name means, for one who has it already
    whole = assay.call("GET", "/v1/models/Digits/versions/champion")
    same = {"If-None-Match": f'"{whole["sha256"]}"'}
    refused_or_304(assay, same)


def refused_or_304(assay, headers):
    try:
        assay.call("GET", "/v1/models/Digits/versions/champion/content", headers=headers)
    except Problem as p:
        assert p.status == 304, p
        return
    raise AssertionError("304 was expected")


def check_refusals(assay, work):
    for name, file in (("plain", "note.txt"), ("fake", "model.safetensors")):
        path = os.path.join(work, f"{name}.yaml")
        with open(path, "w") as f:
            f.write(PROGRAM.replace("name: program", f"name: {name}") % file)
        assay.cli("run", path)
        assay.wait_ended(name)
        refused(assay, 422, [f"{name}/0", "model.safetensors"], "POST", "/v1/models/m/versions",
                {"sweep": name, "trial": 0})
    add = "/v1/models/m/versions"
    refused(assay, 404, ["nothing"], "POST", add, {"sweep": "nothing"})
    refused(assay, 404, ["77"], "POST", add, {"sweep": "keep", "trial": 77})
    refused(assay, 400, ["/use"], "POST", add, {"sweep": "keep", "use": "all"})
    refused(assay, 400, ["/use"], "POST", add, {"sweep": "keep", "use": "single", "trial": 1})
    refused(assay, 400, ["sweep"], "POST", add, {})
    refused(assay, 400, ["name"], "POST", "/v1/models/.m/versions", {"sweep": "keep"})
    refused(assay, 409, ["no ensemble"], "POST", add, {"sweep": "plain", "use": "ensemble"})
    refused(assay, 404, ["m"], "GET", "/v1/models/m")  # nothing of them is left
    viewer = json.loads(assay.cli("token", "create", "viewer", "--json").stdout)["token"]
    refused(assay, 403, [], "POST", add, {"sweep": "keep"}, token=viewer)
    refused(assay, 403, [], "PUT", "/v1/models/Digits/aliases/x", {"version": 1}, token=viewer)
    refused(assay, 403, [], "DELETE", "/v1/models/Digits", token=viewer)
    assert assay.call("GET", "/v1/models/Digits", token=viewer)["name"] == "Digits"
    assert len(assay.call("GET", "/v1/models/Digits/versions/1/content", token=viewer)) > 1000


def unused_bytes(assay):
    text = assay.call("GET", "/metrics").decode()
    line, = [x for x in text.split("\n") if x.startswith("assay_content_unused_bytes ")]
    return float(line.split()[1])


def check_outlives(assay, work, whole):
    """The sweep, its trials, their files and the data set go; garbage collection has its time."""
    content = assay.call("GET", "/v1/sweeps/keep/trials/0/artifacts")["items"]
    assay.cli("delete", "keep", "--yes")
    assay.cli("data", "delete", "digits", "--yes")
    model, = [f for f in content if f["path"] == "model.safetensors"]
    # not until it cannot be read: a read keeps it
    assay.wait(lambda: unused_bytes(assay) == 0, "the content of the deleted sweep to be removed")
    refused(assay, 404, [], "GET", f"/v1/blobs/{model['sha256']}")
    path = os.path.join(work, "later.safetensors")
    assay.cli("models", "get", "Digits@champion", path)
    assert sha256_of(path) == whole["sha256"]
    assert assay.call("GET", "/v1/models/Digits/versions/2")["lineage"] == whole["lineage"]


def check_cut(assay, work, whole):
    """The server dies in the middle of a download and comes back: the file is whole, or what was there stays."""
    path = os.path.join(work, "cut.safetensors")
    with open(path, "w") as f:
        f.write("before")
    pid, = assay.processes("assayd")
    os.kill(pid, signal.SIGSTOP)
    get = subprocess.Popen([ASSAY, "models", "get", "Digits@2", path], env=assay.env, cwd=SOURCE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.kill(pid, signal.SIGKILL)
    out, err = get.communicate(timeout=PATIENCE_S)
    if get.returncode == 0:
        assert sha256_of(path) == whole["sha256"]
    else:
        assert open(path).read() == "before" and "server" in err, (out, err)
    assert not [n for n in os.listdir(work) if n.startswith(".")], os.listdir(work)


def check_numbers(assay):
    """A deleted version and a deleted model leave their numbers behind."""
    newest = assay.call("GET", "/v1/models/Digits/versions")["items"][0]["version"]
    assay.cli("models", "alias", "Digits", "champion", "--remove")
    assay.cli("models", "delete", f"Digits@{newest}", "--yes")
    refused(assay, 404, [str(newest)], "GET", f"/v1/models/Digits/versions/{newest}")
    assay.cli("models", "delete", "at-once", "--yes")
    refused(assay, 404, ["at-once"], "GET", "/v1/models/at-once")
    assert "at-once" not in [m["name"] for m in assay.call("GET", "/v1/models")["items"]]
    return newest


def main():
    with Assay(runners=2) as assay, tempfile.TemporaryDirectory(prefix="assay-models-", dir="/var/tmp") as work:
        document = os.path.join(work, "keep.yaml")
        with open(document, "w") as f:
            f.write(SWEEP)
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        assay.cli("run", document, "--paused")
        refused(assay, 409, ["paused"], "POST", "/v1/models/m/versions", {"sweep": "keep"})
        assay.cli("resume", "keep")
        assay.wait_ended("keep")
        whole, _ = check_versions(assay, work)
        check_at_once(assay)
        check_aliases(assay)
        check_refusals(assay, work)
        check_outlives(assay, work, whole)
        newest = check_numbers(assay)
        check_cut(assay, work, whole)
        # made again from the same document: the next numbers, not the first
        assay.wait(lambda: assay.call("GET", "/v1/models"), "the server to be back")
        assay.cli("data", "add", "digits", "examples/digits.csv", "--target", "class")
        assay.cli("run", document)
        assay.wait_ended("keep")
        assert assay.call("POST", "/v1/models/at-once/versions", {"sweep": "keep", "trial": 0})["version"] == 5
        assert assay.call("POST", "/v1/models/Digits/versions", {"sweep": "keep", "trial": 3})["version"] > newest
    print("models: ok")


if __name__ == "__main__":
    main()
