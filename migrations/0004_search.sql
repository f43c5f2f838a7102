-- Search that learns; trials that people add; clients that ask for trials and tell their results.
-- Why: a suggestion depends on the results before it, so their order is kept (finish_seq), with what each suggestion
-- had seen of it; a client is no runner, so its lease is a table of its own.
-- Locks: sweep, trial and attempt exclusively, while trial is written once. Servers of the version before must have stopped.

alter table sweep
    add column objectives     json,                     -- [{name, goal}, …] of several; null: metric and goal say it all
    add column outcomes       json,                     -- [{metric, min, max}, …]: a trial outside is not feasible; null: none
    add column learns         boolean not null default false,   -- suggestions depend on results
    add column for_runners    boolean not null default true,    -- false: its document has no `trial`
    add column finish_seq     bigint not null default 0,        -- of the trial that ended last
    add column search_state   json,                     -- what the last suggestion passes to the next one
    add column search_mark    bigint not null default 0,        -- which suggestion that was; tells computed ones apart
    -- Kept by the trigger trial_counted, as the counts are.
    add column n_suggested    integer not null default 0,
    add column n_known        integer not null default 0,       -- they are in n_total and in planned, and use no budget
    add column n_known_failed integer not null default 0;
update sweep set learns = (method = 'gp'), n_suggested = n_total,
    finish_seq = n_completed + n_pruned + n_failed + n_cancelled;
alter table sweep
    add constraint sweep_origins check (n_suggested + n_known <= n_total and n_known_failed <= n_known),
    add constraint sweep_finished check (finish_seq = n_completed + n_pruned + n_failed + n_cancelled);

alter table trial
    add column origin           text not null default 'suggested' check (origin in ('suggested', 'enqueued', 'known')),
    add column suggestion_index integer check (suggestion_index >= 0),  -- counts the method's own; without holes
    add column seen             bigint check (seen >= 0),               -- finish_seq up to which the suggestion knew results
    add column finish_seq       bigint check (finish_seq >= 1),         -- the order in which the sweep's trials ended
    add column feasible         boolean,
    add column client           text;                                   -- of the latest attempt, when no runner holds it
update trial t set suggestion_index = t.number, feasible = case when t.state = 'completed' then true end, finish_seq = o.place
    from (select sweep_key, number, case when finished_at is not null then row_number() over (partition by sweep_key,
          finished_at is null order by finished_at, number) end as place from trial) o
    where o.sweep_key = t.sweep_key and o.number = t.number;
alter table trial
    drop constraint trial_held,
    add constraint trial_held check (state <> 'running' or (attempt >= 1 and claimed_at is not null and started_at is not null
        and ((runner is not null and epoch is not null and client is null)
             or (client is not null and runner is null and epoch is null)))),
    add constraint trial_indexed check ((origin = 'suggested') = (suggestion_index is not null)),
    add constraint trial_numbered check ((finish_seq is null) = (finished_at is null)),
    add constraint trial_judged check ((state = 'completed') = (feasible is not null));
create unique index trial_finish on trial (sweep_key, finish_seq) where finish_seq is not null;
create index trial_client on trial (sweep_key, client) where state = 'running' and client is not null;
drop index trial_best;
create index trial_best on trial (sweep_key, value) where state = 'completed' and feasible;

alter table attempt
    alter column runner drop not null,
    alter column epoch drop not null,
    alter column claim_id drop not null,
    add column client text,
    add constraint attempt_holder check ((runner is not null and epoch is not null and claim_id is not null and client is null)
        or (client is not null and runner is null and epoch is null and claim_id is null));

-- One row is one lease, for all that the client holds in the sweep.
create table client (
    sweep_key  bigint not null references sweep on delete cascade,
    name       text not null check (length(name) between 1 and 64),
    lease_ms   bigint not null check (lease_ms > 0),
    expires_at timestamptz not null,
    primary key (sweep_key, name)
) with (fillfactor = 70);

alter table idempotency add column number integer;      -- of the trial that it made

create or replace function trial_counted() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        update sweep set n_total = n_total + 1,
            n_queued = n_queued + (new.state = 'queued')::int, n_running = n_running + (new.state = 'running')::int,
            n_paused = n_paused + (new.state = 'paused')::int, n_completed = n_completed + (new.state = 'completed')::int,
            n_pruned = n_pruned + (new.state = 'pruned')::int, n_failed = n_failed + (new.state = 'failed')::int,
            n_cancelled = n_cancelled + (new.state = 'cancelled')::int,
            n_suggested = n_suggested + (new.origin = 'suggested')::int, n_known = n_known + (new.origin = 'known')::int
        where key = new.sweep_key;
    else
        update sweep set
            n_queued = n_queued + (new.state = 'queued')::int - (old.state = 'queued')::int,
            n_running = n_running + (new.state = 'running')::int - (old.state = 'running')::int,
            n_paused = n_paused + (new.state = 'paused')::int - (old.state = 'paused')::int,
            n_completed = n_completed + (new.state = 'completed')::int - (old.state = 'completed')::int,
            n_pruned = n_pruned + (new.state = 'pruned')::int - (old.state = 'pruned')::int,
            n_failed = n_failed + (new.state = 'failed')::int - (old.state = 'failed')::int,
            n_cancelled = n_cancelled + (new.state = 'cancelled')::int - (old.state = 'cancelled')::int,
            n_known_failed = n_known_failed + (new.origin = 'known' and new.state = 'failed')::int,
            finish_seq = finish_seq + (new.finish_seq is not null)::int
        where key = new.sweep_key;
    end if;
    return null;
end $$;
