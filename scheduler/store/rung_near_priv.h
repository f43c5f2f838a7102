/* struct rung_near of a trial, as columns: `s` is its sweep, `t` its row, which may be absent. */
#ifndef ASSAY_SCHEDULER_STORE_RUNG_NEAR_PRIV_H
#define ASSAY_SCHEDULER_STORE_RUNG_NEAR_PRIV_H

/* Arrays begin at 1. */
#define SQL_RUNG_NEXT(s, t) "case when " t ".decision is null then " s ".rungs[" t ".rung + 1] end"
#define SQL_RUNG_AFTER(s, t)                                                                       \
    s ".rungs[case when " s ".rungs_late then " t ".rung + 1 else " t ".rung + 2 end]"

#endif
