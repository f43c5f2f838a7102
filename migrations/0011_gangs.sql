-- Gangs: one trial over many runners. The ranks of an attempt hold seats; a world is the members of an epoch.
-- Why: an attempt belonged to one runner. Now a third kind of holder is a gang, whose seats are rows of their own, and
-- `held` is the one place that knows everything a runner holds. Seats that a gang gathers before it begins are only
-- reservations: no trial is made for them.
-- Locks: sweep, trial, attempt, runner and event exclusively and briefly; new columns have constant defaults, so no row
-- is written, but the checks read trial, attempt and event once. A server of the version before would hand trials of
-- sweeps with ranks above 1 to single runners: stop it before the first such sweep is created.

alter table sweep
    add column gang      boolean not null default false,        -- each trial is a gang's; a gang may have one rank
    add column ranks     integer not null default 1 check (ranks between 1 and 4096),
    add column min_ranks integer not null default 1,
    add column elastic   boolean not null default false,        -- the world may change while the trial goes on
    add column launch    text not null default 'all' check (launch in ('all', 'first')),
    add column gang_at   timestamptz,                           -- when its latest gang began: gangs take turns
    add constraint sweep_min_ranks check (min_ranks between 1 and ranks),
    add constraint sweep_ranks check (gang or ranks = 1),
    add constraint sweep_gang check (not gang or max_group is null);

alter table runner add column takes_seats boolean not null default false;   -- its latest claim offered to hold ranks

alter table trial
    add column gang boolean not null default false,             -- the latest attempt is a gang's
    drop constraint trial_held,
    add constraint trial_held check (state <> 'running' or (attempt >= 1 and claimed_at is not null and started_at is not null
        and (runner is not null) = (epoch is not null) and (runner is not null)::int + (client is not null)::int + gang::int = 1));

alter table attempt
    add column gang boolean not null default false,
    drop constraint attempt_holder,
    add constraint attempt_holder check ((runner is not null) = (epoch is not null) and (runner is not null) = (claim_id is not null)
        and (runner is not null)::int + (client is not null)::int + gang::int = 1);

-- The gang of an attempt. Epoch 0: not all ranks listen yet.
create table gang (
    id            bigint generated always as identity unique,
    sweep_key     bigint not null,
    number        integer not null,
    attempt       integer not null,
    ranks         integer not null check (ranks >= 1),
    min_ranks     integer not null,
    elastic       boolean not null,
    launch        text not null,
    secret        text not null check (secret ~ '^[0-9a-f]{64}$'),
    state         text not null default 'gathering' check (state in ('gathering', 'running', 'waiting', 'over')),
    epoch         integer not null default 0 check (epoch >= 0),
    next_seat     integer not null check (next_seat >= ranks),
    has_joined    boolean not null default false,               -- some rank was connected: there is state to lose
    is_ending     boolean not null default false,               -- a rank has completed: no seat is offered any more
    step          bigint check (step >= 0),                     -- the highest that a rank has reached
    deaths        integer not null default 0 check (deaths >= 0),
    idle_deaths   integer not null default 0 check (idle_deaths between 0 and deaths),  -- in a row, at the same step
    begun_at      timestamptz not null default clock_timestamp(),
    started_at    timestamptz,                                  -- of epoch 1
    changed_at    timestamptz not null default clock_timestamp(),   -- of the state
    progressed_at timestamptz not null default clock_timestamp(),   -- of the step
    primary key (sweep_key, number, attempt),
    foreign key (sweep_key, number, attempt) references attempt on delete cascade,
    constraint gang_min_ranks check (min_ranks between 1 and ranks),
    constraint gang_started check ((epoch = 0) = (started_at is null)),
    constraint gang_gathers check (state = 'over' or (state = 'gathering') = (epoch = 0))
) with (fillfactor = 70);
create index gang_live on gang (sweep_key) where state <> 'over';

create table gang_seat (
    sweep_key    bigint not null,
    number       integer not null,
    attempt      integer not null,
    seat         integer not null check (seat >= 0),
    runner       text not null,
    epoch        bigint not null,                               -- of the runner
    host         text,
    secret       text,                                          -- what its runner must show, as in attempt
    claim_id     text,                                          -- that told the runner; null: it does not know of it yet
    state        text not null default 'seated'
                 check (state in ('seated', 'listening', 'running', 'left', 'lost', 'ended')),
    is_member    boolean not null default false,                -- of the current epoch
    endpoint     text,
    address      text,
    port         integer check (port between 1 and 65535),
    joined_epoch integer check (joined_epoch >= 1),             -- the latest epoch in which it was connected to all
    step         bigint check (step >= 0),
    sent_bytes   bigint not null default 0 check (sent_bytes >= 0),
    phase        text check (phase in ('preparing', 'running', 'ended')),
    ran_ms       bigint check (ran_ms >= 0),
    missing      integer not null default 0 check (missing >= 0),   -- heartbeats in a row that did not list it
    seated_at    timestamptz not null default clock_timestamp(),
    since        timestamptz not null default clock_timestamp(),    -- of the state
    ended_at     timestamptz,
    outcome      text check (outcome in ('completed', 'failed', 'retry', 'released', 'timeout')),   -- what its runner said
    exit_code    integer,
    reason       text,
    primary key (sweep_key, number, attempt, seat),
    foreign key (sweep_key, number, attempt) references gang on delete cascade,
    constraint gang_seat_ended check ((state in ('left', 'lost', 'ended')) = (ended_at is not null)),
    constraint gang_seat_address check ((endpoint is null) = (port is null) and (endpoint is null) = (address is null)),
    constraint gang_seat_listens check (state not in ('listening', 'running') or endpoint is not null)
) with (fillfactor = 70);
create index gang_seat_runner on gang_seat (runner) where state in ('seated', 'listening', 'running');
create index gang_seat_waits on gang_seat (seated_at) where state = 'seated' and claim_id is null;

-- The one gang that gathers. Exactly one row; sweep_key null: none gathers.
create table gathering (
    one         boolean primary key default true check (one),
    sweep_key   bigint references sweep on delete set null,
    changed_at  timestamptz not null default clock_timestamp(),     -- it began, or a seat lapsed
    progress_at timestamptz not null default clock_timestamp(),     -- a seat was taken
    idle_at     timestamptz not null default clock_timestamp()      -- when the one before ended
);
insert into gathering default values;

-- A slot that is kept free for the gathering gang.
create table gathering_seat (
    place    bigint generated always as identity primary key,
    runner   text not null,
    epoch    bigint not null,
    until_at timestamptz not null
);
create index gathering_seat_runner on gathering_seat (runner);

-- What runners hold: attempts, ranks, and slots that are kept free for the gathering gang (sweep_key is null).
create view held as
    select runner, epoch, sweep_key, number, attempt, null::integer as seat, group_id from trial
    where state = 'running' and runner is not null
    union all
    select runner, epoch, sweep_key, number, attempt, seat, null from gang_seat
    where state in ('seated', 'listening', 'running')
    union all
    select runner, epoch, null, null, null, null, null from gathering_seat
    where until_at > now() and exists (select from gathering where sweep_key is not null);

-- How many ranks with so many GPUs each the live runners could hold, if nothing else ran.
create function seats_of_runners(gpus_each integer) returns bigint language sql stable as $$
    select coalesce(sum(case when gpus_each = 0 then slots else least(slots,
        greatest(0, json_array_length(gpus) - json_array_length(gpu_faults)) / gpus_each) end), 0)
    from runner where state = 'live' and expires_at > clock_timestamp() and takes_seats
$$;

alter table event
    drop constraint event_type_check,
    add constraint event_type_check check (type in ('sweep.created', 'sweep.changed', 'trial.changed', 'trial.measured',
        'ensemble.ready', 'runner.changed', 'gang.changed')),
    add column epoch integer,
    add column seat  integer;
