/* How long a trial ran, without the time in which it waited: at a rung, in the queue, for a retry.
 * Its attempts say it (decision 5028). Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_RAN_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_RAN_PRIV_H

/* Milliseconds for which those attempts of the trial `t` ran that have ended, since the latest
 * retry. Null: as long as from started_at to finished_at, so that the attempts of a trial that had
 * one are not read; or none has ended yet. */
#define SQL_RAN_MS(t)                                                                              \
    "(case when " t ".attempt > 1 or " t ".attempt = 1 and (" t ".state in ('queued', 'paused', "  \
    "'cancelled') or " t ".state = 'pruned' and " t ".decision = 'pause') then (select "           \
    "sum(greatest(0, date_part('epoch', x.ended_at - x.started_at)) * 1000) from attempt x where " \
    "x.sweep_key = " t ".sweep_key and x.number = " t ".number and x.attempt > coalesce((" t       \
    ".retries -> -1 ->> 'attempt')::int, 0)) end)::bigint"

#endif
