-- The step after which the steps of a fork are its own, in one function.
-- Why: the statements that count spent steps and steps_ahead() each had the same expression.
-- Locks: none. A server of the version before may go on.

-- Of a fork that went on from its parent's checkpoint the step of the fork; one that began from nothing has measured steps before
-- it, and 0. Null for a trial that is no fork: nothing is executed then.
create function own_after(of_sweep bigint, of_number int, forked_at bigint) returns bigint language sql stable strict as $$
    select case when exists (select from measurement_chunk m where m.sweep_key = of_sweep and m.number = of_number
        and m.first_step <= forked_at) then 0 else forked_at end
$$;

-- How many steps trial t takes to its next rung, beyond those that are counted.
create or replace function steps_ahead(t trial, rungs bigint[]) returns bigint language sql stable as $$
    select greatest(0, coalesce(rungs[t.rung + 1], rungs[array_length(rungs, 1)]) - t.spent
        - coalesce(own_after(t.sweep_key, t.number, t.fork_step), 0))
$$;
