"""A model of the server for moving.py: what the Python client asks of it, each operation in one step, as one transaction has it.

What stands for what: Sweep.planned is sweep_count.planned, which is max_trials and the known results, and at least the trials
that exist (store/sweep_change_store.c, SWEEP_LIMIT and SWEEP_KNOWN); settle() is sweep_end_of(); ask() with params is trial_begin()
(services/trial_add.c), without them ask_trials(). Left out: constraints, early stopping, several objectives, who asks."""
import copy
import json
import urllib.parse

LIVE = ("queued", "running", "paused")


class Sweep:
    def __init__(self, name, document, is_paused):
        self.id, self.document, self.state = name, document, "paused" if is_paused else "running"
        self.trials, self.known, self.changes, self.keys = [], 0, [], {}
        self.planned = document["limits"]["max_trials"]

    def is_over(self):
        return len(self.trials) >= self.planned and not any(t["state"] in LIVE for t in self.trials)

    def settle(self):
        if self.state in ("running", "paused") and self.is_over():
            self.state = "completed"

    def view(self):
        counts = {state: sum(t["state"] == state for t in self.trials) for state in LIVE + ("completed", "pruned", "failed", "cancelled")}
        return {"id": self.id, "name": self.id, "state": self.state, "document": self.document, "known_trials": self.known,
                "counts": dict(counts, total=len(self.trials)), "metrics": [{"name": "value", "goal": "minimize"}]}

    def made(self):
        return len(self.trials) - self.known

    def held(self, client):
        return [t for t in self.trials if t["state"] == "running" and t["client"] == client]

    def new(self, params, state, **named):
        row = {"number": len(self.trials), "sweep": self.id, "params": params, "state": state, "metrics": {}, "attempt": 0,
               "client": None, "suggestion": {}, "origin": "suggested", "seed": "1", "user_attrs": {}}
        self.trials.append(dict(row, **named))
        return self.trials[-1]


class Server:
    def __init__(self, error, matches, rng):
        """error: AssayError of the client; matches: its _matches(condition, value)."""
        self.error, self.matches, self.rng, self.sweeps = error, matches, rng, {}

    def call(self, method, path, body):
        path, _, query = path.partition("?")
        query, parts = dict(urllib.parse.parse_qsl(query)), [urllib.parse.unquote(p) for p in path.split("/")[3:]]
        return copy.deepcopy(self.answer(method, parts, query, copy.deepcopy(body)))

    def answer(self, method, parts, query, body):
        if not parts:
            return self.create(query, body) if method == "POST" else self.listed(query["tag"])
        if parts[-1] == "user_attrs":
            return {}
        if parts[0] not in self.sweeps:
            raise self.error(f"there is no sweep {parts[0]}", 404)
        sweep = self.sweeps[parts[0]]
        if len(parts) == 1:
            return self.change(sweep, query, body) if method == "PATCH" else sweep.view()
        if parts[1] == "changes":
            return {"items": sweep.changes}
        if parts[1] == "trials" and len(parts) == 3:
            return sweep.trials[int(parts[2])]
        if parts[1] == "trials":
            return self.add(sweep, body) if method == "POST" else {"items": sweep.trials, "next_cursor": None}
        return self.ask(sweep, body) if len(parts) == 2 else self.tell(sweep, sweep.trials[int(parts[2])], parts[3], body)

    def create(self, query, document):
        name, number = document["name"], 1
        while name in self.sweeps:
            if "unique" in query:
                raise self.error("taken", 409, errors=[{"pointer": "/name"}])
            number += 1
            name = f"{document['name']}-{number}"
        self.sweeps[name] = Sweep(name, document, "paused" in query)
        return self.sweeps[name].view()

    def listed(self, tag):
        found = [s.view() for s in self.sweeps.values() if tag in s.document.get("tags", [])]
        return {"items": found[::-1], "next_cursor": None}

    def change(self, sweep, query, body):
        limits, want, what = sweep.document["limits"], body.get("state"), {}
        if query.get("if_state", sweep.state) != sweep.state or int(query.get("if_max_trials", limits["max_trials"])) != limits["max_trials"]:
            raise self.error("nothing was changed", 409)
        if "limits" in body:
            assert body["limits"]["max_trials"] >= 1
            what["max_trials"] = limits["max_trials"] = body["limits"]["max_trials"]
            sweep.planned = max(limits["max_trials"] + sweep.known, len(sweep.trials))
        is_live = sweep.state in ("running", "paused")
        if want == "cancelled" and is_live:
            for t in sweep.trials:
                t["state"] = "cancelled" if t["state"] in LIVE else t["state"]
        elif not is_live and want not in (None, sweep.state):
            raise self.error("it has ended", 409)
        elif want is None and sweep.state == "completed" and not sweep.is_over():
            want = "running"
        if want not in (None, sweep.state):
            what["state"] = sweep.state = want
        sweep.changes.insert(0, {"changes": what})
        sweep.settle()
        return sweep.view()

    def add(self, sweep, rows):
        """Known results."""
        for i, row in enumerate(rows):
            if sweep.keys.get(row["key"], (0, row))[1] != row:
                raise self.error("used", 409, errors=[{"pointer": f"/{i}/key"}])
        if sweep.state == "cancelled" and any(row["key"] not in sweep.keys for row in rows):
            raise self.error("cancelled", 409)
        for row in rows:
            if row["key"] not in sweep.keys:
                sweep.planned, sweep.known = sweep.planned + 1, sweep.known + 1
                made = sweep.new(row["params"], row.get("state", "completed"), metrics=row.get("metrics", {}), origin="known",
                                 suggestion={"method": "known", "key": row["key"]})
                sweep.keys[row["key"]] = made["number"], row
        return {"numbers": [sweep.keys[row["key"]][0] for row in rows]}

    def ask(self, sweep, body):
        client = body["client"]
        if "params" in body and not sweep.held(client) and sweep.state != "paused":
            if sweep.state != "running" or len(sweep.trials) >= sweep.planned:
                raise self.error("it takes no more trials", 409)
            sweep.new(body["params"], "running", attempt=1, client=client)
        while "params" not in body and sweep.state == "running" and len(sweep.held(client)) < body["count"]:
            trial = next((t for t in sweep.trials if t["state"] == "queued"), None)
            if trial is None and len(sweep.trials) < sweep.planned:
                trial = sweep.new(self.drawn(sweep.document["parameters"]), "queued")
            if trial is None:
                break
            trial.update(state="running", attempt=trial["attempt"] + 1, client=client)
        sweep.settle()
        return {"items": sweep.held(client), "state": sweep.state, "done": sweep.state not in ("running", "paused")}

    def waits(self, sweep, client):
        """Would an ask wait? It does while nothing can be handed out."""
        s = self.sweeps.get(sweep)
        return s is not None and (s.state == "paused" or (s.state == "running" and not s.held(client) and len(s.trials) >= s.planned
                                                          and not any(t["state"] == "queued" for t in s.trials)))

    def drawn(self, parameters):
        found = {}
        for name, spec in parameters.items():
            if all(p in found and self.matches(c, found[p]) for p, c in spec.get("when", {}).items()):
                found[name] = (self.rng.choice(spec["values"]) if spec["type"] == "categorical" else
                               self.rng.randint(spec["min"], spec["max"]) if spec["type"] == "int" else
                               self.rng.uniform(spec["min"], spec["max"]))
        return found

    def tell(self, sweep, trial, operation, body):
        told = json.dumps(body, sort_keys=True)
        if (trial["client"], trial["attempt"]) == (body["client"], body["attempt"]) and trial.get("told") == told:
            return trial  # a repeat
        if (trial["client"], trial["attempt"]) != (body["client"], body["attempt"]) or trial["state"] not in ("running", "queued"):
            raise self.error("another attempt", 409, "stale_attempt")
        if operation == "complete":
            outcome = body.get("outcome", "completed")
            trial.update(told=told, state="queued" if outcome == "released" else outcome, metrics=body.get("metrics", {}))
            trial["client"] = None if outcome == "released" else trial["client"]
            sweep.settle()
        return trial
