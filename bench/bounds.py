#!/usr/bin/env python3
"""What the rounds cost in which the server looks for bounds of what is left to gain: statements and their time in a second
(pg_stat_statements), and the processor time of assayd and PostgreSQL, in percent of one processor.

    bench/bounds.py [CASE ...] [--build BUILD] [--seconds S]      CASE: large, many, noisy (all); S: 20

large: one live sweep of 100,000 trials; its first bound, then idle, then with a result in each second
many:  2,000 live sweeps of 20 trials with their bounds kept, idle
noisy: 200 live sweeps of 40 noisy trials that get results all the time, one client

Trials are written by SQL. A build whose round does nothing is what the others are compared with."""
import argparse
import json
import os
import random
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
os.environ["ASSAY_SOURCE_ROOT"] = ROOT

from many_trials import run  # noqa: E402

PART = 20_000  # trials of one transaction
LEVELS = 4  # of a parameter: configurations come again
TRIALS = """
set session_replication_role = replica;
insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, restarts, params, suggestion, seed, value, step, metrics,
    feasible, finish_seq, runner, epoch, claimed_at, created_at, started_at, finished_at)
select s.key, n, 'completed', 'suggested', n, 1, 0, json_build_object({x}'k', n % {levels}, 'm', n / {levels} % {levels}),
    '{{"method": "random"}}', n, v, 0, jsonb_build_object('loss', v), true, n + 1, 'r', 1, now(), now(), now(), now()
from sweep s, generate_series({first}, {last}) n, lateral (select random() + n * 0 as v) x"""
COUNTS = """
set session_replication_role = replica;
update sweep_count set n_total = {n}, n_completed = {n}, n_suggested = {n}, finish_seq = {n};
update sweep_base set started_at = now()"""
KEPT = """
insert into regret_check (sweep_key, completed, seq, bound, enough, scheduled) select key, {n}, {n}, 0.5, true, false from sweep"""


def fill(url, n, due, has_bound, has_noise=False):
    for first in range(0, n, PART):
        run(url, TRIALS.format(x="" if has_noise else "'x', random(), ", levels=LEVELS, first=first, last=min(first + PART, n) - 1))
    run(url, COUNTS.format(n=n), f"update sweep_base set regret_due = {due}", *([KEPT.format(n=n)] if has_bound else []))
    run(url, "vacuum analyze")


def document(name, has_noise):
    levels = {"type": "int", "min": 0, "max": LEVELS - 1}
    parameters = {"k": levels, "m": levels} if has_noise else {"x": {"type": "float", "min": 0, "max": 1}, "k": levels, "m": levels}
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "parameters": parameters,
            "search": {"method": "random", "seed": 1}, "limits": {"max_trials": 900_000}}


def processor_s(pids):
    """Of these processes, with those that they have waited for."""
    total = 0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(int(x) for x in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


STATEMENTS = """
select coalesce(json_object_agg(name, json_build_array(calls, ms)), '{}') from (select case
    when query like 'select s.key, s.n_completed, coalesce(%' and query like '%regret_open%' then 'ended'
    when query like 'select s.key, s.n_completed, %' then 'live' when query like 'select regret_due%' then 'next'
    when query like 'with due as (update sweep_base set regret_due%' then 'keep' else 'others' end as name,
    sum(calls) as calls, round(sum(total_exec_time)::numeric, 1) as ms from pg_stat_statements group by 1) x"""


def measure(assay, url, case, seconds):
    groups = {name: assay.processes(name) for name in ("assayd", "postgres")}
    run(url, "select pg_stat_statements_reset()")
    before, began = {n: processor_s(p) for n, p in groups.items()}, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    statements = {n: [round(c / took, 1), round(ms / took, 2)] for n, (c, ms) in json.loads(run(url, STATEMENTS)).items()}
    print(json.dumps({"case": case, "seconds": round(took, 1),
                      **{f"{n} %": round(100 * (processor_s(p) - before[n]) / took, 2) for n, p in groups.items()},
                      "a second: calls, ms": statements}), flush=True)


def show_largest(url):
    print(run(url, "select round(total_exec_time) as ms, calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 100) from pg_stat_statements "
               "order by total_exec_time desc limit 5"), file=sys.stderr)


def tell_results(assay, sweeps, over, pause_s):
    """One client, sweep after sweep, until `over` is set; how many results are told in a second at most is 1 / pause_s."""
    draw = random.Random(1)
    while not over.is_set():
        sweep = draw.choice(sweeps)
        path = f"/v1/sweeps/{sweep}/suggestions"
        for t in assay.call("POST", path, {"client": "me", "count": 1})["items"]:
            body = {"client": "me", "attempt": t["attempt"], "metrics": {"loss": t["params"]["k"] + draw.gauss(0, 1)}}
            assay.call("POST", f"{path}/{t['number']}/complete", body)
        over.wait(pause_s)


def with_results(assay, url, case, seconds, sweeps, pause_s):
    over = threading.Event()
    client = threading.Thread(target=tell_results, args=(assay, sweeps, over, pause_s))
    client.start()
    time.sleep(3)
    before = int(run(url, "select sum(n_completed) from sweep"))
    measure(assay, url, case, seconds)
    print(json.dumps({"results a second": round((int(run(url, "select sum(n_completed) from sweep")) - before) / seconds, 1)}))
    over.set()
    client.join()


def large(assay, url, seconds, n=100_000):
    sweep = assay.call("POST", "/v1/sweeps", document("large", False))["id"]
    fill(url, n, 2 * n + 1, False)
    measure(assay, url, "large: no bound is kept yet", seconds)
    run(url, f"delete from regret_check; {KEPT.format(n=n)}")
    time.sleep(5)
    measure(assay, url, "large, idle", seconds)
    with_results(assay, url, "large, a result in each second", 2 * seconds, [sweep], 1)


def many(assay, url, seconds):
    for i in range(2000):
        assay.call("POST", "/v1/sweeps", document(f"many-{i}", False))
    fill(url, 20, 21, True)
    time.sleep(5)
    measure(assay, url, "many, idle", seconds)
    show_largest(url)


def noisy(assay, url, seconds):
    sweeps = [assay.call("POST", "/v1/sweeps", document(f"noisy-{i}", True))["id"] for i in range(200)]
    fill(url, 40, 42, True, True)
    time.sleep(5)
    measure(assay, url, "noisy, idle", seconds)
    with_results(assay, url, "noisy, results all the time", 2 * seconds, sweeps, 0)


CASES = {"large": large, "many": many, "noisy": noisy}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--seconds", type=float, default=20)
    given = parser.parse_args()
    os.environ["ASSAY_BUILD_ROOT"] = os.path.abspath(given.build)
    from harness import Assay, database_url
    for case in given.cases or CASES:
        with Assay(runners=0, args=["--database-memory", "128"]) as assay:
            run(database_url(assay), "alter system set shared_preload_libraries = 'pg_stat_statements'")
            assay.stop()
            assay.start()
            url = database_url(assay)
            run(url, "create extension pg_stat_statements")
            CASES[case](assay, url, given.seconds)


if __name__ == "__main__":
    main()
