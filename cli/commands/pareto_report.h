/* assay best SWEEP --pareto: the trials that no other trial beats in every objective. */
#ifndef ASSAY_CLI_COMMANDS_PARETO_REPORT_H
#define ASSAY_CLI_COMMANDS_PARETO_REPORT_H

#include "base/status.h"
#include "cli/session/request.h"
#include "cli/session/session.h"

/* Print the front, best in the first objective first; on a terminal, where there are two
 * objectives, with a picture of it among the other trials. */
AS_MUST_CHECK as_status pareto_report_print(const struct session *s, const struct trial_ref *sweep,
                                            struct as_err *err);

#endif
