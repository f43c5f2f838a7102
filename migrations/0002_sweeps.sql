-- Sweeps, trials and what they leave.
-- Why: the heart of the service; the checks hold what the code must never break.
-- Locks: none that anybody could wait for; it only creates.

create table sweep (
    key              bigint generated always as identity primary key,
    id               text not null unique check (length(id) <= 80),
    name             text not null check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    state            text not null default 'running'
                     check (state in ('running', 'paused', 'finishing', 'completed', 'failed', 'cancelled')),
    reason           text,
    document         json not null,                 -- json, not jsonb: the order of parameters is part of the search
    metric           text not null,
    goal             text not null check (goal in ('minimize', 'maximize')),
    method           text not null,
    seed             bigint not null check (seed >= 0),
    planned          integer not null check (planned >= 1),
    max_concurrent   integer check (max_concurrent >= 1),
    max_failed       integer check (max_failed >= 0),
    max_restarts     integer not null check (max_restarts >= 0),
    trial_timeout_ms bigint check (trial_timeout_ms > 0),
    wall_time_ms     bigint check (wall_time_ms > 0),
    grace_ms         bigint not null check (grace_ms >= 0),
    gpus             integer not null default 0 check (gpus >= 0),
    ensemble_size    integer not null default 0 check (ensemble_size between 0 and 100),
    -- Trials by state, kept by the trigger trial_counted below.
    n_total          integer not null default 0,
    n_queued         integer not null default 0 check (n_queued >= 0),
    n_running        integer not null default 0 check (n_running >= 0),
    n_paused         integer not null default 0 check (n_paused >= 0),
    n_completed      integer not null default 0 check (n_completed >= 0),
    n_pruned         integer not null default 0 check (n_pruned >= 0),
    n_failed         integer not null default 0 check (n_failed >= 0),
    n_cancelled      integer not null default 0 check (n_cancelled >= 0),
    created_at       timestamptz not null default now(),
    started_at       timestamptz,
    finished_at      timestamptz,
    constraint sweep_budget check (n_total <= planned),
    constraint sweep_counts check (n_total = n_queued + n_running + n_paused + n_completed + n_pruned + n_failed + n_cancelled),
    constraint sweep_ended check ((state in ('completed', 'failed', 'cancelled')) = (finished_at is not null)),
    -- The code ends the trials first, so this holds after every statement.
    constraint sweep_idle check (state in ('running', 'paused') or (n_queued = 0 and n_running = 0 and n_paused = 0))
) with (fillfactor = 70);
create index sweep_live on sweep (key) where state in ('running', 'paused', 'finishing');

-- Which data sets the trials of a sweep may name.
create table sweep_dataset (
    sweep_key bigint not null references sweep on delete cascade,
    dataset   text not null,
    primary key (sweep_key, dataset)
);
create index sweep_dataset_name on sweep_dataset (dataset);

create table trial (
    sweep_key   bigint not null references sweep on delete cascade,
    number      integer not null check (number >= 0),
    state       text not null
                check (state in ('queued', 'running', 'paused', 'completed', 'pruned', 'failed', 'cancelled')),
    attempt     integer not null default 0 check (attempt >= 0),    -- the fencing token; only a claim raises it
    restarts    integer not null default 0 check (restarts >= 0),
    params      json not null,
    suggestion  json not null,
    seed        bigint not null check (seed >= 0),
    value       double precision,                   -- the sweep's metric, latest
    step        bigint,
    metrics     jsonb not null default '{}',        -- the latest of every metric
    runner      text,                               -- of the latest attempt
    epoch       bigint,
    claimed_at  timestamptz,
    missing     integer not null default 0 check (missing >= 0),    -- heartbeats in a row that did not list it
    reason      text,
    created_at  timestamptz not null default now(),
    started_at  timestamptz,
    finished_at timestamptz,
    primary key (sweep_key, number),
    constraint trial_held check (state <> 'running' or (runner is not null and epoch is not null and attempt >= 1
                                                        and claimed_at is not null and started_at is not null)),
    constraint trial_ended check ((state in ('completed', 'pruned', 'failed', 'cancelled')) = (finished_at is not null)),
    -- NaN is above every other number here, so this refuses it too.
    constraint trial_valued check (state <> 'completed' or (value is not null and value > '-Infinity' and value < 'Infinity'))
) with (fillfactor = 70);
create index trial_queue on trial (sweep_key, number) where state = 'queued';
create index trial_runner on trial (runner) where state = 'running';
create index trial_best on trial (sweep_key, value) where state = 'completed';

-- Keeps the counts of sweep, so that no code path can forget them. The writer holds the sweep's row already.
create function trial_counted() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        update sweep set n_total = n_total + 1,
            n_queued = n_queued + (new.state = 'queued')::int, n_running = n_running + (new.state = 'running')::int,
            n_paused = n_paused + (new.state = 'paused')::int, n_completed = n_completed + (new.state = 'completed')::int,
            n_pruned = n_pruned + (new.state = 'pruned')::int, n_failed = n_failed + (new.state = 'failed')::int,
            n_cancelled = n_cancelled + (new.state = 'cancelled')::int
        where key = new.sweep_key;
    else
        update sweep set
            n_queued = n_queued + (new.state = 'queued')::int - (old.state = 'queued')::int,
            n_running = n_running + (new.state = 'running')::int - (old.state = 'running')::int,
            n_paused = n_paused + (new.state = 'paused')::int - (old.state = 'paused')::int,
            n_completed = n_completed + (new.state = 'completed')::int - (old.state = 'completed')::int,
            n_pruned = n_pruned + (new.state = 'pruned')::int - (old.state = 'pruned')::int,
            n_failed = n_failed + (new.state = 'failed')::int - (old.state = 'failed')::int,
            n_cancelled = n_cancelled + (new.state = 'cancelled')::int - (old.state = 'cancelled')::int
        where key = new.sweep_key;
    end if;
    return null;
end $$;
create trigger trial_counted_insert after insert on trial for each row execute function trial_counted();
create trigger trial_counted_update after update of state on trial for each row
    when (old.state is distinct from new.state) execute function trial_counted();

create table attempt (
    sweep_key  bigint not null,
    number     integer not null,
    attempt    integer not null check (attempt >= 1),
    runner     text not null,
    epoch      bigint not null,
    claim_id   text not null,
    started_at timestamptz not null default now(),
    ended_at   timestamptz,
    outcome    text check (outcome in ('completed', 'failed', 'retry', 'released', 'lost', 'cancelled', 'timeout')),
    reported   text,                                -- what the runner said at its end: a repeat must say the same
    reason     text,
    exit_code  integer,
    primary key (sweep_key, number, attempt),
    foreign key (sweep_key, number) references trial on delete cascade,
    constraint attempt_ended check ((outcome is null) = (ended_at is null))
) with (fillfactor = 70);
create unique index attempt_open on attempt (sweep_key, number) where ended_at is null;
create index attempt_claim on attempt (runner, claim_id);

-- No foreign key: its check would cost more than the row. Writers hold the trial's row; a sweep's go with it.
create table measurement (
    sweep_key bigint not null,
    number    integer not null,
    metric    text not null,
    attempt   integer not null,
    step      bigint not null check (step >= 0),
    value     double precision not null,
    primary key (sweep_key, number, metric, attempt, step)
);

create table trial_log (
    sweep_key  bigint not null,
    number     integer not null,
    attempt    integer not null,
    text       text not null,
    truncated  boolean not null,
    updated_at timestamptz not null default now(),
    primary key (sweep_key, number, attempt),
    foreign key (sweep_key, number, attempt) references attempt on delete cascade
) with (fillfactor = 70);

create table trial_file (
    sweep_key bigint not null,
    number    integer not null,
    kind      text not null check (kind in ('artifact', 'checkpoint')),
    path      text not null check (length(path) between 1 and 255),
    size      bigint not null check (size >= 0),
    sha256    text not null references blob,
    primary key (sweep_key, number, kind, path),
    foreign key (sweep_key, number) references trial on delete cascade
);
create index trial_file_blob on trial_file (sha256);

create table ensemble (
    sweep_key   bigint primary key references sweep on delete cascade,
    state       text not null default 'pending' check (state in ('pending', 'ready', 'none')),
    result      json,                               -- the API's object
    lease_until timestamptz,                        -- somebody computes it until then
    constraint ensemble_done check ((state = 'pending') = (result is null))
);
