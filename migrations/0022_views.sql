-- What pages show beside numbers: when a value arrived, and remarks about a sweep.
-- Why: curves by time need a time for each point; people note what a sweep was for after it was created.
-- Locks: measurement and sweep exclusively and briefly; no row is written, so values of before have no time. A server of the
-- version before may go on.

alter table measurement add column recorded_at timestamptz;        -- null: the value is older than this column
alter table measurement alter column recorded_at set default now();

alter table sweep
    add column remarks text,                                        -- Markdown; null: none
    add constraint sweep_remarks check (length(remarks) between 1 and 65536);
