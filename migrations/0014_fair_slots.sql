-- Fair slots: priorities, turns, and what a trial needs of its machine.
-- Why: of sweeps of equal priority that hold equally many slots, the one served least goes first; a trial
-- may need cores, memory or a whole machine, so runners say what they have, and a trial that fits in a runner but not in
-- what is free there may close it to later ones (runner_wait).
-- Locks: sweep and runner exclusively and briefly; new columns have constant defaults, so no row is written. A server of the
-- version before may go on: it hands out trials by the older order, and trials with needs as if they had none.

create sequence sweep_served;
alter table sweep
    add column priority     integer not null default 0 check (priority between -100 and 100),
    add column turns        bigint not null default 0,          -- kept by the triggers trial_counted…, as the next
    add column served       bigint not null default 0,          -- the place of its latest turn in the order of all
    add column cpus         integer not null default 0 check (cpus >= 0),           -- of each trial or rank; 0: not said
    add column memory_bytes bigint not null default 0 check (memory_bytes >= 0),    -- the same
    add column exclusive    boolean not null default false,     -- nothing else runs on its machine
    add constraint sweep_exclusive check (not exclusive or not gang);
-- A new sweep goes behind those that wait already.
alter table sweep alter column served set default nextval('sweep_served');
create index sweep_exclusive_live on sweep (key) where exclusive;
create index sweep_needs on sweep (key) where cpus > 0 or memory_bytes > 0;

alter table runner
    add column cpus         integer not null default 0 check (cpus >= 0),           -- 0: it did not say
    add column memory_bytes bigint not null default 0 check (memory_bytes >= 0),
    add column machine      text,                               -- equal for all runners of a machine; null: it did not say
    add column shares       boolean not null default false;     -- its cores and memory are those of its whole machine

-- A sweep whose turn came while its trial did not fit in what was free on this runner.
create table runner_wait (
    runner    text primary key references runner on delete cascade,
    sweep_key bigint not null references sweep on delete cascade,
    since     timestamptz not null default clock_timestamp()
);
create index runner_wait_sweep on runner_wait (sweep_key);

-- What attempts, ranks and kept slots take of their runner. A group takes what one trial takes.
create view held_needs as
    select h.runner, h.sweep_key, h.number, h.attempt, h.seat, h.group_id, s.key as needs_key, s.cpus, s.memory_bytes,
        s.exclusive
    from held h left join sweep s on s.key = coalesce(h.sweep_key, (select g.sweep_key from gathering g));

-- What is taken of the cores and the memory that a runner shares with the other runners of its machine, by those.
create function needs_of_others(self text, place text, out cpus bigint, out memory_bytes bigint) language sql stable as $$
    select coalesce(sum(n.cpus), 0), coalesce(sum(n.memory_bytes), 0) from (select h.cpus, h.memory_bytes, h.group_id is null
            or row_number() over (partition by h.runner, h.group_id) = 1 as is_first
        from held_needs h join runner o on o.name = h.runner where o.machine = place and o.shares and o.name <> self) n
    where n.is_first
$$;

-- How many ranks with such needs each the live runners could hold, if nothing else ran.
create function seats_of_runners(gpus_each integer, cpus_each integer, memory_each bigint) returns bigint
language sql stable as $$
    select coalesce(sum(least(slots,
        case when gpus_each = 0 then slots
             else greatest(0, json_array_length(gpus) - json_array_length(gpu_faults)) / gpus_each end,
        case when cpus_each = 0 then slots else cpus / cpus_each end,
        case when memory_each = 0 then slots else memory_bytes / memory_each end)), 0)
    from runner where state = 'live' and expires_at > clock_timestamp() and takes_seats
$$;

-- The turns of a sweep that has n more. It is owed at most 8 (TURNS of turn_store.c), and a new one begins as the others
-- are, so that nobody gets all slots because of turns long ago.
create function turns_after(turns bigint, n bigint) returns bigint language sql stable as $$
    select greatest(turns, (select max(m.turns) from sweep m where m.state = 'running') - 8) + n
$$;
create function sweep_joins() returns trigger language plpgsql as $$
begin
    new.turns = greatest(0, (select max(m.turns) from sweep m where m.state = 'running') - 1);
    return new;
end $$;
create trigger sweep_joined before insert on sweep for each row execute function sweep_joins();

-- As before, and a trial that begins to run is a turn of its sweep.
create or replace function trial_counted() returns trigger language plpgsql as $$
begin
    update sweep set
        n_queued = n_queued + (new.state = 'queued')::int - (old.state = 'queued')::int,
        n_running = n_running + (new.state = 'running')::int - (old.state = 'running')::int,
        n_paused = n_paused + (new.state = 'paused')::int - (old.state = 'paused')::int,
        n_completed = n_completed + (new.state = 'completed')::int - (old.state = 'completed')::int,
        n_pruned = n_pruned + (new.state = 'pruned')::int - (old.state = 'pruned')::int,
        n_failed = n_failed + (new.state = 'failed')::int - (old.state = 'failed')::int,
        n_cancelled = n_cancelled + (new.state = 'cancelled')::int - (old.state = 'cancelled')::int,
        n_known_failed = n_known_failed + (new.origin = 'known' and new.state = 'failed')::int,
        n_retried = n_retried + (new.retry_seq is distinct from old.retry_seq)::int,
        finish_seq = finish_seq + (new.finish_seq is not null)::int + (new.retry_seq is distinct from old.retry_seq)::int,
        served = case when new.state = 'running' then nextval('sweep_served') else served end,
        turns = case when new.state = 'running' then turns_after(turns, 1) else turns end
    where key = new.sweep_key;
    return null;
end $$;

create or replace function trial_counted_inserts() returns trigger language plpgsql as $$
begin
    update sweep s set n_total = s.n_total + t.n_total,
        n_queued = s.n_queued + t.n_queued, n_running = s.n_running + t.n_running, n_paused = s.n_paused + t.n_paused,
        n_completed = s.n_completed + t.n_completed, n_pruned = s.n_pruned + t.n_pruned, n_failed = s.n_failed + t.n_failed,
        n_cancelled = s.n_cancelled + t.n_cancelled, n_suggested = s.n_suggested + t.n_suggested, n_known = s.n_known + t.n_known,
        n_known_failed = s.n_known_failed + t.n_known_failed, finish_seq = s.finish_seq + t.n_ended,
        served = case when t.n_running > 0 then nextval('sweep_served') else s.served end,
        turns = case when t.n_running > 0 then turns_after(s.turns, t.n_turns) else s.turns end
    from (select sweep_key, count(*) as n_total,
              count(*) filter (where state = 'queued') as n_queued, count(*) filter (where state = 'running') as n_running,
              count(*) filter (where state = 'paused') as n_paused, count(*) filter (where state = 'completed') as n_completed,
              count(*) filter (where state = 'pruned') as n_pruned, count(*) filter (where state = 'failed') as n_failed,
              count(*) filter (where state = 'cancelled') as n_cancelled,
              count(*) filter (where origin = 'suggested') as n_suggested, count(*) filter (where origin = 'known') as n_known,
              count(*) filter (where origin = 'known' and state = 'failed') as n_known_failed,
              count(finish_seq) as n_ended, count(*) filter (where state = 'running' and group_id is null)
                  + count(distinct group_id) filter (where state = 'running') as n_turns
          from inserted group by sweep_key) t
    where s.key = t.sweep_key;
    return null;
end $$;
