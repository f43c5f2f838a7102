-- Ensembles whose probabilities are calibrated.
-- Why: the choice belongs to the sweep's document, and the server that makes the ensemble at the end reads the sweep's row.
-- Locks: sweep exclusively and briefly; the new column has a constant default, so no row is written. A server of the version
-- before may go on: it makes the ensemble without the calibration.

alter table sweep
    add column ensemble_calibrate boolean not null default false;
