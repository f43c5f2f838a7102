-- Groups: trials whose tensors have the same shape run as members of one process.
-- Why: what a trial's shape is, and which group an attempt ran in, is decided when it is handed out, and told later.
-- Sweeps from before have no max_group, their trials no shape: they go on as they began, each alone.
-- The trials of a claim are inserted by one statement, and counted by one: each count is a new version of the sweep's
-- row, and 64 of them in a transaction took longer than all the rest (bench/RESULTS.md).
-- Locks: sweep, trial and attempt exclusively; trial is read once for the checks and written nowhere. A server of the
-- version before may go on: it hands out trials alone.

alter table sweep
    add column max_group   integer check (max_group between 1 and 64),  -- members of a group; null: its trials have no shape
    add column group_given boolean not null default false,              -- the document says so, not the method
    add constraint sweep_grouped check (not group_given or max_group is not null);

alter table trial
    add column shape            text check (length(shape) between 1 and 1024),  -- equal texts may share a group
    add column bytes_per_member bigint check (bytes_per_member > 0),
    add column group_id         text check (length(group_id) between 1 and 128);    -- of the latest attempt; null: it ran alone
alter table trial
    add constraint trial_shaped check ((shape is null) = (bytes_per_member is null)),
    add constraint trial_grouped check (group_id is null or shape is not null);
create index trial_group on trial (group_id) where group_id is not null;

alter table attempt
    add column group_id text,
    add constraint attempt_grouped check (group_id is null or runner is not null);

create function trial_counted_inserts() returns trigger language plpgsql as $$
begin
    update sweep s set n_total = s.n_total + t.n_total,
        n_queued = s.n_queued + t.n_queued, n_running = s.n_running + t.n_running, n_paused = s.n_paused + t.n_paused,
        n_completed = s.n_completed + t.n_completed, n_pruned = s.n_pruned + t.n_pruned, n_failed = s.n_failed + t.n_failed,
        n_cancelled = s.n_cancelled + t.n_cancelled, n_suggested = s.n_suggested + t.n_suggested, n_known = s.n_known + t.n_known
    from (select sweep_key, count(*) as n_total,
              count(*) filter (where state = 'queued') as n_queued, count(*) filter (where state = 'running') as n_running,
              count(*) filter (where state = 'paused') as n_paused, count(*) filter (where state = 'completed') as n_completed,
              count(*) filter (where state = 'pruned') as n_pruned, count(*) filter (where state = 'failed') as n_failed,
              count(*) filter (where state = 'cancelled') as n_cancelled,
              count(*) filter (where origin = 'suggested') as n_suggested, count(*) filter (where origin = 'known') as n_known
          from inserted group by sweep_key) t
    where s.key = t.sweep_key;
    return null;
end $$;
drop trigger trial_counted_insert on trial;
create trigger trial_counted_insert after insert on trial referencing new table as inserted
    for each statement execute function trial_counted_inserts();
