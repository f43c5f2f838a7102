-- The best trial of a noisy sweep is of all its results soon after the last one, also between two counts of its bounds.
-- Why: a sweep that had ended was looked at once a minute, and a sweep of 30 trials that ended fast showed the lowest value
-- until then; one that ended between two counts never had its last results in.
-- Locks: sweep_base and regret_check exclusively and briefly. No row of regret_check is written; of sweep_base those of sweeps
-- that live or whose next bound is due.

-- False: computed between two counts, when results had paused. The next bound takes its place, and stop_when does not read it.
alter table regret_check add column scheduled boolean not null default true;

-- Bounds may still become due: the sweep lives, or has ended and its last results are in none.
alter table sweep_base add column regret_open boolean not null default false;
update sweep_base set regret_open = true where key in (
    select b.key from sweep_base b
    cross join lateral (select n_completed from sweep_count n where n.sweep_key = b.key order by n.version desc limit 1) c
    where b.state in ('running', 'paused', 'finishing') or c.n_completed >= b.regret_due);
alter table sweep_base alter column regret_open set default true;
create index sweep_regret_open on sweep_base (key) where regret_open;

create function sweep_regret_opens() returns trigger language plpgsql as $$
begin
    new.regret_open := true;
    return new;
end $$;
create trigger sweep_regret_opens before update of state on sweep_base for each row
    when (old.state <> new.state) execute function sweep_regret_opens();

drop view sweep;
create view sweep as
    select b.*, c.planned, c.n_total, c.n_queued, c.n_running, c.n_paused, c.n_completed, c.n_pruned, c.n_failed, c.n_cancelled,
        c.n_suggested, c.n_known, c.n_known_failed, c.n_retried, c.n_rung_results, c.n_promoted, c.finish_seq, c.steps_spent,
        c.search_mark, c.search_state, c.turns, c.served
    from sweep_base b
    cross join lateral (select * from sweep_count n where n.sweep_key = b.key order by n.version desc limit 1) c;
