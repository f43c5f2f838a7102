-- What pages show beside numbers: when a value arrived, remarks about a sweep, tags of trials.
-- Why: curves by time need a time for each point; people note what a sweep was for, and group trials, after they ran.
-- Locks: measurement, sweep and trial exclusively and briefly; no row is written, so values of before have no time. A server of the
-- version before may go on.

alter table measurement add column recorded_at timestamptz;        -- null: the value is older than this column
alter table measurement alter column recorded_at set default now();

alter table sweep
    add column remarks text,                                        -- Markdown; null: none
    add constraint sweep_remarks check (length(remarks) between 1 and 65536);

alter table trial add column tags text[] check (cardinality(tags) between 1 and 64);     -- in order; null: none. The server allows 32
