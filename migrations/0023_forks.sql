-- Population based training: trials that go on from a checkpoint of another trial.
-- Why: a fork is a trial of its own, with a parent, a step and other parameters, and the files of its parent at that step as
-- its checkpoint. The search makes `population` trials; each fork adds one to `planned`, up to `most`.
-- Locks: sweep, trial and trial_file exclusively and briefly; new columns have no default, so no row is written, but the
-- checks read trial and trial_file once. A server of the version before does not know the method, so it refuses such sweeps;
-- stop it before the first one is created.

alter table sweep
    add column population integer check (population >= 1),     -- trials that the search makes; null: nothing is forked
    add column most       integer check (most >= 1),           -- limits.max_trials, forks included
    add constraint sweep_forks check ((population is null) = (most is null));

alter table trial
    drop constraint trial_origin_check,
    add constraint trial_origin_check check (origin in ('suggested', 'enqueued', 'known', 'forked')),
    add column parent    integer,                               -- the trial that it goes on from
    add column fork_step bigint check (fork_step >= 0),         -- at this step
    add constraint trial_forked check ((origin = 'forked') = (parent is not null)
        and (parent is null) = (fork_step is null) and parent < number);
create index trial_forks on trial (sweep_key, parent) where parent is not null;

-- kept: what a trial had left when it reached a rung, for forks of it. The path begins with the step: 5/checkpoint.safetensors.
alter table trial_file
    drop constraint trial_file_kind_check,
    add constraint trial_file_kind_check check (kind in ('artifact', 'checkpoint', 'kept')),
    drop constraint trial_file_path_check,
    add constraint trial_file_path_check check (length(path) between 1 and 280);
