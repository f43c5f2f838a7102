-- What a sweep can still gain at most, as its trials complete, and limits.stop_when, which ends a sweep by it.
-- Why: the bound takes a fit of a model, so that it is computed apart from claims and ends, at a few counts of completed
-- trials, and kept. Whoever reads the rows decides alike: the end of a sweep, its chart, a replay.
-- Locks: sweep exclusively and briefly; the new columns have constant defaults, so no row is written, but the check reads
-- sweep once. A server of the version before ends no sweep by stop_when: stop it before the first such sweep is created.

alter table sweep
    -- limits.stop_when; both null: no such limit
    add column stop_regret     double precision check (stop_regret >= 0 and stop_regret < 'Infinity'),
    add column stop_relative   double precision check (stop_relative between 0 and 1),
    add column stop_min_trials integer not null default 0,      -- completed ones, before it ends by it
    -- The count of completed trials after which the next bound is due. Null: none is computed, for sweeps that were there
    -- before and for those of several metrics.
    add column regret_due      integer check (regret_due > 0),
    add constraint sweep_stop_when check (stop_regret is null or stop_relative is null);

-- One row for each count of completed trials that regret_bound_next() gives; only inserted, and in their order.
create table regret_check (
    sweep_key bigint not null references sweep on delete cascade,
    completed integer not null check (completed > 0),
    seq       bigint not null check (seq >= completed),         -- of the last of them, in the sweep's order: the bound knows
                                                                -- what had happened up to there
    bound     double precision check (bound >= 0 and bound < 'Infinity'),   -- in the metric's unit; null: there is no model
    relative  double precision check (relative >= 0 and relative < 'Infinity'),   -- its share of median - best; null: that is 0, or no model
    enough    boolean not null,                                 -- so many trials that it says something
    made_at   timestamptz not null default clock_timestamp(),
    primary key (sweep_key, completed),
    constraint regret_check_known check (bound is not null or (relative is null and not enough))
);
