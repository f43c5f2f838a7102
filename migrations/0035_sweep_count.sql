-- What trials change of a sweep has a row of its own, so that the sweep's row stands still while its trials run.
-- Why: each batch of claims and of results wrote a new version of a sweep's row. While any transaction of the database is
-- open, PostgreSQL removes none of them, and who looks for a row by its key reads all of its versions: beside a transaction
-- that was idle for a minute the service had a sixth of its speed. The row was wide, too, and each statement that changed it
-- read forty constraints.
-- Locks: sweep exclusively, while its counts are copied. Servers of the version before must have stopped.

alter table sweep rename to sweep_base;

-- One row for each sweep. An update raises `version`, so the newest row is the last of its sweep in the index, and a reader
-- that begins at that end meets the one that stands first, whatever versions cannot be removed yet. Read it through the view
-- `sweep`, or as trial_counted_updates() does.
create table sweep_count (
    sweep_key      bigint not null references sweep_base on delete cascade,
    version        bigint not null default 0,
    -- Its state, for what is compared and looked for here (sweep_moved): running; running or paused.
    is_running     boolean not null default true,
    is_live        boolean not null default true,    -- trials may wait or run
    planned        integer not null check (planned >= 1),
    -- Trials by state, kept by the triggers of trial.
    n_total        integer not null default 0,
    n_queued       integer not null default 0 check (n_queued >= 0),
    n_running      integer not null default 0 check (n_running >= 0),
    n_paused       integer not null default 0 check (n_paused >= 0),
    n_completed    integer not null default 0 check (n_completed >= 0),
    n_pruned       integer not null default 0 check (n_pruned >= 0),
    n_failed       integer not null default 0 check (n_failed >= 0),
    n_cancelled    integer not null default 0 check (n_cancelled >= 0),
    n_suggested    integer not null default 0,
    n_known        integer not null default 0,
    n_known_failed integer not null default 0,
    n_retried      integer not null default 0 check (n_retried >= 0),
    n_rung_results bigint not null default 0,
    n_promoted     bigint not null default 0,
    finish_seq     bigint not null default 0,
    steps_spent    bigint not null default 0,
    -- How far its search is.
    search_mark    bigint not null default 0,
    search_state   json,
    -- Whose turn it is (scheduler/store/turn_store).
    turns          bigint not null default 0,
    served         bigint not null default nextval('sweep_served'),
    primary key (sweep_key, version),
    constraint sweep_budget check (n_total <= planned),
    constraint sweep_counts check (n_total = n_queued + n_running + n_paused + n_completed + n_pruned + n_failed + n_cancelled),
    constraint sweep_finished check (finish_seq = n_completed + n_pruned + n_failed + n_cancelled + 2 * n_retried
                                     + n_rung_results + n_promoted),
    -- The code ends the trials first, so this holds after every statement.
    constraint sweep_idle check (is_live or (n_queued = 0 and n_running = 0 and n_paused = 0)),
    constraint sweep_origins check (n_suggested + n_known <= n_total and n_known_failed <= n_known)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

insert into sweep_count
    select key, 0, state = 'running', state in ('running', 'paused'), planned, n_total, n_queued, n_running, n_paused, n_completed, n_pruned, n_failed,
        n_cancelled, n_suggested, n_known, n_known_failed, n_retried, n_rung_results, n_promoted, finish_seq, steps_spent,
        search_mark, search_state, turns, served
    from sweep_base;

-- The most turns of a sweep that runs, found from the end of the index.
create index sweep_count_turns on sweep_count (turns) where is_running;

drop trigger sweep_joined on sweep_base;
drop function sweep_joins();
alter table sweep_base
    drop column planned, drop column n_total, drop column n_queued, drop column n_running, drop column n_paused,
    drop column n_completed, drop column n_pruned, drop column n_failed, drop column n_cancelled, drop column n_suggested,
    drop column n_known, drop column n_known_failed, drop column n_retried, drop column n_rung_results, drop column n_promoted,
    drop column finish_seq, drop column steps_spent, drop column search_mark, drop column search_state, drop column turns,
    drop column served;

-- A sweep with its counts. `for update` on it locks both rows, the counts first.
create view sweep as
    select b.*, c.planned, c.n_total, c.n_queued, c.n_running, c.n_paused, c.n_completed, c.n_pruned, c.n_failed, c.n_cancelled,
        c.n_suggested, c.n_known, c.n_known_failed, c.n_retried, c.n_rung_results, c.n_promoted, c.finish_seq, c.steps_spent,
        c.search_mark, c.search_state, c.turns, c.served
    from sweep_base b
    cross join lateral (select * from sweep_count n where n.sweep_key = b.key order by n.version desc limit 1) c;

create function sweep_moved() returns trigger language plpgsql as $$
begin
    update sweep_count
    set version = version + 1, is_running = new.state = 'running', is_live = new.state in ('running', 'paused')
    where (sweep_key, version) = (
        select n.sweep_key, n.version from sweep_count n where n.sweep_key = new.key order by n.version desc limit 1);
    return null;
end $$;
create trigger sweep_moved after update of state on sweep_base for each row
    when (old.state <> new.state) execute function sweep_moved();

-- `any (array[…])` and `between`, not `=`: only a nested loop joins by them, whatever the statistics say; and both by columns
-- of `v`, or a plan may look for all versions of a sweep. The writer holds the sweep, so the version that it reads stays the
-- newest; one that does not is run again.
create or replace function trial_counted_inserts() returns trigger language plpgsql as $$
declare
    n_counted bigint;
begin
    update sweep_count c set version = c.version + 1, n_total = c.n_total + t.n_total,
        n_queued = c.n_queued + t.n_queued, n_running = c.n_running + t.n_running, n_paused = c.n_paused + t.n_paused,
        n_completed = c.n_completed + t.n_completed, n_pruned = c.n_pruned + t.n_pruned, n_failed = c.n_failed + t.n_failed,
        n_cancelled = c.n_cancelled + t.n_cancelled, n_suggested = c.n_suggested + t.n_suggested, n_known = c.n_known + t.n_known,
        n_known_failed = c.n_known_failed + t.n_known_failed, finish_seq = c.finish_seq + t.n_ended,
        served = case when t.n_running > 0 then nextval('sweep_served') else c.served end,
        turns = case when t.n_running > 0
            then greatest(c.turns, (select max(m.turns) from sweep_count m where m.is_running) - 8) + t.n_turns
            else c.turns end
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
    cross join lateral (
        select n.sweep_key, n.version from sweep_count n where n.sweep_key = t.sweep_key order by n.version desc limit 1) v
    where c.sweep_key = any (array[v.sweep_key]) and c.version between v.version and v.version;
    get diagnostics n_counted = row_count;
    if n_counted <> (select count(distinct sweep_key) from inserted) then
        raise exception 'the counts of a sweep were changed by another transaction' using errcode = 'serialization_failure';
    end if;
    return null;
end $$;

create or replace function trial_counted_updates() returns trigger language plpgsql as $$
declare
    n_counted bigint;
begin
    if not exists (select from changed_to) then
        return null;
    end if;
    with t as materialized (
        select sweep_key,
            coalesce(sum(d) filter (where state = 'queued'), 0) as n_queued,
            coalesce(sum(d) filter (where state = 'running'), 0) as n_running,
            coalesce(sum(d) filter (where state = 'paused'), 0) as n_paused,
            coalesce(sum(d) filter (where state = 'completed'), 0) as n_completed,
            coalesce(sum(d) filter (where state = 'pruned'), 0) as n_pruned,
            coalesce(sum(d) filter (where state = 'failed'), 0) as n_failed,
            coalesce(sum(d) filter (where state = 'cancelled'), 0) as n_cancelled,
            coalesce(sum(d) filter (where state = 'failed' and origin = 'known'), 0) as n_known_failed,
            coalesce(sum(d) filter (where finish_seq is not null), 0) as n_ended,
            coalesce(sum(d * jsonb_array_length(retries)), 0) as n_retried,
            sum(d * attempt) as n_begun, sum(d * spent) as n_spent
        from (select 1 as d, sweep_key, state, origin, finish_seq, retries, attempt, spent from changed_to
              union all
              select -1, sweep_key, state, origin, finish_seq, retries, attempt, spent from changed_from) x
        group by sweep_key),
    changed as materialized (
        select * from t where (n_queued, n_running, n_paused, n_completed, n_pruned, n_failed, n_cancelled, n_spent)
            <> (0, 0, 0, 0, 0, 0, 0, 0)),
    counted as (
        update sweep_count c set version = c.version + 1,
            n_queued = c.n_queued + t.n_queued, n_running = c.n_running + t.n_running, n_paused = c.n_paused + t.n_paused,
            n_completed = c.n_completed + t.n_completed, n_pruned = c.n_pruned + t.n_pruned, n_failed = c.n_failed + t.n_failed,
            n_cancelled = c.n_cancelled + t.n_cancelled, n_known_failed = c.n_known_failed + t.n_known_failed,
            n_retried = c.n_retried + t.n_retried, finish_seq = c.finish_seq + t.n_ended + 2 * t.n_retried,
            steps_spent = least(c.steps_spent + t.n_spent, 9223372036854775807),    -- steps may be that large
            served = case when t.n_begun > 0 then nextval('sweep_served') else c.served end,
            turns = case when t.n_begun > 0
                then greatest(c.turns, (select max(m.turns) from sweep_count m where m.is_running) - 8) + t.n_begun
                else c.turns end
        from changed t
        cross join lateral (
            select n.sweep_key, n.version from sweep_count n where n.sweep_key = t.sweep_key order by n.version desc limit 1) v
        where c.sweep_key = any (array[v.sweep_key]) and c.version between v.version and v.version
        returning 1)
    select (select count(*) from changed) - (select count(*) from counted) into n_counted;
    if n_counted <> 0 then
        raise exception 'the counts of a sweep were changed by another transaction' using errcode = 'serialization_failure';
    end if;
    return null;
end $$;
