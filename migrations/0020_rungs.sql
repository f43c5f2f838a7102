-- Early stopping: the values of trials at rungs, what was decided there, and trials that were promoted.
-- Why: a decision is a function of the rung results in their stored order, so they have rows of their own; they share one
-- order with ends and retries (sweep.finish_seq), which suggestions and replays go by.
-- Locks: sweep, trial, attempt, gang_seat and event exclusively and briefly; new columns have constant defaults, so no row
-- is written, but the checks read sweep, attempt, gang_seat and event once. A server of the version before would let trials
-- of sweeps with early stopping run in full: stop it before the first such sweep is created.

alter table sweep
    add column rungs          bigint[],                         -- the steps of its rungs; null: no early stopping
    add column rungs_late     boolean not null default false,   -- the first report past a rung counts for it
    add column rungs_strict   boolean not null default false,   -- it fails when a trial ends and none has a value at a rung
    add column n_rung_results bigint not null default 0,
    add column n_promoted     bigint not null default 0,
    -- Kept by the trigger trial_counted, as the counts are.
    add column steps_spent    bigint not null default 0,        -- by trials up to their last rung or end
    add column max_steps      bigint check (max_steps > 0),     -- it ends when so many are spent; null: no limit
    drop constraint sweep_finished;
alter table sweep
    add constraint sweep_finished check (finish_seq = n_completed + n_pruned + n_failed + n_cancelled + 2 * n_retried
        + n_rung_results + n_promoted);

alter table trial
    add column rung     integer not null default 0 check (rung >= 0),   -- the next one that it may reach
    -- What was decided for its latest attempt, whatever that does: resume is a pause that a promotion took back. Null: it
    -- goes on. The sentence is in `reason`.
    add column decision text check (decision in ('prune', 'pause', 'resume')),
    add column spent    bigint not null default 0 check (spent >= 0);   -- steps that are in sweep.steps_spent

alter table attempt
    drop constraint attempt_outcome_check,
    add constraint attempt_outcome_check check (outcome in ('completed', 'failed', 'retry', 'released', 'lost', 'cancelled',
        'timeout', 'paused', 'pruned'));
alter table gang_seat
    drop constraint gang_seat_outcome_check,
    add constraint gang_seat_outcome_check check (outcome in ('completed', 'failed', 'retry', 'released', 'timeout', 'paused',
        'pruned'));

-- One row for each trial and rung. No foreign key, as for trials: whoever inserts it holds the rows of both.
create table rung_result (
    sweep_key     bigint not null,
    number        integer not null,
    rung          integer not null check (rung >= 0),
    attempt       integer not null check (attempt >= 1),
    step          bigint not null check (step >= 0),            -- of the report
    value         double precision not null,                    -- of the metric that is compared, of several the first
    objectives    double precision[] not null,                  -- of all; NaN: none, or not finite
    feasible      boolean not null,                             -- no constrained metric was out of its bounds
    decision      text not null check (decision in ('go_on', 'prune', 'pause')),
    rank          integer not null check (rank >= 1),           -- among the results of the rung then,
    among         integer not null check (among >= rank),       -- so many with it
    reason        text not null,
    seq           bigint not null check (seq >= 1),             -- its place in the sweep's order
    promoted_seq  bigint,                                       -- that of its promotion; null: none
    promoted_why  text,
    decided_at    timestamptz not null default now(),
    primary key (sweep_key, number, rung),
    constraint rung_result_promoted check ((promoted_seq is null) = (promoted_why is null)
        and (promoted_seq is null or decision = 'pause' and promoted_seq > seq))
);
create unique index rung_result_order on rung_result (sweep_key, seq);
create unique index rung_result_promotions on rung_result (sweep_key, promoted_seq) where promoted_seq is not null;

create or replace function sweep_trials_deleted() returns trigger language plpgsql as $$
begin
    delete from trial where sweep_key = any (array(select key from gone));
    delete from rung_result where sweep_key = any (array(select key from gone));
    return null;
end $$;

-- As before, and the steps that are spent.
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
        steps_spent = least(s.steps_spent + t.n_spent, 9223372036854775807),    -- steps may be that large
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
              sum(d * attempt) as n_begun, sum(d * spent) as n_spent
          from (select 1 as d, sweep_key, state, origin, finish_seq, retries, attempt, spent from changed_to
                union all
                select -1, sweep_key, state, origin, finish_seq, retries, attempt, spent from changed_from) c
          group by sweep_key) t
    where s.key = any (array[t.sweep_key])      -- not `=`: only a nested loop joins by it, whatever the statistics say
        and (t.n_queued, t.n_running, t.n_paused, t.n_completed, t.n_pruned, t.n_failed, t.n_cancelled, t.n_spent)
            <> (0, 0, 0, 0, 0, 0, 0, 0);
    return null;
end $$;

alter table event
    drop constraint event_type_check,
    add constraint event_type_check check (type in ('sweep.created', 'sweep.changed', 'trial.changed', 'trial.measured',
        'trial.rung', 'ensemble.ready', 'runner.changed', 'gang.changed', 'model.changed'));
