-- Cheap rows in sets: counts change once for each statement, a measurement of a running trial keeps its row in place, and
-- trials and attempts are inserted without a check for each row.
-- Why: an update of fifty trials changed the counts of their sweep fifty times, which was most of its cost. The index
-- trial_best held `value`, so no measurement was a HOT update. The check of a foreign key costs more than the row.
-- Locks: trial exclusively, while it is written once; sweep and attempt exclusively and briefly. A server of the version
-- before may go on; it lists the best trials of a sweep without an index.

alter table trial
    -- What the sweep compares: the value of a trial that completed and is feasible. It changes when a trial ends, not with
    -- each measurement.
    add column result double precision generated always as (case when state = 'completed' and feasible then value end) stored;
drop index trial_best;
create index trial_best on trial (sweep_key, result) where result is not null;

-- Every count is a sum over the trials of a sweep, so a statement changes it by what its new rows have more than its old
-- ones. `attempt` counts the runs that began, and `retries` has an element for each retry. Each run that begins is a turn.
create function trial_counted_updates() returns trigger language plpgsql as $$
begin
    if not exists (select from changed_to) then
        return null;
    end if;
    update sweep s set
        n_queued = s.n_queued + t.n_queued, n_running = s.n_running + t.n_running, n_paused = s.n_paused + t.n_paused,
        n_completed = s.n_completed + t.n_completed, n_pruned = s.n_pruned + t.n_pruned, n_failed = s.n_failed + t.n_failed,
        n_cancelled = s.n_cancelled + t.n_cancelled, n_known_failed = s.n_known_failed + t.n_known_failed,
        n_retried = s.n_retried + t.n_retried, finish_seq = s.finish_seq + t.n_ended + 2 * t.n_retried,
        served = case when t.n_begun > 0 then nextval('sweep_served') else s.served end,
        turns = case when t.n_begun > 0 then turns_after(s.turns, t.n_begun) else s.turns end
    from (select sweep_key,
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
              sum(d * attempt) as n_begun
          from (select 1 as d, sweep_key, state, origin, finish_seq, retries, attempt from changed_to
                union all select -1, sweep_key, state, origin, finish_seq, retries, attempt from changed_from) c
          group by sweep_key) t
    where s.key = any (array[t.sweep_key])      -- not `=`: only a nested loop joins by it, whatever the statistics say
        and (t.n_queued, t.n_running, t.n_paused, t.n_completed, t.n_pruned, t.n_failed, t.n_cancelled)
            <> (0, 0, 0, 0, 0, 0, 0);
    return null;
end $$;
drop trigger trial_counted_update on trial;
drop function trial_counted();
create trigger trial_counted_update after update on trial referencing old table as changed_from new table as changed_to
    for each statement execute function trial_counted_updates();

-- Who inserts a trial or an attempt holds the sweep's row, so what they refer to is there. They go with it, as before.
alter table trial drop constraint trial_sweep_key_fkey;
alter table attempt drop constraint attempt_sweep_key_number_fkey;
create function sweep_trials_deleted() returns trigger language plpgsql as $$
begin
    delete from trial where sweep_key = any (array(select key from gone));
    return null;
end $$;
create function trial_attempts_deleted() returns trigger language plpgsql as $$
begin
    delete from attempt a using (select distinct sweep_key from gone) g where a.sweep_key = any (array[g.sweep_key])
        and not exists (select from trial t where t.sweep_key = a.sweep_key and t.number = a.number);
    return null;
end $$;
create trigger sweep_deleted after delete on sweep referencing old table as gone
    for each statement execute function sweep_trials_deleted();
create trigger trial_deleted after delete on trial referencing old table as gone
    for each statement execute function trial_attempts_deleted();
