-- All that an attempt printed is kept as a file of its trial.
-- Why: attempt_log has the last 64 KiB; more of it is content like artifacts, and goes with the trial.
-- Locks: trial_file exclusively and briefly; the check reads the table once.

-- log: what each attempt printed. The path begins with the attempt, and of a gang's with the seat of the rank:
-- attempt-2/seat-0/output.log.
alter table trial_file
    drop constraint trial_file_kind_check,
    add constraint trial_file_kind_check check (kind in ('artifact', 'checkpoint', 'kept', 'log'));
