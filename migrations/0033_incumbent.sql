-- The best trial of a noisy sweep, by the mean of a model (decision 4023). It is kept with the bound that is computed
-- at the same counts of completed trials. Null: values count as told, or the bound is older than this column.
-- Locks regret_check for a moment: no row is rewritten.
alter table regret_check
    add column best           integer check (best >= 0),
    add column best_mean      double precision,                 -- in the metric's unit, as the others
    add column best_deviation double precision check (best_deviation >= 0),
    add column best_noise     double precision check (best_noise >= 0),
    add constraint regret_check_best check (num_nulls(best, best_mean, best_deviation, best_noise) in (0, 4));
