/* Figures for /metrics, from the database and from this process. */
#ifndef ASSAY_SCHEDULER_SERVICES_SERVICE_METRICS_H
#define ASSAY_SCHEDULER_SERVICES_SERVICE_METRICS_H

#include "base/str.h"
#include "scheduler/store/store.h"

/* Append the scheduler's part in Prometheus text format 0.0.4 (assay_trials{state}, …, all with
 * HELP and TYPE). While the database is away, the process's own figures and assay_database_up 0.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status metrics_write(struct store *db, struct str *ret, struct as_err *err);

#endif
