-- Groups: trials whose tensors have the same shape run as members of one process.
-- Why: what a trial's shape is, and which group an attempt ran in, is decided when it is handed out, and told later.
-- Sweeps from before have no max_group, their trials no shape: they go on as they began, each alone.
-- Locks: sweep, trial and attempt exclusively; trial is read once for the checks and written nowhere. A server of the
-- version before may go on: it hands out trials alone.

alter table sweep
    add column max_group integer check (max_group between 1 and 64);    -- resources.group; null: its trials have no shape

alter table trial
    add column shape            text check (length(shape) between 1 and 1024),  -- equal texts may share a group
    add column bytes_per_member bigint check (bytes_per_member > 0),
    add column group_id         text check (length(group_id) between 1 and 128);    -- of the latest attempt; null: it ran alone
alter table trial
    add constraint trial_shaped check ((shape is null) = (bytes_per_member is null)),
    add constraint trial_grouped check (group_id is null or shape is not null);
create index trial_group on trial (group_id) where group_id is not null;

alter table attempt
    add column group_id text,
    add constraint attempt_grouped check (group_id is null or runner is not null);
