#!/usr/bin/env python3
"""Every operation of /openapi.json under requests that its schemas allow and requests that they do not: no answer is
5xx, each status is documented, each answer fits its schema; what the document refuses is refused, what it allows is
not called wrong; tokens, roles, methods, media types and query parameters are held everywhere.

    test_api_fuzz.py [SEED|today] [ROUNDS]        the same seed gives the same requests; CI's is fixed. More rounds of one seed
find what they found yesterday: `./dev nightly` runs 200 of a seed that the day gives"""
import copy
import hashlib
import http.client
import json
import random
import re
import sys
import time
import urllib.parse

from contract import Contract
from harness import PATIENCE_S, SECRET, Assay
from model_bytes import model_bytes

ROLES = ("viewer", "user", "runner", "admin")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
COMMAND = {"name": "fuzz", "metric": {"name": "loss", "goal": "minimize"},
           "parameters": {"x": {"type": "float", "min": 0.5, "max": 2, "scale": "log"},
                          "k": {"type": "categorical", "values": ["a", 1, True]},
                          "d": {"type": "int", "min": 1, "max": 4, "when": {"k": ["a"]}}},
           "search": {"method": "sobol", "seed": 5}, "limits": {"max_trials": 400, "grace": "1s"},
           "trial": {"command": ["none", "${x}", 3]}, "resources": {"gpus": 1}}  # no real runner here has a GPU
TRAIN = {"name": "fuzz-train", "metric": {"name": "val_error", "goal": "minimize"},
         "parameters": {"lr": {"type": "float", "min": 0.01, "max": 0.1}}, "search": {"method": "random"},
         "limits": {"max_trials": 2},
         "trial": {"train": {"dataset": "kept", "model": {"kind": "mlp", "layers": [4]}, "epochs": 1, "batch_size": 4,
                             "optimizer": {"kind": "sgd", "lr": "${lr}"}}}, "resources": {"gpus": 1}}
# What no schema allows, at any place in a body. (null means absent where a field is optional.)
POISON = ["\x00", "a\x00b", "\ud800", "x\udfffy", 10 ** 400, -(10 ** 30), 2 ** 63, float("nan"), float("inf"), [], {},
          "", " ", "x" * 70000, "\u202e\U0001f4a5", -1, 0, 0.5, 1e308, True, [[[[]]]], {"": {"": None}}, "../../x", "NaN"]
BAD_PATHS = ["%00", "a%00b", "%2f", "..%2f..", "%5c", "%", "%4", "%zz", "%ff%fe", "%c0%af", "%ed%a0%80", "%0d%0aX:%20y",
             "..", ".", "%2e%2e", "%20", "-1", "0x10", "1e3", "+1", "00", "99999999999999999999", "2147483648",
             "x" * 300, "x" * 9000, "%F0%9F%92%A5", "'%20or%201=1--", "{sweep}", "a;b", "a%3fb=c", "~", "*"]
BAD_CURSORS = ["x", "zz", "00", "f" * 256, "f" * 300, "61" * 60, "\u00e9", "7377656570733a", "%", "a b"]
BAD_BODIES = [b"", b"{", b"[", b"null", b"[]", b'"x"', b"1", b"\xff\xfe{}", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}',
              b'{"name":"\\ud800"}', b'{"name":"\\u0000"}', b"{} {}", b'{"a":1e999}', b"[" * 5000, b"{\"a\":" * 40 + b"1" + b"}" * 40,
              b"{\"a\":\"" + b"x" * (1 << 20) + b"\"}", b"NaN", b"{'a':1}", b"\x00"]
BAD_TYPES = [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data", "json", ""]


class Answer:
    def __init__(self, r, content, seconds):
        self.status, self.headers, self.content, self.seconds = r.status, r.headers, content, seconds
        self.kind = (r.headers.get("Content-Type") or "").split(";")[0].strip()


class Fuzz:
    def __init__(self, assay, rng):
        self.assay, self.rng, self.contract = assay, rng, Contract(assay.url)
        self.ops, self.sent, self.slowest = self.contract.operations, 0, 0.0
        self.connection, self.last = None, ""
        self.fill()

    # ---- what exists ----

    def must(self, method, path, body=None, **kw):
        return self.assay.call(method, path, body, **kw)

    def fill(self):
        """A sweep with trials in several states, data, a runner and tokens; the ids that requests may name."""
        table = b"a,b,class\n" + b"".join(b"%d,%d,%s\n" % (i, -i, b"xy"[i % 2:i % 2 + 1]) for i in range(40))
        digest = hashlib.sha256(table).hexdigest()
        self.must("PUT", f"/v1/blobs/{digest}", raw=table)
        self.must("POST", "/v1/datasets", {"name": "kept", "format": "csv", "files": {"table": digest}, "target": "class"})
        sweep = self.must("POST", "/v1/sweeps", COMMAND)["id"]
        epoch = self.must("POST", "/v1/runners", {"name": "by-hand", "slots": 8, "gpus": ["0", "1", "2", "3"]})["epoch"]
        claim = {"epoch": epoch, "claim_id": "first", "max_trials": 4, "gpus": 4, "wait_ms": 60000}
        got = []
        while len(got) < 4:  # a claim waits for the first trial alone
            claim.update(claim_id=f"first-{len(got)}", max_trials=4 - len(got))
            got += self.must("POST", "/v1/runners/by-hand/claim", claim)["trials"]
        assert {t["sweep"] for t in got} == {sweep}, got
        for i, t in enumerate(got[:-1]):
            at = f"/v1/sweeps/{sweep}/trials/{t['number']}/attempts/1"
            if i == 0:
                self.put_model(at)
            self.must("POST", f"{at}/measurements", {"items": [{"step": 0, "metrics": {"loss": i, "odd": "NaN"}}]})
            self.must("POST", f"{at}/complete", {"outcome": ("completed", "failed")[i % 2]})
        self.tokens = {r: self.must("POST", "/v1/tokens", {"role": r}) for r in ROLES}
        self.epoch, self.digest = epoch, digest
        asked = []
        while len(asked) < 2:  # those that it has are among the next answer's
            asked = self.must("POST", f"/v1/sweeps/{sweep}/suggestions", {"client": "me", "count": 2})["items"]
        self.must("POST", "/v1/models/kept/versions", {"sweep": sweep, "trial": got[0]["number"]})
        self.must("PUT", "/v1/models/kept/aliases/champion", {"version": 1})
        self.known = {"model": ["kept"], "version": ["1", "champion"], "alias": ["champion", "other"], "sweep": [sweep],
                      "number": [str(t["number"]) for t in got + asked], "attempt": ["1"], "seat": ["0"], "ensemble": ["1"],
                      "sha256": [digest],
                      "dataset": ["kept"], "runner": ["by-hand"], "token": []}

    def put_model(self, at):
        content = model_bytes()
        digest = hashlib.sha256(content).hexdigest()
        self.must("PUT", f"/v1/blobs/{digest}", raw=content)
        files = [{"path": "model.safetensors", "size": len(content), "sha256": digest}]
        self.must("PUT", f"{at}/files", {"kind": "artifact", "files": files})

    # ---- one request ----

    def send(self, method, target, body=None, headers=None, token=""):
        """An answer, whole; of an event stream its first line."""
        all_headers = {"Authorization": f"Bearer {token or self.assay.token}", **SECRET} if token is not None else {}
        all_headers.update(headers or {})
        self.last = f"{method} {target[:300]} {all_headers} {body[:300] if body else body!r}"
        for attempt in (1, 2):
            if not self.connection:
                self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.assay.url).netloc, timeout=PATIENCE_S)
            try:
                start = time.monotonic()
                self.connection.request(method, target, body=body, headers=all_headers)
                r = self.connection.getresponse()
                is_stream = r.headers.get_content_type() == "text/event-stream"
                content = r.readline() if is_stream and method != "HEAD" else b"" if is_stream else r.read()
                break
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.connection = None  # the server may close a connection that was kept, and cut a body that it refused
                assert attempt == 1, "no answer twice"
        if is_stream or r.will_close:
            self.connection.close()
            self.connection = None
        self.sent += 1
        a = Answer(r, content, time.monotonic() - start)
        self.slowest = max(self.slowest, a.seconds)
        assert a.status < 500, (a.status, content)
        assert a.headers["X-Content-Type-Options"] == "nosniff"
        if a.status >= 400 and method != "HEAD":
            self.check_problem(a)
        return a

    def check_problem(self, a):
        assert a.kind == "application/problem+json", (a.status, a.kind, a.content)
        doc = json.loads(a.content)
        self.contract.validate(doc, {"$ref": "#/components/schemas/Problem"}, "problem")
        assert doc["status"] == a.status and doc["code"] and doc["request_id"] == a.headers["X-Request-Id"], doc

    def check(self, op, a):
        """What an answer to an operation promises, whatever the request was."""
        assert a.status in op.responses, f"{a.status} is not documented: {a.content[:300]}"
        if op.method != "HEAD":
            self.contract.check_answer(op, a.status, a.kind, a.content)
        return a

    # ---- requests made from schemas ----

    def make(self, schema, depth=0):
        """A value that the schema allows."""
        rng, s = self.rng, self.contract.resolve(schema)
        if "enum" in s:
            return rng.choice(s["enum"])
        if "const" in s:
            return s["const"]
        if "oneOf" in s:
            return self.make(rng.choice(s["oneOf"]), depth)
        kind = s.get("type", "object")
        kind = rng.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            made = {k: self.make(v, depth + 1) for k, v in s.get("properties", {}).items()
                    if k in s.get("required", []) or rng.random() < 0.5}
            if isinstance(s.get("additionalProperties"), dict):
                made.update({rng.choice(["loss", "odd", "c", "d"]): self.make(s["additionalProperties"], depth + 1) for _ in range(2)})
            return made
        if kind == "array":
            items = s.get("items", {"type": ["number", "string", "boolean", "null"]})  # of a parameter's value
            return [self.make(items, depth + 1) for _ in range(min(rng.randrange(3), s.get("maxItems", 2)))]
        if kind == "string":
            return self.make_text(s)
        if kind in ("integer", "number"):
            low = s.get("minimum", 0)
            return rng.choice([low, rng.randint(low, min(s.get("maximum", low + 1000), low + 1000)), s.get("maximum", low + 7)])
        return rng.random() < 0.5 if kind == "boolean" else None

    def make_text(self, s):
        if "A-Za-z_" in s.get("pattern", ""):
            return self.rng.choice(["loss", "odd", "_a.b-c", "Z9"])
        if "[0-9a-f]{64}" in s.get("pattern", ""):
            return self.rng.choice([self.digest, f"{self.rng.getrandbits(256):064x}"])
        pattern = s.get("pattern", "0-9")
        letters = "abcdefgh_" if "0-9" not in pattern else "abcdefgh0123" if "pattern" in s else "abc \u00e9\u6f22\U0001f4a5\"\\\n"
        first = "a" if s.get("minLength", 0) or "pattern" in s else ""
        return first + "".join(self.rng.choice(letters) for _ in range(self.rng.randrange(min(s.get("maxLength", 20), 20))))

    def make_body(self, op):
        """A body that the schema allows, and the server too (where a schema says less than the words beside it)."""
        if op.name in ("createSweep", "previewSweep"):
            return copy.deepcopy(self.rng.choice([COMMAND, TRAIN]))
        body = self.make(op.body_schema)
        if op.name == "createDataset":
            body.update(name=self.rng.choice(["kept", "other"]), format="csv", files={"table": self.digest}, target=-1,
                        task="auto")
            body.pop("options", None)  # of other formats
        elif op.name == "addModelVersion":
            body = {"sweep": self.known["sweep"][0], "trial": 0}  # `use` stands beside no trial
        elif op.name == "askEnsemble":
            body["sweeps"] = []  # no other sweep has its rows
            body.pop("by", None)  # a column of its data set, and of one method
            if "metric" in body:
                body["metric"] = self.rng.choice(["auc", "log_loss", "pinball_90"])
            if body.get("method") != "stacking":
                body.pop("non_negative", None)
        elif op.name == "tagTrials":
            body.update(add=["a", "b c"][:self.rng.randint(0, 2)], remove=["d"])  # no tag is in both
        elif op.name == "setModelAlias":
            body["version"] = 1
        elif op.name == "claimTrials":
            self.make_claim(body)
        elif op.name == "sendBatch":
            body.setdefault("ends", [])  # it is not empty
            if body.get("claim"):
                self.make_claim(body["claim"])
        elif op.name == "askSuggestions":
            body.update(client=self.rng.choice(["me", "you"]), count=self.rng.randint(1, 3), wait_ms=self.rng.choice([0, 1, 150]))
            body.pop("lease_ms", None)
            if "params" in body:  # a trial of the client's own: one, in the sweep's space
                body.update(params=self.make_trial()["params"], count=1)
        elif op.name == "registerRunner":
            body["name"] = "fuzzed"
        elif op.name == "putBlobParts":
            body["parts"] = [self.digest, f"{self.rng.getrandbits(256):064x}"]
            body["size"] = (4 << 20) + self.rng.randint(1, 4 << 20)  # two parts of 4 MiB at most
        elif op.name == "putSeat":
            body["address"] = self.rng.choice(["127.0.0.1", "10.0.0.7", "fd00::1"])
        elif op.name == "createToken" and "ttl" in body:
            body["ttl"] = self.rng.choice(["1h", "30d"])
        elif op.name == "changeSweep":
            body["state"] = self.rng.choice(["running", "paused"])  # cancelled, it could be deleted under the others
            for name, values in {"max_trials": [5000, 9000], "max_failed_trials": [None, 5000], "trial_timeout": ["1h", None],
                                 "wall_time": [7200, "1d", None], "grace": ["5s", 1.5, None], "target": [-1e9, None],
                                 "stop_when": [{"regret": 0, "min_trials": 1000000}, None]}.items():
                if name in body.get("limits", {}):
                    body["limits"][name] = self.rng.choice(values)  # nor may its limits end it
            if body.get("limits", {}).get("on_timeout") == "keep":  # it needs a trial_timeout, which others take away
                del body["limits"]["on_timeout"]
            body.get("limits", {}).pop("max_steps", None)  # of sweeps with early stopping
        elif op.name == "addTrial":
            body = self.make_trial()
        elif op.name.endswith("Suggestion"):
            body["client"] = self.rng.choice(["me", "you"])
            body.pop("lease_ms", None)  # else they end under the others
        elif op.name == "putFiles":
            body["files"] = [{"path": f"f/{i}", "size": 1, "sha256": self.digest} for i in range(0 if body.get("lost") else self.rng.randrange(2))]
        elif op.name == "putUsage":  # all lists are as long as that of cpu
            body.update({name: (body[name] + [None] * len(body["cpu"]))[:len(body["cpu"])] for name in ("memory_bytes", "gpu", "gpu_memory_bytes") if name in body})
        for held in body.get("resume", []) + body.get("attempts", []) if isinstance(body, dict) else []:
            if held.get("seat") is None:  # only ranks have these
                held.pop("step", None)
                held.pop("sent_bytes", None)
        return body

    def make_trial(self):
        """What addTrial takes: a configuration of COMMAND, with or without a result."""
        rng = self.rng
        body = {"params": rng.choice([{"x": 0.5, "k": True}, {"x": 2, "k": 1}, {"x": 1.25, "k": "a", "d": 4}])}
        return {**body, **rng.choice([{}, {"reason": None}, {"metrics": {"loss": rng.random(), "odd": -1e300}},
                                      {"state": "failed", "reason": "no room"}, {"metrics": {"loss": 1}, "state": "completed"}])}

    def places(self, value, at=()):
        yield at
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for k, v in items:
            yield from self.places(v, at + (k,))

    def spoil(self, body):
        """The body with one thing changed for the worse (or, by chance, not)."""
        rng, body = self.rng, copy.deepcopy(body)
        at = rng.choice(list(self.places(body)))
        if not at:
            return rng.choice(POISON)
        parent = body
        for k in at[:-1]:
            parent = parent[k]
        how = rng.randrange(4)
        if how == 0:
            del parent[at[-1]]
        elif how == 1 and isinstance(parent, dict):
            parent[rng.choice(["extra", "", "\u00e9", "a/b~c", "x" * 5000, "nul\x00"])] = rng.choice(POISON)
        elif how == 2 and isinstance(parent, list):
            parent.extend([rng.choice(POISON)] if rng.random() < 0.7 else [{}] * 1100)
        else:
            parent[at[-1]] = rng.choice(POISON)
        return body

    def target(self, op, fresh=None):
        """A target with ids that exist, and query parameters by their schemas."""
        path, query, sweep = op.path, {}, ""
        for p in op.parameters:
            if p["in"] == "path":
                value = (fresh or {}).get(p["name"]) or self.rng.choice(self.known[p["name"]] or ["none"])
                sweep = value if p["name"] == "sweep" else sweep
                path = path.replace("{%s}" % p["name"], urllib.parse.quote(value, safe=""))
            elif op.name == "getImportance" and p["name"] == "metric":  # the schema allows others than the sweep has
                if self.rng.random() < 0.4:
                    query["metric"] = (TRAIN if sweep.startswith(TRAIN["name"]) else COMMAND)["metric"]["name"]
            elif op.name == "getSurface" and p["name"] in ("x", "y", "metric"):  # as above
                if self.rng.random() < 0.4 and p["name"] == "x":
                    query["x"] = next(iter((TRAIN if sweep.startswith(TRAIN["name"]) else COMMAND)["parameters"]))
            elif op.name == "listTrials" and p["name"] == "sort":  # names of the sweep's metrics and parameters
                params = (TRAIN if sweep.startswith(TRAIN["name"]) else COMMAND)["parameters"]
                query["sort"] = self.rng.choice(["number", "value", "state", "metric:loss", f"param:{next(iter(params))}"])
            elif op.name == "getTable" and p["name"] == "columns":  # as above
                if self.rng.random() < 0.4:
                    query["columns"] = "state,value,metric:loss"
            elif p["in"] == "query" and p["name"] != "cursor" and self.rng.random() < 0.4:
                query[p["name"]] = json.dumps(self.make(p["schema"])).strip('"')
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def encode(self, op, body):
        return {"Content-Type": op.body_type}, json.dumps(body).encode()

    def positive(self, op):
        headers, body = {}, None
        if op.body_type == "application/octet-stream":
            body, headers = b"content", {"Content-Type": op.body_type}
        elif op.body_type:
            headers, body = self.encode(op, self.make_body(op))
        fresh = {"sha256": hashlib.sha256(body).hexdigest()} if op.name == "putBlob" else None
        if op.name == "deleteSweep":  # not those that other requests name
            fresh = {"sweep": self.must("POST", "/v1/sweeps", TRAIN)["id"]}
        if op.name in ("removeRunner", "drainRunner"):  # not those of other requests
            self.must("POST", "/v1/runners", {"name": "passing", "slots": 1})
            fresh = {"runner": "passing"}
        a = self.check(op, self.send(op.method, self.target(op, fresh), body, headers))
        others = a.status == 403 and b'"not_holder"' in a.content  # the runner names a trial of a client
        assert others or a.status not in (400, 401, 403, 413, 415), f"refused what the document allows: {a.content}"
        return a

    def make_claim(self, claim):
        claim.update(epoch=self.epoch, wait_ms=self.rng.choice([0, 1, 150]))
        claim["seats"] = min(claim.get("seats") or 0, claim.get("max_trials", 1))

    def refuses(self, op, a):
        """Whether the answer, or that to a part of it, is a refusal."""
        if op.name == "previewSweep" and a.status == 200:
            return not json.loads(a.content)["valid"]
        if op.name != "sendBatch" or a.status != 200:
            return 400 <= a.status < 500
        answer = json.loads(a.content)
        parts = answer["ends"] + answer["measurements"] + ([answer["claim"]] if answer["claim"] else [])
        return any(400 <= part["status"] < 500 for part in parts)

    def negative_body(self, op):
        body = self.spoil(self.make_body(op))
        if op.name == "sendBatch" and isinstance(body, dict) and isinstance(body.get("claim"), dict):
            body["claim"].setdefault("wait_ms", 0)
        if op.name in ("claimTrials", "askSuggestions") and isinstance(body, dict):
            body.setdefault("wait_ms", 0)
        headers, data = self.encode(op, body)
        a = self.check(op, self.send(op.method, self.target(op), data, headers))
        must_fail = re.search(rb"\\u0000|\\ud800|\\udfff|NaN(?!\")|Infinity(?!\")", data)
        has_null = b"null" in data  # may stand for an optional field that is absent
        if must_fail or not (has_null or self.contract.is_valid(body, op.body_schema)):
            assert self.refuses(op, a), f"took what the document forbids: {a.status} {a.content[:300]}"

    def negative_path(self, op):
        names = [p["name"] for p in op.parameters if p["in"] == "path"]
        bad = self.rng.choice(names)
        path = op.path
        for name in names:
            value = self.rng.choice(BAD_PATHS) if name == bad else self.rng.choice(self.known[name] or ["none"])
            path = path.replace("{%s}" % name, value)
        a = self.send(op.method, path, b"{}" if op.body_type else None, {"Content-Type": op.body_type or "x/y"})
        assert a.status in (400, 404, 405, 413, 414, 431), a.status  # some of them are other paths

    def negative_query(self, op):
        for p in op.parameters:
            if p["in"] != "query":
                continue
            values = BAD_CURSORS if p["name"] == "cursor" else ["", "-1", "0x1", "9" * 30, "nope", "1.5", "\x00", "\x07", "1 "]
            value = self.rng.choice(values)
            headers, body = self.encode(op, self.make_body(op)) if op.body_type else ({}, None)
            a = self.check(op, self.send(op.method, self.target(op).split("?")[0] + "?" +
                                         urllib.parse.urlencode({p["name"]: value}), body, headers))
            if not self.contract.is_valid(value, p["schema"]) or p["name"] not in ("metric", "group", "tag", "dataset"):
                assert a.status == 400, f"{p['name']}={value!r}: {a.status}"

    # ---- rules that hold for each operation ----

    def rules(self, op):
        target = self.target(op, {"sweep": "no-such", "token": "no-such", "runner": "no-such", "dataset": "no-such"}).split("?")[0]
        typed = {"Content-Type": op.body_type} if op.body_type else {}
        body = b"not right" if op.body_type else None
        a = self.check(op, self.send(op.method, target + "?no_such_parameter=1", body, typed))
        assert a.status == 400, ("an unknown query parameter", a.status)
        a = self.check(op, self.send(op.method, target + "?x=%00", body, typed))
        assert a.status == 400, a.status
        if not op.is_open:
            self.rule_tokens(op, target, body, typed)
        if op.body_type and "json" in op.body_type:
            for kind in BAD_TYPES:
                a = self.check(op, self.send(op.method, target, b"{}", {"Content-Type": kind} if kind is not None else {}))
                assert a.status == 415, (kind, a.status)
            a = self.send(op.method, target, b"{}", {"Content-Type": op.body_type + "; charset=utf-8"})
            assert a.status in (400, 404, 409) or self.refuses(op, a), a.status
            for data in BAD_BODIES:
                a = self.check(op, self.send(op.method, target, data, typed))
                assert a.status in (400, 413), (data[:40], a.status)

    def rule_tokens(self, op, target, body, typed):
        for given in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"},
                      {"Authorization": self.assay.token}, {"Authorization": f"Bearer {self.assay.token}x"},
                      {"Authorization": f"Bearer {self.assay.token[:-1]}"}, {"Authorization": "Bearer " + "x" * 4000}):
            a = self.check(op, self.send(op.method, target, body, {**typed, **given}, token=None))
            assert a.status == 401 and a.headers["WWW-Authenticate"].startswith("Bearer"), (given, a.status)
        for role in ROLES:
            a = self.check(op, self.send(op.method, target, body, typed, token=self.tokens[role]["token"]))
            assert (a.status == 403) == (role not in op.roles) and a.status != 401, (role, op.roles, a.status)

    def rule_methods(self):
        by_path = {}
        for op in self.ops.values():
            by_path.setdefault(op.path, {})[op.method] = op
        for path, ops in by_path.items():
            allowed = set(ops) | {"OPTIONS"} | ({"HEAD"} if "GET" in ops else set())
            target = self.target(next(iter(ops.values()))).split("?")[0]
            for method in set(METHODS) - set(ops) - {"HEAD"}:
                a = self.send(method, target, token=None)
                listed = set(re.split(r", *", a.headers["Allow"] or ""))
                assert a.status == (204 if method == "OPTIONS" else 405) and listed == allowed, (method, a.status, listed)
            if "GET" in ops and "HEAD" not in ops:
                full, head = self.send("GET", target), self.send("HEAD", target)
                assert (full.status, full.kind, head.content) == (head.status, head.kind, b""), (target, head.status)

    def rule_deleted(self):
        """DELETE, then GET: 404; and again DELETE: 404."""
        sweep = self.must("POST", "/v1/sweeps", {**COMMAND, "name": "short"})["id"]
        self.must("PATCH", f"/v1/sweeps/{sweep}", {"state": "cancelled"})
        self.assay.wait_ended(sweep)
        self.must("POST", "/v1/datasets", {"name": "gone", "format": "csv", "files": {"table": self.digest}, "target": "class"})
        paths = [f"/v1/sweeps/{sweep}", "/v1/datasets/gone", f"/v1/tokens/{self.must('POST', '/v1/tokens', {'role': 'viewer'})['id']}"]
        for path in paths:
            for method, expected in (("DELETE", 204), ("DELETE", 404), ("GET", 404)):
                a = self.send(method, path)
                assert a.status == (405 if method == "GET" and "tokens" in path else expected), (method, path, a.status)
        for rest in ("best", "ensemble", "events", "trials", "trials/0", "trials/0/log", "trials/0/measurements",
                     "pareto", "importance", "ensembles", "ensembles/1"):
            assert self.send("GET", f"{paths[0]}/{rest}").status == 404, rest

    def rule_hosts(self):
        port = urllib.parse.urlsplit(self.assay.url).port
        for host, expected in (("evil.example", 403), (f"evil.example:{port}", 403), (f"localhost:{port}", 200),
                               ("127.0.0.1.evil.example", 403), ("localhost@evil.example", 403), ("[::1]", 200)):
            assert self.send("GET", "/healthz", headers={"Host": host}).status == expected, host
        typed, own = {"Content-Type": "application/json"}, f"http://127.0.0.1:{port}"
        for headers, expected in (({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Origin": own}, 400),
                                  ({"Origin": f"{own}.evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
                                  ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "same-origin"}, 400)):
            assert self.send("POST", "/v1/sweeps", b"{}", {**typed, **headers}).status == expected, headers

    # ---- the whole ----

    def run(self, rounds):
        self.rule_methods()
        self.rule_deleted()
        self.rule_hosts()
        for op in self.ops.values():
            self.rules(op)
        for _ in range(rounds):
            for op in self.ops.values():
                self.positive(op)
                if op.body_type and "json" in op.body_type:
                    for _ in range(4):
                        self.negative_body(op)
                if "{" in op.path:
                    self.negative_path(op)
                self.negative_query(op)
        assert self.send("GET", "/readyz", token=None).status == 200
        print(f"{self.sent} requests in {rounds} rounds, the slowest answer {self.slowest * 1000:.0f} ms")


def main():
    given = sys.argv[1] if len(sys.argv) > 1 else "20261120"
    seed = int(time.strftime("%Y%m%d") if given == "today" else given)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    print(f"seed {seed}", flush=True)
    with Assay(runners=1, env={"ASSAY_BAD_TOKENS_PER_MINUTE": "0"}) as assay:  # each operation gets some
        servers = assay.processes("assayd")
        fuzz = Fuzz(assay, random.Random(seed))
        try:
            fuzz.run(rounds)
        except BaseException:
            print(f"seed {seed}: {fuzz.last}", flush=True)
            raise
        assert assay.processes("assayd") == servers, "the server was started again"


if __name__ == "__main__":
    main()
