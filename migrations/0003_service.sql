-- Runners, events, tokens, idempotency keys.
-- Why: who works, who may ask, what happened.
-- Locks: none that anybody could wait for; it only creates.

-- One row per runner is its lease. No index on expires_at: heartbeats then stay in the page (HOT), and
-- reading all runners costs less than keeping such an index.
create table runner (
    name          text primary key check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    epoch         bigint not null check (epoch >= 1),
    state         text not null check (state in ('live', 'lost', 'left')),
    slots         integer not null check (slots between 1 and 1024),
    gpus          json not null,
    host          text,
    version       text,
    registered_at timestamptz not null default now(),
    seen_at       timestamptz not null default now(),
    expires_at    timestamptz not null
) with (fillfactor = 70);

-- id = (writing transaction's id << 20) + its place in the transaction: a reader that stays below the oldest
-- transaction under way sees ids in order and misses none.
create table event (
    id        bigint primary key,
    type      text not null check (type in ('sweep.created', 'sweep.changed', 'trial.changed', 'trial.measured',
                                            'ensemble.ready', 'runner.changed')),
    time      timestamptz not null default clock_timestamp(),
    sweep_key bigint,
    sweep     text,
    number    integer,
    state     text,
    attempt   integer,
    value     double precision,
    reason    text,
    runner    text
);
create index event_sweep on event (sweep_key, id);

create table token (
    id           text primary key check (id ~ '^[a-z0-9]{4,32}$'),
    role         text not null check (role in ('viewer', 'user', 'runner', 'admin')),
    name         text,
    sha256       text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

create table idempotency (
    scope       text not null,
    key         text not null check (length(key) between 1 and 128),
    body_sha256 text not null,
    sweep       text,                               -- what it made
    status      integer,                            -- the answer, once it is known
    body        text,
    location    text,
    created_at  timestamptz not null default now(),
    primary key (scope, key)
);
create index idempotency_age on idempotency (created_at);
