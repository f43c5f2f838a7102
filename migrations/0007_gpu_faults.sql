-- GPUs that a runner has set aside, with the reason.
-- Why: a GPU that fails is not handed out again, and people must see which one and why.
-- Locks: ACCESS EXCLUSIVE on `runner` for a moment (a constant default rewrites nothing); heartbeats wait
-- for it.
alter table runner add column gpu_faults json not null default '[]';
