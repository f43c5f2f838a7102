-- Which job and which fleet a runner belongs to.
-- Why: people find the job of a runner, and `assay autoscale` the runners of its fleet.
-- Locks: runner exclusively and briefly; the columns have no defaults, so no row is written. A server of the version before
-- goes on beside it.

alter table runner
    add column job   text check (length(job) between 1 and 200),    -- "slurm/1234_7"; null: it did not say
    add column fleet text check (fleet ~ '^[a-z0-9][a-z0-9._-]{0,62}$');
