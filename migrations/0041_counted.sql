-- A batch of claims and a batch of ends count their trials themselves.
-- Why: claims of several sweeps wrote their turns to sweep_count, in the order of their latest ones, after the triggers had written the
-- same rows: a twentieth of the time of a round on eight sweeps. The triggers read the trials of a statement twice again, to learn what the
-- batch had planned.
-- Locks: trial exclusively, for a moment. A server of the version before may go on: its trials are counted here.

-- `assay.counted` is set, for its transaction, by a batch of claims (scheduler/store/batch_claims.c) and one of ends (trial_store.c).
drop trigger trial_counted_insert on trial;
create trigger trial_counted_insert after insert on trial referencing new table as inserted
    for each statement when (current_setting('assay.counted', true) is distinct from 'true')
    execute function trial_counted_inserts();
drop trigger trial_counted_update on trial;
create trigger trial_counted_update after update on trial referencing old table as changed_from new table as changed_to
    for each statement when (current_setting('assay.counted', true) is distinct from 'true')
    execute function trial_counted_updates();
