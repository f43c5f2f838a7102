-- What a runner says about the process of an attempt: not begun, running, or ended, and for how long it has run.
-- Why: the server cannot know when a process ended whose result is still on its way. Without this, the time of an
-- outage and of a long delivery counted as time of the trial, and results that ended in time became timeouts.
-- The row is written when the phase changes, so at most three times for an attempt; never by each heartbeat.
-- Locks: attempt exclusively, without a rewrite and without a scan of rows that exist (all columns are null in them).
-- A server of the version before may go on: it does not read these columns.

alter table attempt
    add column phase   text check (phase in ('preparing', 'running', 'ended')),   -- null: its owner said nothing
    add column ran_ms  bigint check (ran_ms >= 0),   -- by the runner's monotonic clock, when it said the phase
    add column said_at timestamptz,                  -- when the server heard it
    add constraint attempt_said check ((phase is null) = (said_at is null)),
    add constraint attempt_ran check (phase is null or (phase = 'preparing') = (ran_ms is null));
