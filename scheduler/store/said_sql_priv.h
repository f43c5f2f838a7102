/* What the statements share that record what runners say of their processes, one heartbeat or many:
 * of an attempt x by a row l with phase and ran_ms. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_SAID_SQL_PRIV_H
#define ASSAY_SCHEDULER_STORE_SAID_SQL_PRIV_H

#define SAID_SET                                                                                   \
    "phase = l.phase, ran_ms = case when l.phase <> 'preparing' then l.ran_ms end, said_at = "     \
    "clock_timestamp()"

/* Phases go forward, and after its end nothing is said of an attempt. */
#define SAID_IS_NEWS                                                                               \
    "x.ended_at is null and (x.phase is null or x.phase = 'preparing' and l.phase <> 'preparing' " \
    "or x.phase = 'running' and l.phase = 'ended')"

#endif
