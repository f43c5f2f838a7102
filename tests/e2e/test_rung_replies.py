#!/usr/bin/env python3
"""What is lost or damaged between the programs at a rung of early stopping: the answer that carries a decision, the answer
to the end of a paused attempt, the database's answer to the commit of a decision; a measurement that two servers decide
about at once; a kept checkpoint whose content was damaged in the database. Each sweep ends with the results, decisions
and promotions in the order that the sweep without a fault has (rung_sweep.py).

A planted fault shows that the comparison can fail: a decision that the database forgets.

The runner speaks to both servers through a proxy, and the second server to PostgreSQL through another one
(tests/chaos/proxy.c)."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.parse

from harness import BUILD, LONG_LEASE, PATIENCE_S, SOURCE, Assay, database_url, second_server, skip
from rung_sweep import ARGS, answer, await_decision, check_same, go, order, own_runner, run, trial_of

sys.path.insert(0, os.path.join(SOURCE, "tests", "chaos"))
from fleet import Proxy  # noqa: E402

RESUMED = 0.2  # it pauses at the first rung, and 0.9 lets it go on


class World:
    """The programs, and the ways between them."""

    def __init__(self, assay, other, http, database):
        self.assay, self.http, self.database = assay, http, database
        self.urls = [assay.url, other]
        self.ports = [url.rsplit(":", 1)[1] for url in self.urls]
        self.cluster = urllib.parse.unquote(database_url(assay).rsplit("host=", 1)[1])
        self.runner = self.start_runner = None  # start_runner(name) sets the first

    def route(self, *servers):
        """Which servers the runner speaks to: 0 is that of `assay up`, 1 the second one."""
        self.http.command("to " + " ".join("tcp:" + self.ports[i] for i in servers))
        self.http.command("cut")

    def psql(self, text):
        done = subprocess.run(["psql", "-h", self.cluster, "-U", "assay", "-d", "assay", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c",
                               text], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextlib.contextmanager
    def held(self, text):
        """A transaction that has run the statement and does nothing."""
        client = subprocess.Popen(["psql", "-h", self.cluster, "-U", "assay", "-d", "assay", "-Xq"], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, text=True)
        try:
            client.stdin.write(f"begin; {text};\n")
            client.stdin.flush()
            self.assay.wait(lambda: self.psql("select count(*) from pg_stat_activity where state = 'idle in transaction' and "
                                              "application_name = 'psql'") == "1", "the transaction")
            yield
        finally:
            client.stdin.close()
            client.wait()

    def await_waiting(self, n):
        """So many transactions wait for a row."""
        self.assay.wait(lambda: int(self.psql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "
                                              "application_name like 'assayd%'")) >= n, f"{n} that wait for the sweep")


@contextlib.contextmanager
def losing(assay, proxy):
    """Every marked request that begins meanwhile loses its answer; there is at least one."""
    before = proxy.count_dropped()
    proxy.command("drop 1000000")
    try:
        yield
    finally:
        proxy.command("drop 0")
    assay.wait(lambda: proxy.count_dropped() > before, "an answer to be lost")


class LostAnswer:
    """The answer to the measurement never arrives; that of its repetitions neither, until the decision is stored."""
    x, step = 0.5, 1  # all but 0.1 pause at the first rung

    def __init__(self, world):
        self.world = world

    def strike(self, assay, sweep, folder):
        with losing(assay, self.world.http):
            go(self, folder)
            await_decision(assay, sweep, self.x, self.step)


class LostEnd(LostAnswer):
    """The answer to the end of the attempt that pauses."""
    x = 0.7

    def strike(self, assay, sweep, folder):
        go(self, folder)
        await_decision(assay, sweep, self.x, self.step)
        with losing(assay, self.world.http):
            answer(assay, sweep, folder)
            assay.wait(lambda: trial_of(assay, sweep, self.x)["state"] == "paused", "the trial to wait")


class LostCommit(LostAnswer):
    """The server that decided does not know whether its decision was committed."""
    x = 0.6

    def strike(self, assay, sweep, folder):
        self.world.route(1)
        with losing(assay, self.world.database):
            go(self, folder)
            await_decision(assay, sweep, self.x, self.step)
        self.world.route(0)


class BothDecide(LostAnswer):
    """The first server has the measurement and waits for the row of the sweep when the runner loses it and asks the
    second one, which waits, too."""
    x = RESUMED

    def strike(self, assay, sweep, folder):
        self.world.route(0)
        with self.world.held(f"select from sweep where id = '{sweep}' for update"):
            go(self, folder)
            self.world.await_waiting(1)
            self.world.route(1)
            self.world.await_waiting(2)
        await_decision(assay, sweep, self.x, self.step)
        self.world.route(0)


class Damaged(LostAnswer):
    """The content of the checkpoint is cut short in the database, and the runner does not have it any more."""
    x = 0.9

    def strike(self, assay, sweep, folder):
        t = trial_of(assay, sweep, RESUMED)
        assert t["state"] == "paused" and not t["rungs"][0]["promoted_seq"], t
        cut = self.world.psql("update blob_chunk c set content = substr(content, 1, octet_length(content) / 2) from "
                              f"trial_file f join sweep s on s.key = f.sweep_key where s.id = '{sweep}' and f.number = "
                              f"{t['number']} and f.kind = 'checkpoint' and c.sha256 = f.sha256 returning c.sha256")
        assert cut, "the trial has no checkpoint"
        shutil.rmtree(self.world.runner.cache)
        go(self, folder)

    @staticmethod
    def check(assay, trials):
        t = next(t for t in trials if t["params"]["x"] == RESUMED)
        text = assay.call("GET", f"/v1/sweeps/{t['sweep']}/trials/{t['number']}/log")["text"]
        assert "its checkpoint is lost" in text and "begins after 0" in text, text
        assert t["restarts"] == 0, t


def check_replies(world, expected):
    """Each fault strikes another trial of one sweep; a name on the command line strikes alone."""
    cases = {"answer": LostAnswer, "end": LostEnd, "commit": LostCommit, "both": BothDecide, "damaged": Damaged}
    faults = [kind(world) for name, kind in cases.items() if sys.argv[1:] in ([], [name])]
    trials = run(world.assay, "replies", faults)
    assert all(t["restarts"] == 0 for t in trials), trials
    check_same("replies", trials, expected)
    if any(isinstance(f, Damaged) for f in faults):
        Damaged.check(world.assay, trials)


def check_clients(world):
    """Two servers decide about different trials of one rung at the same time: the ranks follow the stored order, and
    every decision can be made again from it."""
    assay, n = world.assay, 24
    name = assay.call("POST", "/v1/sweeps", {
        "name": "clients", "metric": {"name": "loss", "goal": "minimize"}, "ensemble": False,
        "parameters": {"x": {"type": "float", "min": 0, "max": 1}}, "search": {"method": "random", "seed": 4},
        "limits": {"max_trials": n},
        "early_stopping": {"method": "asha", "min_steps": 1, "max_steps": 9, "eta": 3, "mode": "stop"}})["id"]
    asked = assay.call("POST", f"/v1/sweeps/{name}/suggestions", {"client": "me", "count": n, "wait_ms": 10000})["items"]
    assert len(asked) == n, len(asked)
    start, failures = threading.Barrier(2), []

    def tell(url, trials):
        client = Client(assay, url)
        try:
            for step in (1, 3, 9):
                start.wait(PATIENCE_S)
                trials = [t for t in trials if client.goes_on(name, t, step)]
            for t in trials:
                client.post(f"/v1/sweeps/{name}/suggestions/{t['number']}/complete", {"client": "me"})
        except BaseException as e:  # of a thread: raised below
            failures.append(e)
            start.abort()

    threads = [threading.Thread(target=tell, args=(url, asked[i::2])) for i, url in enumerate(world.urls)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    assert assay.wait_ended(name)["state"] == "completed"
    rows = assay.trials(name)
    results = sorted((r["seq"], t["number"] % 2) for t in rows for r in t["rungs"])
    assert len({server for _, server in results[:n]}) == 2, results
    order(rows)
    said = json.loads(assay.cli("replay", name, "--json").stdout)
    assert said["decisions"] == said["decisions_same"] == len(results), said


class Client:
    """Asks and tells at one server."""

    def __init__(self, assay, url):
        self.assay, self.url = assay, url

    def post(self, path, body):
        like = Assay.__new__(Assay)
        like.url, like.token = self.url, self.assay.token
        return like.call("POST", path, body)

    def goes_on(self, sweep, trial, step):
        path = f"/v1/sweeps/{sweep}/suggestions/{trial['number']}"
        said = self.post(f"{path}/measurements", {"client": "me", "items": [{"step": step, "metrics": {"loss": trial["params"]["x"]}}]})
        if not said["directives"]:
            return True
        self.post(f"{path}/complete", {"client": "me", "outcome": "pruned"})
        return False


class Forgotten(LostAnswer):
    """The database forgets the decision, and the runner is killed: the trial begins again."""
    x = 0.7

    def strike(self, assay, sweep, folder):
        go(self, folder)
        await_decision(assay, sweep, self.x, self.step)
        n = trial_of(assay, sweep, self.x)["number"]
        self.world.psql("update trial t set decision = null from sweep s where s.key = t.sweep_key and "
                        f"s.id = '{sweep}' and t.number = {n}")
        self.world.runner.kill()
        self.world.runner.wait()
        self.world.start_runner("r2")


def check_planted(world, expected):
    found = order(run(world.assay, "planted", [Forgotten(world)], {"PATIENCE": "2"}))
    assert found != expected, "a decision that was forgotten is not found"
    print("planted: found", flush=True)


@contextlib.contextmanager
def world_of(args):
    """An installation, its second server and its runner, which speak through the proxies."""
    with Assay(runners=0, args=args) as assay, proxies(assay, args) as world, contextlib.ExitStack() as stack:
        world.start_runner = lambda name: setattr(world, "runner", stack.enter_context(
            own_runner(assay, name, server="http://127.0.0.1:" + world.http.address.split(":")[1])))
        world.start_runner("r1")
        yield world


@contextlib.contextmanager
def proxies(assay, args):
    program = os.path.join(BUILD, "tests", "chaos", "chaos_proxy")
    place = os.path.join(assay.data, "db")
    os.mkdir(place)
    home = urllib.parse.unquote(database_url(assay).rsplit("host=", 1)[1])
    with open(os.path.join(assay.data, "logs", "proxies.log"), "ab") as log:
        database = Proxy(program, f"unix:{place}/.s.PGSQL.5432", "; commit;|pg_logical_emit_message", f"unix:{home}/.s.PGSQL.5432", log)
        http = Proxy(program, "tcp:0", "/batch|/measurements|/complete", "tcp:" + assay.url.rsplit(":", 1)[1], log)
        try:
            with second_server(assay, *args, database=f"postgresql:///assay?user=assay&host={place}") as other:
                yield World(assay, other, http, database)
        finally:
            http.end()
            database.end()


def main():
    if not shutil.which("psql"):
        skip("psql is not installed")
    with world_of(LONG_LEASE) as world:  # nobody is lost here because a machine is slow
        expected = order(run(world.assay, "whole"))
        print(*expected, sep="\n", flush=True)
        check_replies(world, expected)
        check_clients(world)
    with world_of(ARGS) as world:  # a runner that was killed is missed after its lease
        check_planted(world, expected)


main()
