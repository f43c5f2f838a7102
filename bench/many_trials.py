"""A sweep of many completed trials, with 8 parameters (5 floats, 1 int, 2 categories) and 3 metrics, for bench/table.py,
bench/dashboard.py and bench/routes.py. The trials are written into the database by SQL, as no runner could run them in
this time; with points, they have what a trial that ran leaves behind: an attempt, a chunk of points, an event."""
import json
import subprocess

FLOATS = ["lr", "momentum", "decay", "dropout", "gamma"]
PART = 50_000  # trials of one transaction
POINTS_MOST = 64  # of a trial: one chunk

TRIALS = """
insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, restarts, params, suggestion, seed, value,
    step, metrics, feasible, finish_seq, runner, epoch, claimed_at, created_at, started_at, finished_at)
select s.key, n, 'completed', 'suggested', n, 1, 0,
    json_build_object({floats}, 'layers', 1 + n % 8, 'kind', (array['adam', 'sgd', 'lion'])[1 + n % 3],
        'norm', (array['batch', 'layer'])[1 + n % 2]), '{{"method": "random"}}', n, v, 100,
    jsonb_build_object('loss', v, 'accuracy', 1 - v, 'seconds', random() * 100), true, n + 1, 'r' || n % 50, 1, began, made, began,
    made + n * interval '10 ms'
from sweep s, generate_series({first}, {last}) n, lateral (select random() + n * 0 as v) x, lateral (select
    now() - interval '1 day' + n * interval '20 ms' as made, now() - interval '1 day' + n * interval '25 ms' as began) y
where s.id = '{sweep}'"""

ATTEMPTS = """
insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id, started_at, ended_at, outcome, reported, exit_code)
select t.sweep_key, t.number, 1, t.runner, 1, 'c' || t.number, t.started_at, t.finished_at, 'completed', 'completed', 0
from trial t join sweep s on s.key = t.sweep_key where s.id = '{sweep}' and t.number between {first} and {last}"""

CHUNKS = """
insert into measurement_chunk (sweep_key, number, metric, attempt, first_step, steps, measured, recorded)
select t.sweep_key, t.number, 'loss', 1, 1, p.steps, p.measured, p.recorded
from trial t join sweep s on s.key = t.sweep_key cross join lateral (select array_agg(k::bigint) as steps,
    array_agg(1 / (1.0 + k) + t.value * 0.1) as measured,
    array_agg((extract(epoch from t.started_at) * 1000000)::bigint + k * 1000000) as recorded
    from generate_series(1, {points}) k) p
where s.id = '{sweep}' and t.number between {first} and {last}"""

EVENTS = """
insert into event_set (id, first, type, sweep_key, sweep, number, state, attempt, value, reason, runner)
select x.first + cardinality(x.number) - 1, x.first, 'trial.changed', x.key, '{sweep}', x.number, x.state, x.attempt, x.value, x.reason,
    x.runner
from (select s.key, (pg_current_xact_id()::text::bigint << 20) + min(t.number) - {first} as first, array_agg(t.number) as number,
    array_agg(t.state::text) as state, array_agg(1) as attempt, array_agg(t.value) as value, array_agg(t.reason) as reason,
    array_agg(t.runner) as runner
    from trial t join sweep s on s.key = t.sweep_key where s.id = '{sweep}' and t.number between {first} and {last}
    group by s.key, t.number / 50) x"""


def document(name, most):
    """Of a sweep that `most` trials end."""
    one = {"type": "float", "min": 0, "max": 1}
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "search": {"method": "random", "seed": 1},
            "parameters": {**{f: one for f in FLOATS}, "layers": {"type": "int", "min": 1, "max": 8},
                           "kind": {"type": "categorical", "values": ["adam", "sgd", "lion"]},
                           "norm": {"type": "categorical", "values": ["batch", "layer"]}},
            "limits": {"max_trials": min(most, 1_000_000)}}


def run(database, *commands):
    """What they print."""
    return subprocess.run(["psql", "-Atq", "-v", "ON_ERROR_STOP=1", database, *(word for c in commands for word in ("-c", c))], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def fill(database, sweep, trials, points=0):
    """Write the trials into the sweep, which has none, each with so many points; then analyse the tables, as autovacuum
    would. No bound of what is left to gain is due: a sweep that grew has had its bounds one by one, and this one would
    have the server read all of it while it is measured."""
    if points > POINTS_MOST:
        raise ValueError(f"points: {points}, at most {POINTS_MOST}")
    floats = ", ".join(f"'{name}', random()" for name in FLOATS)
    statements = [TRIALS, *([ATTEMPTS, CHUNKS, EVENTS] if points else [])]
    for first in range(0, trials, PART):
        last = min(first + PART, trials) - 1
        part = ";".join(s.format(floats=floats, first=first, last=last, sweep=sweep, points=points) for s in statements)
        run(database, f"begin; {part}; commit")
    bound = f"insert into regret_check (sweep_key, completed, seq, enough) select key, {trials}, {trials}, false from sweep where id = '{sweep}'"
    run(database, f"{bound}; update sweep_base set regret_due = {2 * trials + 1} where id = '{sweep}'", "vacuum analyze")


SIZES = """
select json_object_agg(relname, json_build_array(pg_table_size(oid), pg_indexes_size(oid)))
from (select oid, relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    order by pg_total_relation_size(oid) desc limit 6) largest"""


def sizes(database):
    """Bytes of the largest tables, and of their indexes, by name."""
    return json.loads(run(database, SIZES))
