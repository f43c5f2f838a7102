-- A statement that inserts trials counts them as one that updates them does: the sweep is found by its key whatever the
-- statistics say, and the turns are computed in place. A function in SQL is planned again for each statement that calls it.

create or replace function trial_counted_inserts() returns trigger language plpgsql as $$
begin
    update sweep s set n_total = s.n_total + t.n_total,
        n_queued = s.n_queued + t.n_queued, n_running = s.n_running + t.n_running, n_paused = s.n_paused + t.n_paused,
        n_completed = s.n_completed + t.n_completed, n_pruned = s.n_pruned + t.n_pruned, n_failed = s.n_failed + t.n_failed,
        n_cancelled = s.n_cancelled + t.n_cancelled, n_suggested = s.n_suggested + t.n_suggested, n_known = s.n_known + t.n_known,
        n_known_failed = s.n_known_failed + t.n_known_failed, finish_seq = s.finish_seq + t.n_ended,
        served = case when t.n_running > 0 then nextval('sweep_served') else s.served end,
        turns = case when t.n_running > 0
            then greatest(s.turns, (select max(m.turns) from sweep m where m.state = 'running') - 8) + t.n_turns
            else s.turns end
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
    where s.key = any (array[t.sweep_key]);
    return null;
end $$;

create or replace function trial_counted_updates() returns trigger language plpgsql as $$
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
        turns = case when t.n_begun > 0
            then greatest(s.turns, (select max(m.turns) from sweep m where m.state = 'running') - 8) + t.n_begun
            else s.turns end
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
    where s.key = any (array[t.sweep_key])
        and (t.n_queued, t.n_running, t.n_paused, t.n_completed, t.n_pruned, t.n_failed, t.n_cancelled)
            <> (0, 0, 0, 0, 0, 0, 0);
    return null;
end $$;
drop function turns_after(bigint, bigint);
