-- Sweeps that run on after their end, trials that are tried again, tags, and who changed what.
-- Why: limits change while a sweep runs and after it has ended, so the time that it ran before is kept; a failed or
-- cancelled trial may be tried again, and suggestions that knew its earlier end must stay computable; tags are filtered by.
-- Locks: sweep and trial exclusively; sweep is written once. A server of the version before may go on.

alter table sweep
    add column spent_ms    bigint not null default 0 check (spent_ms >= 0),  -- ran so long before it ended last
    add column reopened_at timestamptz,                                     -- when it ran on after an end
    add column n_retried   integer not null default 0 check (n_retried >= 0),   -- kept by the trigger trial_counted
    add column tags        text[] not null default '{}',                    -- those of the document
    drop constraint sweep_finished;
update sweep set tags = case when json_typeof(document -> 'tags') = 'array'
        then array(select json_array_elements_text(document -> 'tags')) else '{}' end,
    spent_ms = case when state in ('running', 'paused') then 0 else greatest(0, ceil(extract(epoch from
        coalesce(finished_at, now()) - coalesce(started_at, created_at)) * 1000)) end;
-- A retry takes a number of the same order as the ends: the end that it took back keeps its own.
alter table sweep
    add constraint sweep_finished check (finish_seq = n_completed + n_pruned + n_failed + n_cancelled + 2 * n_retried);
create index sweep_tags on sweep using gin (tags);

-- What people changed: {"max_trials": {"from": 40, "to": 200}, …}.
create table sweep_change (
    sweep_key  bigint not null references sweep on delete cascade,
    number     integer not null check (number >= 1),
    changed_at timestamptz not null default now(),
    changed_by text,                                -- the id of a token
    changes    json not null,
    primary key (sweep_key, number)
);

alter table trial
    add column retries   jsonb,                     -- its earlier ends: [{state, finish_seq, retry_seq, …}, …]; null: none
    add column retry_seq bigint check (retry_seq >= 1);     -- of the latest retry
alter table trial
    add constraint trial_retried check ((retries is null) = (retry_seq is null));
create index trial_retry on trial (sweep_key, retry_seq) where retry_seq is not null;

-- An update of a state; inserts are counted by trial_counted_inserts.
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
        finish_seq = finish_seq + (new.finish_seq is not null)::int + (new.retry_seq is distinct from old.retry_seq)::int
    where key = new.sweep_key;
    return null;
end $$;

-- Known results are inserted with their ends.
create or replace function trial_counted_inserts() returns trigger language plpgsql as $$
begin
    update sweep s set n_total = s.n_total + t.n_total,
        n_queued = s.n_queued + t.n_queued, n_running = s.n_running + t.n_running, n_paused = s.n_paused + t.n_paused,
        n_completed = s.n_completed + t.n_completed, n_pruned = s.n_pruned + t.n_pruned, n_failed = s.n_failed + t.n_failed,
        n_cancelled = s.n_cancelled + t.n_cancelled, n_suggested = s.n_suggested + t.n_suggested, n_known = s.n_known + t.n_known,
        n_known_failed = s.n_known_failed + t.n_known_failed, finish_seq = s.finish_seq + t.n_ended
    from (select sweep_key, count(*) as n_total,
              count(*) filter (where state = 'queued') as n_queued, count(*) filter (where state = 'running') as n_running,
              count(*) filter (where state = 'paused') as n_paused, count(*) filter (where state = 'completed') as n_completed,
              count(*) filter (where state = 'pruned') as n_pruned, count(*) filter (where state = 'failed') as n_failed,
              count(*) filter (where state = 'cancelled') as n_cancelled,
              count(*) filter (where origin = 'suggested') as n_suggested, count(*) filter (where origin = 'known') as n_known,
              count(*) filter (where origin = 'known' and state = 'failed') as n_known_failed,
              count(finish_seq) as n_ended
          from inserted group by sweep_key) t
    where s.key = t.sweep_key;
    return null;
end $$;
