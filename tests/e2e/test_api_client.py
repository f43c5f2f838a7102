#!/usr/bin/env python3
"""A client generated from the OpenAPI document drives the whole API: every operation is called, every answer
is checked against the status codes and the schema that the document promises for it."""
import hashlib
import json
import struct
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from contract import Contract
from harness import PATIENCE_S, Assay
from model_bytes import model_bytes

class Client:
    """One method for each operationId, made from the document."""

    def __init__(self, url, token):
        self.url, self.token, self.called = url, token, set()
        self.contract = Contract(url)
        self.operations = self.contract.operations

    def __getattr__(self, name):
        if name not in self.operations:
            raise AttributeError(name)
        return lambda body=None, **kw: self.request(name, body, **kw)

    def request(self, name, body=None, expect=None, bearer=None, **values):
        op = self.operations[name]
        path, query, headers = op.path, {}, {"Authorization": f"Bearer {bearer or self.token}"}
        for p in op.parameters:
            key = p["name"]
            if key not in values:
                assert not p.get("required"), (name, key)
                continue
            text = str(values.pop(key))
            if p["in"] == "path":
                path = path.replace("{%s}" % key, urllib.parse.quote(text, safe=""))
            elif p["in"] == "query":
                query[key] = text
            else:
                headers[key] = text
        assert not values, (name, values)
        data = None
        if op.body_type:
            headers["Content-Type"] = op.body_type
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        try:
            answer = urllib.request.urlopen(urllib.request.Request(url, data, headers, method=op.method), timeout=PATIENCE_S)
        except urllib.error.HTTPError as e:
            answer = e
        with answer:
            status, kind = answer.status, answer.headers.get_content_type()
            content = answer.readline() if kind == "text/event-stream" else answer.read()
        assert expect is None and status < 400 or status == expect, f"{name}: {status}: {content[:600]}"
        self.called.add(name)
        return self.contract.check_answer(op, status, kind, content)


DOC = {
    "name": "generated", "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"x": {"type": "float", "min": 0, "max": 1}, "k": {"type": "categorical", "values": ["a", 1, True]}},
    "search": {"method": "sobol", "seed": 5}, "limits": {"max_trials": 4},
    "trial": {"command": ["none"]}, "resources": {"gpus": 1},  # no real runner here offers a GPU
}


def read_columns(content):
    """A file of columns as its header, and the values of each column."""
    assert content[:8] == b"ASYCOLS1" and content[12:16] == bytes(4), content[:16]
    head = json.loads(content[16:16 + int.from_bytes(content[8:12], "little")])
    values = {}
    for column in head["columns"]:
        kind = {"u8": "B", "u32": "I", "f32": "f", "f64": "d", "dict": {2: "H", 4: "I"}.get(column.get("width"))}[column["type"]]
        assert column["at"] % 8 == 0
        found = struct.unpack_from(f"<{head['rows']}{kind}", content, column["at"])
        if column["type"] == "dict":
            none = 2 ** (8 * column["width"]) - 1
            found = [None if i == none else column["words"][i] for i in found]
        values[column["name"]] = list(found)
    return head, values


def check_table(c, at):
    trials = sorted(c.listTrials(**at)["items"], key=lambda t: t["number"])
    head, values = read_columns(c.getTable(**at))
    assert head["whole"] and values["number"] == [t["number"] for t in trials]
    assert values["state"] == [t["state"] for t in trials] and values["origin"] == [t["origin"] for t in trials]
    for trial, value in zip(trials, values["value"]):
        assert value == trial["value"] or trial["value"] is None and value != value, (trial, value)
    head, values = read_columns(c.getTable(columns="state", since=int(head["version"]), **at))
    assert not head["whole"] and values == {"number": [], "state": []}, (head, values)
    c.getTable(columns="nonsense", expect=400, **at)
    check_tags(c, at, trials)
    check_surface(c, at)
    check_points(c, at, trials)
    check_attempts(c, at, trials)


def check_tags(c, at, trials):
    numbers = [t["number"] for t in trials]
    assert c.tagTrials({"numbers": numbers, "add": ["good", "x"]}, **at) == {"changed": len(numbers)}
    assert c.tagTrials({"numbers": [numbers[0], 999999], "remove": ["x"]}, **at) == {"changed": 1}
    assert c.getTrial(sweep=at["sweep"], number=numbers[0])["tags"] == ["good"]
    _, values = read_columns(c.getTable(columns="tags", **at))
    assert dict(zip(values["number"], values["tags"])) == {n: "good" if n == numbers[0] else "good,x" for n in numbers}, values
    c.tagTrials({"numbers": numbers, "add": ["a,b"]}, expect=400, **at)
    c.tagTrials({"numbers": numbers, "add": ["a"], "remove": ["a"]}, expect=400, **at)


def check_surface(c, at):
    found = c.getSurface(x="x", n=3, **at)
    assert found["metric"] == "loss" and (found["surfaces"] or found["reason"]), found
    c.getSurface(x="nothing", expect=400, **at)
    c.getSurface(y="x", expect=400, **at)


def check_points(c, at, trials):
    head, values = read_columns(c.getPoints(max_points=1024, **at))
    assert head["whole"] and list(values) == ["trial", "step", "time", "value"], head
    for trial in trials:
        mine = [(step, value) for number, step, value in zip(values["trial"], values["step"], values["value"])
                if number == trial["number"]]
        series = c.listMeasurements(metric="loss", sweep=at["sweep"], number=trial["number"])["series"].get("loss")
        assert mine == (list(zip(series["steps"], series["values"])) if series else []), (trial, mine, series)
    head, values = read_columns(c.getPoints(metric="loss", since=int(head["version"]), **at))
    assert not head["whole"] and values["trial"] == [], (head, values)
    c.getPoints(metric="not a name", expect=400, **at)
    c.getPoints(max_points=3, expect=400, **at)


def check_attempts(c, at, trials):
    head, values = read_columns(c.getAttempts(**at))
    listed = [(t["number"], a["attempt"], a["runner"], a["outcome"]) for t in trials
              for a in c.getTrial(sweep=at["sweep"], number=t["number"])["attempts"]]
    found = list(zip(values["trial"], values["attempt"], values["runner"], values["outcome"]))
    assert head["whole"] and found == listed, (found, listed)
    head, values = read_columns(c.getAttempts(since=int(head["version"]), **at))
    assert not head["whole"] and values["trial"] == [], (head, values)


def sweeps_and_trials(c):
    key = str(uuid.uuid4())
    s = c.createSweep(DOC, **{"Idempotency-Key": key})
    assert c.createSweep(DOC, **{"Idempotency-Key": key})["id"] == s["id"]
    c.createSweep({**DOC, "description": "other"}, expect=422, **{"Idempotency-Key": key})
    other = c.createSweep(DOC)
    assert other["id"] == s["id"] + "-2"
    c.changeSweep({"state": "paused"}, sweep=other["id"])
    c.changeSweep({"state": "nonsense"}, expect=400, sweep=other["id"])
    c.deleteSweep(sweep=other["id"], expect=409)
    c.changeSweep({"state": "cancelled"}, sweep=other["id"])
    return s["id"], other["id"]


def preview(c):
    before = len(c.listSweeps()["items"])
    found = c.previewSweep(DOC, suggestions=3)
    assert found["valid"] and not found["errors"] and found["seed"] == str(DOC["search"]["seed"]), found
    assert len(found["suggestions"]) == 3 and found["cells"] is None, found
    bad = c.previewSweep({**DOC, "name": "Not a name", "metric": {"name": "loss", "goal": "up"}})
    assert not bad["valid"] and [e["pointer"] for e in bad["errors"]] == ["/name", "/metric/goal"], bad
    c.previewSweep([], expect=400)
    assert len(c.listSweeps()["items"]) == before


def runner_protocol(c, sweep):
    r = c.registerRunner({"name": "by-hand", "slots": 2, "gpus": ["0", "1"]})
    secret = {"Assay-Runner-Secret": r["secret"]}
    mine = {"runner": "by-hand", **secret}
    claim = {"epoch": r["epoch"], "claim_id": "one", "max_trials": 2, "gpus": 2, "wait_ms": 60000}
    got = c.claimTrials(claim, **mine)["trials"]
    assert len(got) >= 1 and all(t["attempt"] == 1 for t in got), got
    again = c.claimTrials(claim, **mine)["trials"]
    assert [t["number"] for t in again] == [t["number"] for t in got], "a repeated claim is the same claim"
    first = {"sweep": sweep, "number": got[0]["number"], "attempt": 1, **secret}
    refs = [{"sweep": sweep, "number": t["number"], "attempt": 1} for t in got]
    c.heartbeat({"epoch": r["epoch"], "attempts": refs}, **mine)
    c.heartbeat({"epoch": r["epoch"] + 9, "attempts": []}, expect=409, **mine)
    batch = {"items": [{"step": 0, "metrics": {"loss": 0.5}}, {"step": 1, "metrics": {"loss": 0.25, "odd": "NaN"}}]}
    assert c.addMeasurements(batch, **first)["recorded"] >= 2
    c.addMeasurements(batch, **first)
    content = b"kept"
    digest = hashlib.sha256(content).hexdigest()
    c.hasBlob(sha256=digest, expect=404)
    c.putBlob(content, sha256=digest)
    c.putBlob(content, sha256=digest)
    c.hasBlob(sha256=digest)
    assert c.getBlob(sha256=digest) == content
    c.putBlob(b"other", sha256="0" * 64, expect=400)
    whole = b"p" * (4 << 20) + content
    parts = [hashlib.sha256(p).hexdigest() for p in (whole[:4 << 20], content)]
    names = {"sha256": hashlib.sha256(whole).hexdigest()}
    assert c.putBlobParts({"size": len(whole), "parts": parts}, **names) == {"missing": [0]}
    c.putBlob(whole[:4 << 20], sha256=parts[0])
    assert c.putBlobParts({"size": len(whole), "parts": parts}, **names) == {"missing": []}
    assert c.getBlob(**names) == whole
    c.putBlobParts({"size": len(whole), "parts": parts}, sha256="0" * 64, expect=400)
    files = {"kind": "artifact", "files": [{"path": "a/kept.txt", "size": len(content), "sha256": digest}]}
    c.putFiles(files, **first)
    c.putFiles({"kind": "artifact", "files": [{"path": "../x", "size": 1, "sha256": digest}]}, expect=400, **first)
    c.putFiles({"kind": "artifact", "files": [{"path": "x", "size": 1, "sha256": "1" * 64}]}, expect=422, **first)
    c.putLog({"text": "hello \u2713\n"}, **first)
    used = {"every_ms": 1000, "cpu": [0.5, None, 1], "memory_bytes": [4096, None, 8192]}
    c.putUsage({"every_ms": 1000, "cpu": [9]}, **first)
    c.putUsage(used, **first)
    c.putUsage({**used, "cpu": [0.5, -1, 1]}, expect=400, **first)
    c.putUsage({**used, "gpu": [1]}, expect=400, **first)
    c.putUsage({**used, "cpu": [0] * 513}, expect=400, **first)
    c.putUsage(used, expect=404, **{**first, "attempt": 7})
    at = {"sweep": sweep, "number": first["number"]}
    assert c.getTrialUsage(**at) == {"items": [{**used, "attempt": 1, "seat": None}]}, c.getTrialUsage(**at)
    c.getTrialUsage(**at, attempt=2, expect=404)
    done = c.completeAttempt({"outcome": "completed", "exit_code": 0}, **first)
    assert done["state"] == "completed" and done["value"] == 0.25, done
    assert c.completeAttempt({"outcome": "completed", "exit_code": 0}, **first)["state"] == "completed"
    many = c.sendBatch({"measurements": [{**refs[0], "items": []}], "claim": None,
                        "ends": [{**refs[0], "outcome": "completed", "exit_code": 0}, {**refs[0], "outcome": "won"}]}, **mine)
    assert [part["status"] for part in many["measurements"] + many["ends"]] == [409, 200, 400], many
    assert many["ends"][1]["problem"]["errors"][0]["pointer"] == "/ends/1/outcome", many
    c.sendBatch({"ends": 1}, expect=400, **mine)
    c.addMeasurements({"items": [{"step": 9, "metrics": {"loss": 0}}]}, expect=409, **first)
    c.completeAttempt({"outcome": "failed"}, expect=409, **{**first, "attempt": 2})
    t = c.getTrial(sweep=sweep, number=first["number"])
    assert t["value"] == 0.25 and t["attempts"][0]["outcome"] == "completed", t
    series = c.listMeasurements(sweep=sweep, number=first["number"])["series"]
    assert series["loss"] == {"steps": [0, 1], "values": [0.5, 0.25]} and series["odd"]["values"] == ["NaN"]
    assert c.getTrialLog(sweep=sweep, number=first["number"])["text"] == "hello \u2713\n"
    assert c.listArtifacts(sweep=sweep, number=first["number"])["items"][0]["path"] == "a/kept.txt"
    assert c.listBestTrials(sweep=sweep)["items"][0]["number"] == first["number"]
    others = {"Assay-Runner-Secret": c.registerRunner({"name": "other", "slots": 1})["secret"]}
    c.claimTrials(claim, expect=403, **{**mine, **others})
    c.completeAttempt({"outcome": "failed"}, expect=403, **{**first, **others})
    c.registerRunner({"name": "by-hand", "slots": 2}, expect=409, **others)
    assert "secret" not in c.registerRunner({"name": "by-hand", "slots": 2}, **secret)
    beat = {"epoch": r["epoch"] + 1, "attempts": []}
    assert c.heartbeat(beat, **mine)["drain"] is False
    c.drainRunner({}, runner="by-hand")
    assert [x["draining"] for x in c.listRunners()["items"] if x["name"] == "by-hand"] == [True]
    assert c.heartbeat(beat, **mine)["drain"] is True
    c.drainRunner({"draining": False}, runner="by-hand")
    assert c.heartbeat(beat, **mine)["drain"] is False
    c.drainRunner({}, runner="by-hand")
    c.putUsage(used, expect=403, **{**first, **others})
    c.leaveRunner({"epoch": r["epoch"] + 1}, expect=403, **{**mine, **others})
    c.leaveRunner({"epoch": r["epoch"] + 1}, **mine)
    c.drainRunner({}, runner="by-hand", expect=409)
    c.drainRunner({}, runner="nobody", expect=404)
    again = c.registerRunner({"name": "by-hand", "slots": 2}, **secret)
    assert c.heartbeat({"epoch": again["epoch"], "attempts": []}, **mine)["drain"] is False
    c.leaveRunner({"epoch": again["epoch"]}, **mine)
    c.removeRunner(runner="other")
    c.removeRunner(runner="other", expect=404)


def gang_protocol(c):
    """Two ranks of one trial, both on a runner that this plays; the first one leads."""
    doc = {**DOC, "name": "gang", "limits": {"max_trials": 1}, "resources": {"gpus": 1, "ranks": 2}}
    sweep = c.createSweep(doc)
    assert sweep["document"]["resources"]["min_ranks"] == 2 and sweep["document"]["trial"]["launch"] == "all", sweep
    r = c.registerRunner({"name": "ganger", "slots": 2, "gpus": ["0", "1"]})
    secret = {"Assay-Runner-Secret": r["secret"]}
    claim = {"epoch": r["epoch"], "claim_id": "ranks", "max_trials": 2, "seats": 2, "gpus": 2, "wait_ms": 60000}
    got = c.claimTrials(claim, runner="ganger", **secret)["trials"]
    assert [t["gang"]["seat"] for t in got] == [0, 1] and {t["number"] for t in got} == {0}, got
    attempt = {"sweep": sweep["id"], "number": 0, "attempt": 1}
    for seat in (0, 1):
        listens = {"endpoint": f"rank {seat}", "address": "127.0.0.1", "port": 29500 + seat}
        world = c.putSeat(listens, **attempt, seat=seat, **secret)
    assert world["epoch"] == 1 and [m["port"] for m in world["members"]] == [29500, 29501], world
    assert c.getWorld(**attempt, after=0, **secret)["secret"] == world["secret"] and len(world["secret"]) == 64
    assert c.joinWorld({"epoch": 1, "step": 0}, **attempt, seat=1, **secret)["epoch"] == 1
    c.joinWorld({"epoch": 7, "step": 0}, expect=409, **attempt, seat=1, **secret)
    c.changeWorld({"epoch": 7, "seat": 0, "lost": [1]}, expect=409, **attempt, **secret)
    c.addMeasurements({"items": [{"step": 0, "metrics": {"loss": 2}}]}, expect=422, **attempt, **secret)
    leads = {**attempt, **secret, "Assay-Seat": 0, "Assay-World-Epoch": 1}
    assert c.addMeasurements({"items": [{"step": 0, "metrics": {"loss": 2}}]}, **leads)["recorded"] == 1
    c.addMeasurements({"items": [{"step": 1, "metrics": {"loss": 1}}]}, expect=409, **{**leads, "Assay-Seat": 1})
    c.endSeat({"outcome": "completed", "exit_code": 0}, **attempt, seat=1, **secret)
    done = c.completeAttempt({"outcome": "completed", "exit_code": 0}, **leads)
    assert done["state"] == "completed" and done["value"] == 2, done
    gang = c.getGang(**attempt)
    assert gang["state"] == "over" and gang["epoch"] == 1 and len(gang["seats"]) == 2 and not gang["elastic"], gang
    c.leaveRunner({"epoch": r["epoch"]}, runner="ganger", **secret)


def ask_and_tell(c):
    """Every operation of a client that runs its own loop, and what people add to a sweep."""
    doc = {"name": "asked", "metrics": [{"name": "loss", "goal": "minimize"}, {"name": "speed", "goal": "maximize"}],
           "constraints": [{"metric": "heat", "max": 10}], "search": {"seed": 5}, "limits": {"max_trials": 4},
           "parameters": {"x": {"type": "float", "min": 0, "max": 1}, "k": {"type": "ordinal", "values": [1, 2, 4]},
                          "y": {"type": "int", "min": 1, "max": 9, "when": {"k": [1, 2]}}}}
    sweep = c.createSweep(doc, paused="true")
    assert sweep["state"] == "paused" and sweep["method"] == "gp" and not sweep["for_runners"], sweep
    at, result = {"sweep": sweep["id"]}, {"loss": 0.5, "speed": 2, "heat": 3}
    c.createSweep(doc, paused="perhaps", expect=400)
    known = c.addTrial({"params": {"x": 0.25, "k": 4}, "metrics": result}, **at)
    assert known["origin"] == "known" and known["state"] == "completed" and known["finish_seq"] == 1, known
    c.addTrial({"params": {"x": 0.25, "k": 4, "y": 3}}, expect=400, **at)
    key = {"Idempotency-Key": str(uuid.uuid4())}
    queued = c.addTrial({"params": {"x": 0.75, "k": 1, "y": 9}}, **at, **key)
    assert c.addTrial({"params": {"x": 0.75, "k": 1, "y": 9}}, **at, **key)["number"] == queued["number"]
    c.addTrial({"params": {"x": 0.5, "k": 4}}, expect=422, **at, **key)
    nothing = c.askSuggestions({"client": "me", "wait_ms": 0}, **at)
    assert nothing == {"items": [], "state": "paused", "done": False}, nothing
    c.changeSweep({"state": "running"}, **at)
    first = c.askSuggestions({"client": "me"}, **at)["items"][0]
    assert first["number"] == queued["number"] and first["origin"] == "enqueued" and first["params"]["y"] == 9, first
    again = c.askSuggestions({"client": "me", "count": 2, "lease_ms": 3600000}, **at)["items"]
    assert [i["number"] for i in again][0] == first["number"] and len(again) == 2, again
    held = {**at, "number": first["number"]}
    batch = {"client": "me", "items": [{"step": 0, "metrics": {"loss": 0.9}}, {"step": 1, "metrics": {"loss": 0.8, "odd": "NaN"}}]}
    assert c.measureSuggestion(batch, **held)["recorded"] == 3 and c.measureSuggestion(batch, **held)["recorded"] == 0
    assert c.heartbeatSuggestion({"client": "me", "lease_ms": 60000}, **held)["lease_until"]
    c.heartbeatSuggestion({"client": "other"}, expect=409, **held)
    c.completeSuggestion({"client": "me", "attempt": 7}, expect=409, **held)
    for _ in range(2):
        done = c.completeSuggestion({"client": "me", "metrics": {"loss": 0.1, "speed": 1, "heat": 10}}, **held)
        assert done["state"] == "completed" and done["feasible"] and done["step"] == 2 and done["client"] == "me", done
    hot = c.completeSuggestion({"client": "me", "metrics": {"loss": 0, "speed": 9, "heat": 11}}, **at, number=again[1]["number"])
    assert hot["state"] == "completed" and hot["feasible"] is False, hot
    lacking = c.askSuggestions({"client": "me"}, **at)["items"][0]
    values = {"client": "me", "metrics": {"loss": 0.2, "speed": 9}}
    refusal = c.completeSuggestion(values, expect=422, **at, number=lacking["number"])
    assert refusal["errors"][0]["pointer"] == "/metrics/heat", refusal
    lacking = c.completeSuggestion({"client": "me", "outcome": "failed"}, **at, number=lacking["number"])
    assert lacking["state"] == "failed", lacking
    front = c.listParetoTrials(**at)
    assert [t["number"] for t in front["items"]] == [known["number"], first["number"]] and front["hypervolume"] > 0, front
    first_of, second_of = c.getImportance(**at), c.getImportance(metric="speed", **at)
    assert first_of["reason"] and first_of["metric"] == "loss" and second_of["metric"] == "speed", second_of
    assert "'heat'" in c.getImportance(metric="heat", expect=400, **at)["detail"]
    assert c.getRegret(**at)["bound"] is None  # there are two metrics
    check_table(c, at)
    last = c.askSuggestions({"client": "me"}, **at)["items"][0]
    assert last["reason"]["method"] == "gp" and c.askSuggestions({"client": "you", "wait_ms": 100}, **at)["items"] == []
    c.completeSuggestion({"client": "me", "outcome": "failed", "reason": "no room"}, **at, number=last["number"])
    over = c.askSuggestions({"client": "you"}, **at)
    assert over["items"] == [] and over["done"] and over["state"] in ("finishing", "completed"), over
    c.addTrial({"params": {"x": 0, "k": 4}}, expect=409, **at)
    while c.getSweep(**at)["state"] == "finishing":
        time.sleep(0.05)
    made = c.askEnsemble({"method": "stacking", "non_negative": True}, **at, expect=201)
    assert c.askEnsemble({"non_negative": True, "method": "stacking", "size": 16}, **at, expect=200)["number"] == made["number"]
    assert c.askEnsemble({"method": "stacking", "calibrate": True}, **at, expect=201)["request"]["calibrate"] is True
    c.askEnsemble({"method": "voting"}, **at, expect=400)
    c.askEnsemble({"sweeps": ["no-such-sweep"]}, **at, expect=404)
    assert [e["number"] for e in c.listEnsembles(**at)["items"]] == [made["number"] + 1, made["number"]]
    assert c.getAskedEnsemble(**at, ensemble=made["number"])["request"]["sweeps"] == [at["sweep"]]
    c.getAskedEnsemble(**at, ensemble=999, expect=404)
    c.retryTrial(expect=409, **at, number=known["number"])
    retried = c.retryTrial(**at, number=last["number"])
    assert retried["state"] == "queued" and retried["retries"][0]["reason"] == "no room", retried
    both = c.retryTrials({"state": "failed"}, **at)
    assert both["numbers"] == [lacking["number"]] and both["sweep"]["state"] == "running", both
    c.retryTrials({"state": "completed"}, expect=400, **at)
    rows = [{"params": {"x": 0.1 * i, "k": 4}, "metrics": result, "key": f"row {i}"} for i in range(3)]
    assert c.addTrial(rows, **at)["added"] == 3 and c.addTrial(rows[1:], **at)["added"] == 0
    assert "/1/params" in json.dumps(c.addTrial([rows[0], {"params": {"x": 7, "k": 4}}], expect=400, **at))
    changed = c.changeSweep({"limits": {"max_trials": 1, "wall_time": "1h"}}, **at)
    assert "no more are made" in changed["notes"][0], changed
    changes = c.listSweepChanges(**at)["items"][0]["changes"]
    assert changes == {"max_trials": {"from": 4, "to": 1}, "wall_time": {"from": None, "to": 3600}}, changes
    assert c.listSweeps(tag="none")["items"] == []
    c.changeSweep({"state": "cancelled"}, **at)
    c.deleteSweep(**at)


def reading(c, sweep):
    page = c.listTrials(sweep=sweep, page_size=1, sort="value", order="desc")
    seen = [t["number"] for t in page["items"]]
    while page["next_cursor"]:
        page = c.listTrials(sweep=sweep, page_size=1, sort="value", order="desc", cursor=page["next_cursor"])
        seen += [t["number"] for t in page["items"]]
    assert len(seen) == len(set(seen)) == c.getSweep(sweep=sweep)["counts"]["total"]
    c.listTrials(sweep=sweep, cursor="not-a-cursor", expect=400)
    c.getTrial(sweep=sweep, number=999, expect=404)
    c.streamSweepEvents(sweep=sweep, after=0)
    c.streamEvents(after=0)
    c.listRegretChecks(sweep=sweep)
    c.changeSweepAttrs({"team": "a", "budget": [1, None]}, sweep=sweep)
    assert c.changeSweepAttrs({"team": None}, sweep=sweep)["user_attrs"] == {"budget": [1, None]}
    c.changeTrialAttrs({"commit": "8a5632ad"}, sweep=sweep, number=seen[0])
    assert c.getTrial(sweep=sweep, number=seen[0])["user_attrs"] == {"commit": "8a5632ad"}
    c.changeTrialAttrs({"": 1}, sweep=sweep, number=seen[0], expect=400)
    c.getEnsemble(sweep=sweep)
    c.askEnsemble({}, sweep=sweep, expect=409)  # it has not ended


def models(c):
    """A trial whose file is a model becomes a version; all that can be done with it."""
    content = model_bytes()
    digest = hashlib.sha256(content).hexdigest()
    c.putBlob(content, sha256=digest)
    sweep = c.createSweep({**DOC, "name": "modelled"})["id"]
    r = c.registerRunner({"name": "modeller", "slots": 1, "gpus": ["7"]})
    secret = {"Assay-Runner-Secret": r["secret"]}
    claim = {"epoch": r["epoch"], "claim_id": "m1", "max_trials": 1, "gpus": 1, "wait_ms": 60000}
    t, = c.claimTrials(claim, runner="modeller", **secret)["trials"]
    at = {"sweep": t["sweep"], "number": t["number"], "attempt": t["attempt"], **secret}
    c.putFiles({"kind": "artifact", "files": [{"path": "model.safetensors", "size": len(content), "sha256": digest}]}, **at)
    c.addMeasurements({"items": [{"step": 0, "metrics": {"loss": 0.5}}]}, **at)
    c.completeAttempt({"outcome": "completed"}, **at)
    add = {"sweep": t["sweep"], "trial": t["number"]}
    made = c.addModelVersion(add, model="Net")
    again = c.addModelVersion(add, model="Net")
    assert made["version"] == again["version"] == 1 and made["sha256"] == again["sha256"], (made, again)
    c.addModelVersion({"sweep": t["sweep"], "trial": 999}, expect=404, model="Net")
    c.addModelVersion({**add, "use": "single"}, expect=400, model="Net")
    assert c.setModelAlias({"version": 1}, model="Net", alias="champion")["aliases"] == {"champion": 1}
    assert c.getModelVersion(model="Net", version="champion") == c.getModelVersion(model="Net", version="1")
    assert c.getModel(model="Net")["default_version"] == 1
    file = c.getModelContent(model="Net", version="default")
    assert hashlib.sha256(file).hexdigest() == made["sha256"], made
    assert [v["version"] for v in c.listModelVersions(model="Net")["items"]] == [1]
    assert [m["name"] for m in c.listModels()["items"]] == ["Net"]
    c.deleteModelVersion(expect=409, model="Net", version="1")
    c.deleteModelAlias(model="Net", alias="champion")
    c.deleteModelVersion(model="Net", version="1")
    c.deleteModel(model="Net")
    c.getModel(model="Net", expect=404)
    c.changeSweep({"state": "cancelled"}, sweep=sweep)


def the_rest(c):
    content = b"a,b,class\n" + b"".join(b"%d,%d,%s\n" % (i, -i, b"xy"[i % 2:i % 2 + 1]) for i in range(20))
    digest = hashlib.sha256(content).hexdigest()
    c.putBlob(content, sha256=digest)
    made = c.createDataset({"name": "small", "format": "csv", "files": {"table": digest}, "target": "class"})
    assert made["rows"] == 20 and made["features"] == 2 and made["outputs"] == 2, made
    c.getDataset(dataset="small")
    c.listDatasets()
    preview = c.getDatasetPreview(dataset="small")
    assert preview == c.getDatasetPreview(dataset="small")  # computed, and as it was kept
    assert [(k["name"], k["kind"], k["target"]) for k in preview["columns"]] == [
        ("class", "categorical", True), ("a", "numeric", False), ("b", "numeric", False)], preview
    assert preview["columns"][1]["numbers"]["mean"] == 9.5 and sum(preview["columns"][2]["numbers"]["counts"]) == 20, preview
    assert preview["first_rows"][1] == ["y", "1", "-1"], preview
    assert c.listDatasetModels(dataset="small")["items"] == []
    c.deleteDataset(dataset="small")
    c.getDataset(dataset="small", expect=404)
    c.getDatasetPreview(dataset="small", expect=404)
    models(c)
    viewer = c.createToken({"role": "viewer", "name": "reader"})
    c.listSweeps(bearer=viewer["token"])
    c.createSweep(DOC, bearer=viewer["token"], expect=403)
    c.createToken({"role": "viewer"}, bearer=viewer["token"], expect=403)
    c.listTokens()
    return viewer


def main():
    with Assay(runners=1) as assay:
        c = Client(assay.url, assay.token)
        c.getHealth()
        c.getReadiness()
        c.getOpenapi()
        c.getMetrics()
        sweep, other = sweeps_and_trials(c)
        preview(c)
        runner_protocol(c, sweep)
        ask_and_tell(c)
        reading(c, sweep)
        viewer = the_rest(c)
        c.listRunners()
        c.getDemand()
        c.cancelTrial(sweep=sweep, number=999, expect=404)
        c.revokeToken(token=viewer["id"])
        c.listSweeps(bearer=viewer["token"], expect=401)
        c.changeSweep({"state": "cancelled"}, sweep=sweep)
        assay.wait_ended(sweep)
        c.deleteSweep(sweep=sweep)
        c.getSweep(sweep=sweep, expect=404)
        gang_protocol(c)
        missing = set(c.operations) - c.called
        assert not missing, f"never called: {missing}"
        print(f"{len(c.called)} operations called and checked")


sys.exit(main())
