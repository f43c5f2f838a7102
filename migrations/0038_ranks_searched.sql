-- The number of ranks may be a parameter of the search, and the world of a program may begin again with fewer.
-- Why: then each trial of a sweep has its own number; what gathers, and what waits, follows from the trial that is next.
-- Locks: sweep_base exclusively and briefly; no rows are written. A server of the version before would give all trials of such a
-- sweep the most ranks of any: stop it before the first one is created.

alter table sweep_base
    add column ranks_by    text,        -- the parameter that says how many; `ranks` is then the most of any trial
    add column least_ranks integer,     -- and this the fewest
    -- A gang that is not elastic begins with min_ranks or more when no others come.
    add column shrinks     boolean not null default false,
    add constraint sweep_ranks_by check (ranks_by is null or (gang and least_ranks between min_ranks and ranks));

drop view sweep;
create view sweep as
    select b.*, c.planned, c.n_total, c.n_queued, c.n_running, c.n_paused, c.n_completed, c.n_pruned, c.n_failed, c.n_cancelled,
        c.n_suggested, c.n_known, c.n_known_failed, c.n_retried, c.n_rung_results, c.n_promoted, c.finish_seq, c.steps_spent,
        c.search_mark, c.search_state, c.turns, c.served
    from sweep_base b
    cross join lateral (select * from sweep_count n where n.sweep_key = b.key order by n.version desc limit 1) c;
