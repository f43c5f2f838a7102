-- Sweeps that have ended and whose last results are in no bound have an index of their own.
-- Why: twice a second the server read all sweeps that live to find those few. It looks at sweeps that live less often where there
-- are many (decision 5030), by the index sweep_live.
-- Locks: sweep_base exclusively and briefly. No row is written.
drop index sweep_regret_open;
create index sweep_regret_ended on sweep_base (key) where regret_open and state not in ('running', 'paused', 'finishing');
