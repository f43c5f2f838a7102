"""A sweep of many completed trials, with 8 parameters (5 floats, 1 int, 2 categories) and 3 metrics, for bench/table.py and
bench/dashboard.py. The trials are written into the database by SQL, as no runner could run them in this time."""
import subprocess

FLOATS = ["lr", "momentum", "decay", "dropout", "gamma"]

FILL = """
insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, restarts, params, suggestion, seed, value,
    step, metrics, feasible, finish_seq, created_at, started_at, finished_at)
select s.key, n, 'completed', 'suggested', n, 1, 0,
    json_build_object({floats}, 'layers', 1 + n % 8, 'kind', (array['adam', 'sgd', 'lion'])[1 + n % 3],
        'norm', (array['batch', 'layer'])[1 + n % 2]), '{{"method": "random"}}', n, v, 100,
    jsonb_build_object('loss', v, 'accuracy', 1 - v, 'seconds', random() * 100), true, n + 1,
    now() - interval '1 day' + n * interval '20 ms', now() - interval '1 day' + n * interval '25 ms',
    now() - interval '1 day' + n * interval '30 ms'
from sweep s, generate_series(0, {trials} - 1) n, lateral (select random() + n * 0 as v) x where s.id = '{sweep}'"""


def document(name, most):
    """Of a sweep that `most` trials end."""
    one = {"type": "float", "min": 0, "max": 1}
    return {"name": name, "metric": {"name": "loss", "goal": "minimize"}, "search": {"method": "random", "seed": 1},
            "parameters": {**{f: one for f in FLOATS}, "layers": {"type": "int", "min": 1, "max": 8},
                           "kind": {"type": "categorical", "values": ["adam", "sgd", "lion"]},
                           "norm": {"type": "categorical", "values": ["batch", "layer"]}},
            "limits": {"max_trials": min(most, 1_000_000)}}


def fill(database, sweep, trials, *more):
    """Write the trials into the sweep, which has none; then run `more`, statements."""
    floats = ", ".join(f"'{name}', random()" for name in FLOATS)
    commands = [FILL.format(floats=floats, trials=trials, sweep=sweep), *more, "analyze"]
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", database, *(word for c in commands for word in ("-c", c))], check=True)
