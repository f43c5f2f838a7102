-- What limits.max_steps leaves: the steps that no trial may still take, and how many trials may begin with them.
-- Why: steps were counted where a trial reached a rung, and the sweep ended when too many were counted, so each running trial
-- took it up to a rung further. A trial now begins, and goes on past a rung, only if the steps to its next rung are left.
-- Locks: none. A server of the version before may go on, and counts as before.

-- How many steps trial t takes to its next rung, beyond those that are counted. The steps of a fork are its own from its
-- parent's on, unless it began from nothing.
create function steps_ahead(t trial, rungs bigint[]) returns bigint language sql stable as $$
    select greatest(0, coalesce(rungs[t.rung + 1], rungs[array_length(rungs, 1)]) - t.spent
        - case when t.fork_step is null or exists (select from measurement_chunk m where m.sweep_key = t.sweep_key
              and m.number = t.number and m.first_step <= t.fork_step) then 0 else t.fork_step end)
$$;

-- Without those that running trials take to their next rungs. Null: the sweep has no such limit.
create function steps_left(of_sweep bigint) returns bigint language sql stable as $$
    select s.max_steps - s.steps_spent - coalesce((select sum(steps_ahead(t, s.rungs)) from trial t
        where t.sweep_key = s.key and t.state = 'running' and t.decision is null), 0)::bigint
    from sweep s where s.key = of_sweep
$$;

-- How many trials may begin: the first of the queue in its order, then new ones. Where trials of one shape go together any of
-- the queue may be next, and so each counts as the one that takes most. Null: the sweep has no such limit.
create function steps_room(of_sweep bigint) returns bigint language sql stable as $$
    with s as materialized (
        select key, rungs, rungs[1] as first, max_group is not null as has_shapes, planned > n_total as makes, n_queued,
            greatest(0, steps_left(key)) as free
        from sweep where key = of_sweep and max_steps is not null),
    q as materialized (
        select need, sum(need) over (order by number) as total
        from (select t.number, steps_ahead(t, s.rungs) as need from s join trial t on t.sweep_key = s.key
              where t.state = 'queued' order by t.number limit 1024) n),
    f as materialized (
        select count(*) filter (where q.total <= s.free) as n_fit, count(q.need) as n, coalesce(max(q.total), 0)::bigint as total,
            greatest(1, max(q.need), max(s.first) filter (where s.makes)) as most
        from s left join q on true)
    select case when s.has_shapes then s.free / f.most
        when f.n_fit < f.n or f.n < s.n_queued or not s.makes then f.n_fit
        else f.n_fit + (s.free - f.total) / s.first end::bigint
    from s, f
$$;
