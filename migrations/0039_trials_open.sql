-- Trials that did not complete are found by their state.
-- Why: the lists of a sweep's failed or running trials, what a retry and a cancel look for, read all its trials: 2.5 s of
-- 1,000,000. Completed trials, nearly all of a large sweep, are not in the index and cost it nothing.
-- Locks: trial against writes, while its index is built (seconds for a million trials that did not complete). A server of the
-- version before may go on.

drop index trial_queue;                              -- the new one has its trials in the same order
create index trial_open on trial (sweep_key, state, number) where state <> 'completed';
