"""What goes on while faults happen: sweeps of each kind one after another, clients that ask and tell, runners that do
nothing but claim and complete, and somebody who sends what no client should.

Everything is repeated until it is answered, as the API promises that it may be. Each client writes its history before
it believes anything."""
import http.client
import json
import os
import random
import socket
import threading
import time

KINDS = ("ask", "noop", "real", "slow", "frail", "grid", "gang", "group", "ranks")
MUCH_MEMORY = 1 << 50  # no-op runners say that they have it, and no cores; the real ones have cores
SECRET = "0123456789abcdefghijklmnopqrstuvwxyzCHAOS"


def document(kind, name, trial, history, root):
    """x and y decide what a trial does (trial.c); the value of every one that completes is x² + y²."""
    def program(steps, pause_ms):
        return {"command": [trial, os.path.join(history, "trials"), str(steps), str(pause_ms), "${x}", "${y}"]}
    number = {"type": "float", "min": 0, "max": 1}
    doc = {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": {"x": number, "y": number},
           "search": {"method": "random", "seed": 5}, "ensemble": False, "resources": {"cpus": 1}}
    sized = {  # trials, at once, restarts
        "ask": (120, 9, 50), "noop": (200, 24, 50), "real": (24, 4, 60), "slow": (4, 4, 60), "frail": (12, 3, 1),
        "gang": (3, 2, 60), "group": (6, 6, 60), "ranks": (1, 1, 60)}
    if kind in sized:
        trials, at_once, restarts = sized[kind]
        doc["limits"] = {"max_trials": trials, "max_concurrent_trials": at_once, "max_restarts": restarts, "grace": "1s"}
    if kind == "ask":
        del doc["resources"]
    elif kind == "noop":
        doc.update(resources={"memory": MUCH_MEMORY >> 6}, trial={"command": ["true"]})
    elif kind in ("real", "frail"):
        doc["trial"] = program(3, 40)
    elif kind == "slow":
        doc["trial"] = program(15, 200)
    elif kind == "grid":
        cells = {"type": "float", "min": 0.05, "max": 0.95, "points": 4}
        doc.update(search={"method": "grid"}, parameters={"x": cells, "y": cells}, trial=program(2, 20),
                   limits={"max_concurrent_trials": 5, "max_restarts": 60, "grace": "1s"})
    elif kind == "gang":
        doc.update(resources={"cpus": 1, "ranks": 2}, trial={**program(6, 60)})
    else:  # the built-in trainer
        doc.update(metric={"name": "val_error", "goal": "minimize"}, resources={"cpus": 1, **({"ranks": 2} if kind == "ranks" else {"group": 3})},
                   trial={"train": {"dataset": "digits", "model": {"kind": "mlp", "layers": [16]},
                                    "optimizer": {"kind": "sgd", "lr": "${x}"}, "epochs": 6, "batch_size": 128,
                                    "micro_batch": 32, "validation": {"fraction": 0.3}}},
                   parameters={"x": {"type": "categorical", "values": [0.01, 0.03, 0.1]}})
    return doc


class Lost(Exception):
    """No answer, or one that says to repeat."""


class Http:
    """One connection at a time; a request is sent once."""

    def __init__(self, port, token, secret=None):
        self.port, self.connection = port, None
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if secret:
            self.headers["Assay-Runner-Secret"] = secret

    def call(self, method, path, body=None, headers=None):
        """Status and document. Lost."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            self.connection.request(method, path, data, {**self.headers, **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as e:
            self.connection.close()
            self.connection = None
            raise Lost(repr(e)) from None
        if answer.status in (502, 503, 504):
            raise Lost(str(answer.status))
        return answer.status, json.loads(text) if text else None


class Load:
    def __init__(self, fleet, history, writer, seed, kinds=KINDS):
        self.fleet, self.history, self.writer, self.seed, self.kinds = fleet, history, writer, seed, kinds
        self.current = {}       # (kind, place): the sweep that runs
        self.sweeps = []        # all that were acknowledged
        self.problems = []      # answers that nobody may get
        self.is_over = False    # no further sweep is made
        self.is_done = False    # every thread ends
        self.is_broken = False  # one ended by a fault of its own
        self.threads, self.mutex = [], threading.Lock()

    def start(self):
        # of what clients wait for there are two at a time, so that one always has trials
        jobs = [(self.keep, (kind, place)) for kind in self.kinds for place in range(2 if kind in ("ask", "noop") else 1)]
        jobs += [(self.ask_and_tell, i) for i in range(3)] if "ask" in self.kinds else []
        jobs += [(self.run_noops, i) for i in range(2)] if "noop" in self.kinds else []
        for job, argument in jobs:
            self.start_thread(job, argument)

    def start_thread(self, job, argument):
        t = threading.Thread(target=self.guard, args=(job, argument), name=job.__name__, daemon=True)
        t.start()
        self.threads.append(t)

    def guard(self, job, argument):
        try:
            job(argument)
        except BaseException as e:
            self.problems.append(f"{job.__name__}({argument}) ended with {e!r}")
            self.is_broken = True
            raise

    def http(self, secret=None):
        return Http(self.fleet.port, self.fleet.token, secret)

    def insist(self, http, method, path, body=None, headers=None):
        """Repeat until there is an answer; None once everything is over."""
        pause = 0.02
        while not self.is_done:
            try:
                status, answer = http.call(method, path, body, headers)
            except Lost:
                time.sleep(pause)
                pause = min(pause * 1.5, 0.4)
                continue
            if status >= 500 or status in (400, 401, 403, 415):
                self.problems.append(f"{method} {path} {json.dumps(body)[:200]} was answered {status}: {str(answer)[:300]}")
            return status, answer
        return None

    # Sweeps.

    def keep(self, where):
        """One sweep of a kind after another."""
        (kind, place), http, n = where, self.http(), 0
        while not self.is_over:
            name = f"{kind}-{place}-{n}"
            doc = document(kind, name, self.fleet.trial, self.history, self.fleet.folder)
            got = self.insist(http, "POST", "/v1/sweeps", doc, {"Idempotency-Key": f"chaos-{name}"})
            if not got:
                return
            if got[0] != 201:
                self.problems.append(f"createSweep {name} was answered {got[0]}: {got[1]}")
                return
            sweep = got[1]["id"]
            self.writer.add("made", sweep=sweep, kind=kind)
            with self.mutex:
                self.sweeps.append((sweep, kind))
                self.current[where] = sweep
            if not self.await_end(http, sweep):
                return
            n += 1
        self.current.pop(where, None)

    def await_end(self, http, sweep):
        while got := self.insist(http, "GET", f"/v1/sweeps/{sweep}"):
            if got[0] == 404:
                self.problems.append(f"acknowledged sweep lost: {sweep}")
                return True
            if got[1]["state"] in ("completed", "failed", "cancelled"):
                return True
            time.sleep(0.5)  # eleven look at the same time, and a look costs the programs 4 ms
        return False

    # Ask and tell.

    def ask_and_tell(self, i):
        rng, http, name, late = random.Random(f"{self.seed} client {i}"), self.http(), f"c{i}", []
        generation = 0
        while not self.is_done:
            sweep = rng.choice([s for (kind, _), s in list(self.current.items()) if kind == "ask"] or [None])
            while late and late[0][0] < time.monotonic():
                self.tell(http, *late.pop(0)[1:], rng=None)
            if not sweep:
                time.sleep(0.05)
                continue
            got = self.insist(http, "POST", f"/v1/sweeps/{sweep}/suggestions",
                              {"client": f"{name}-{generation}", "count": 3, "lease_ms": 3000, "wait_ms": 300})
            if not got or got[0] != 200:
                continue
            if got[1]["done"]:
                time.sleep(0.05)
            for item in got[1]["items"]:
                trial = f"{sweep}/{item['number']}"
                self.writer.add("got", trial=trial, attempt=item["attempt"], client=f"{name}-{generation}")
                if rng.random() < 0.04:  # it goes away without a word, and comes back when its lease is over
                    late.append((time.monotonic() + 6, sweep, item, f"{name}-{generation}"))
                    generation += 1
                    break
                self.tell(http, sweep, item, f"{name}-{generation}", rng)

    def tell(self, http, sweep, item, client, rng):
        trial, attempt, number = f"{sweep}/{item['number']}", item["attempt"], item["number"]
        value = item["params"]["x"] ** 2 + item["params"]["y"] ** 2
        path, body = f"/v1/sweeps/{sweep}/suggestions/{number}", {"client": client, "attempt": attempt}
        lot = rng.random() if rng else 1
        outcome = "failed" if lot < 0.04 else "released" if lot < 0.08 else "completed"
        if lot > 0.5:
            points = [[0, value + 2], [1, value + 1]]
            got = self.insist(http, "POST", path + "/measurements", {
                **body, "items": [{"step": s, "metrics": {"loss": v}} for s, v in points]})
            if got and got[0] == 200:
                self.writer.add("points", trial=trial, attempt=attempt, items=points)
        body["outcome"] = outcome
        if outcome == "completed":
            body.update(metrics={"loss": value}, step=2)  # at a step of its own: no attempt replaces another's points
        self.end(http, path + "/complete", body, trial, attempt, outcome, value if outcome == "completed" else None)

    def end(self, http, path, body, trial, attempt, outcome, value):
        self.writer.add("tells", trial=trial, attempt=attempt, outcome=outcome, value=value)
        got = self.insist(http, "POST", path, body)
        if not got:
            return
        if got[0] == 200:
            self.writer.add("acked", trial=trial, attempt=attempt, outcome=outcome, value=value, state=got[1]["state"])
        else:
            self.writer.add("refused", trial=trial, attempt=attempt, outcome=outcome, status=got[0])

    # Runners that do nothing.

    def run_noops(self, i):
        http, name, epoch, n, seen = self.http(SECRET + str(i)), f"noop{i}", None, 0, set()
        while not self.is_done:
            if epoch is None:
                got = self.insist(http, "POST", "/v1/runners", {"name": name, "slots": 8, "memory_bytes": MUCH_MEMORY})
                epoch = got[1]["epoch"] if got and got[0] == 200 else None
                continue
            n += 1
            claim = {"epoch": epoch, "claim_id": f"{epoch}-{n}", "max_trials": 8, "wait_ms": 300}
            got = self.insist(http, "POST", f"/v1/runners/{name}/claim", claim)
            if not got or got[0] != 200:
                epoch = None
                continue
            held = [{"sweep": t["sweep"], "number": t["number"], "attempt": t["attempt"]} for t in got[1]["trials"]]
            self.insist(http, "POST", f"/v1/runners/{name}/heartbeat", {"epoch": epoch, "attempts": held})
            for t in got[1]["trials"]:
                self.run_noop(http, t, name, seen)

    def run_noop(self, http, t, name, seen):
        trial, attempt = f"{t['sweep']}/{t['number']}", t["attempt"]
        value = t["params"]["x"] ** 2 + t["params"]["y"] ** 2
        path = f"/v1/sweeps/{t['sweep']}/trials/{t['number']}/attempts/{attempt}"
        if (trial, attempt) not in seen:
            seen.add((trial, attempt))
            self.writer.add("got", trial=trial, attempt=attempt, client=name)
        points = [[0, value + 1]]
        got = self.insist(http, "POST", path + "/measurements",
                          {"items": [{"step": s, "metrics": {"loss": v}} for s, v in points]})
        if got and got[0] == 200:
            self.writer.add("points", trial=trial, attempt=attempt, items=points)
        self.end(http, path + "/complete", {"outcome": "completed", "metrics": {"loss": value}, "step": 1}, trial, attempt,
                 "completed", value)

    # What no client should send.

    def poison(self, rng):
        """Malformed, hostile and half-sent requests among those of the others. None may have an effect, so each names an
        attempt that is not current, or cannot be read at all."""
        sweeps = [s for s, _ in self.sweeps[-4:]] or ["none"]
        http = self.http(SECRET + "0")
        for _ in range(12):
            sweep, number = rng.choice(sweeps), rng.randrange(40)
            method, path, body = rng.choice([
                ("POST", f"/v1/sweeps/{sweep}/trials/{number}/attempts/99999/complete", {"outcome": "completed", "metrics": {"loss": 1}}),
                ("POST", f"/v1/sweeps/{sweep}/trials/{number}/attempts/99999/measurements", {"items": [{"step": 1, "metrics": {"loss": 1}}]}),
                ("POST", f"/v1/sweeps/{sweep}/trials/{number}/attempts/0/complete", {"outcome": "completed"}),
                ("POST", f"/v1/sweeps/{sweep}/trials/-1/attempts/1/complete", {"outcome": "completed"}),
                ("POST", f"/v1/sweeps/{sweep}/suggestions/{number}/complete", {"client": "nobody", "metrics": {"loss": 1}}),
                ("POST", f"/v1/sweeps/{sweep}/suggestions/{number}/complete", {"client": "nobody", "outcome": "lost"}),
                ("POST", "/v1/runners/noop0/claim", {"epoch": 1 << 60, "claim_id": "x"}),
                ("POST", "/v1/runners/noop0/claim", {"epoch": -1, "claim_id": "x" * 5000}),
                ("POST", "/v1/runners/noop0/batch", {"epoch": 1, "ends": [{"sweep": sweep, "number": number, "attempt": 99999,
                                                                           "outcome": "completed", "metrics": {"loss": 1}}] * 3}),
                ("POST", "/v1/runners/noop0/batch", {"epoch": 1, "ends": [{}], "measurements": [None], "claim": []}),
            ])
            try:
                status, answer = http.call(method, path, body)
                fine = 200 <= status < 500 and (status >= 400 or path.endswith("/batch"))
                if not fine:
                    self.problems.append(f"poison {path} {body} was answered {status}: {str(answer)[:200]}")
            except Lost:
                pass
        for _ in range(8):
            self.send_raw(rng, sweeps)

    def send_raw(self, rng, sweeps):
        head = (f"POST /v1/sweeps/{rng.choice(sweeps)}/trials/0/attempts/1/complete HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {self.fleet.token}\r\nContent-Type: application/json\r\n").encode()
        text = rng.choice([
            head[:rng.randrange(len(head))],                                      # half a head
            head + b"Content-Length: 1000\r\n\r\n{\"outcome\": \"comp",           # half a body
            head + b"Content-Length: 10\r\n\r\n{\"outcome\"",                     # no JSON
            head + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}",
            head + b"Transfer-Encoding: chunked\r\n\r\nzzzz\r\n",
            head + b"Content-Length: 2000\r\n\r\n" + b"[" * 2000,
            rng.randbytes(300),
        ])
        try:
            with socket.create_connection(("127.0.0.1", self.fleet.port), timeout=5) as s:
                s.sendall(text)
                if rng.random() < 0.5:
                    s.settimeout(0.2)
                    s.recv(1000)
        except OSError:
            pass

    def join(self):
        self.is_done = True
        for t in self.threads:
            t.join()
