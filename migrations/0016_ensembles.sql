-- Methods of ensembles, and ensembles that users ask for after the end of a sweep.
-- Why: greedy selection is one of several ways to combine models; another one should need no new sweep.
-- Locks: sweep exclusively and briefly; the new columns have constant defaults, so no row is written. A server of the version
-- before may go on: it makes the ensembles of sweeps by greedy selection, and does not know ensembles that are asked for.

alter table sweep
    add column ensemble_method       text not null default 'greedy'
        check (ensemble_method in ('greedy', 'stacking', 'average', 'bucketing')),
    add column ensemble_non_negative boolean not null default false;

create table ensemble_asked (
    key         bigint generated always as identity primary key,
    sweep_key   bigint not null references sweep on delete cascade,     -- the first of its sweeps, which it belongs to
    number      integer not null check (number > 0),                    -- 1, 2, … within the sweep
    request     text not null,                                          -- JSON: method, size, non_negative?, sweeps
    ends        text not null,                                          -- finish_seq of each sweep: a sweep that ran on is another
    state       text not null default 'pending' check (state in ('pending', 'ready', 'none')),
    result      json,                                                   -- the API's object
    lease_until timestamptz,                                            -- somebody computes it until then
    created_at  timestamptz not null default now(),
    unique (sweep_key, number),
    unique (sweep_key, request, ends),
    constraint ensemble_asked_done check ((state = 'pending') = (result is null))
);
create index ensemble_asked_pending on ensemble_asked (key) where state = 'pending';
