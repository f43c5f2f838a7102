/* The metrics that `assay fit` may search by. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_METRIC_H
#define ASSAY_CLI_FIT_FIT_METRIC_H

#include <stdbool.h>

#include "base/status.h"
#include "cli/fit/fit_facts.h"

#define FIT_METRIC_MAX 40

/* Is it one of them, and of classes? A name without "val_". */
bool fit_metric_is_of_classes(const char *name);

/* The metric that is wished, or where none is (NULL) the one of the task: two classes by rank,
 * which does not depend on how rare one of them is. *ret_name begins with "val_".
 * AS_E_INVAL: the task has no such metric; the message names those that it has. */
AS_MUST_CHECK as_status fit_metric_choose(const struct fit_facts *f, const char *wish,
                                          char ret_name[FIT_METRIC_MAX], bool *ret_maximize,
                                          struct as_err *err);

#endif
