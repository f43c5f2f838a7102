-- What stood around the processes of an attempt.
-- Why: whoever reads a trial wants to know whether it ran with limits, without privileges and in a control group of its
-- own. A runner says it when it registers, and it holds for all its trials, so a claim copies it to the attempt.
-- Locks: runner and attempt exclusively and briefly; the columns have no defaults, so no row is written. A server of the
-- version before goes on beside it.

alter table runner
    add column walls json;      -- list of words; null: it did not say

alter table attempt
    add column walls json;      -- of its runner when it began; null: it did not say, a client, or a gang
