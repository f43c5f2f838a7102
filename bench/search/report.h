/* Print statistics of traces at 30, 60, 120 trials (the requested ones, and the last): regret per
 * problem, mean ranks, ratios to the others, wins; as Markdown, or as benchmark lines (bench.h). */
#ifndef ASSAY_BENCH_SEARCH_REPORT_H
#define ASSAY_BENCH_SEARCH_REPORT_H

#include <stddef.h>

#include "base/status.h"
#include "bench/search/ranking.h"

typedef enum report_form {
    REPORT_SHORT, /* the summary, and the problems at the last number of trials */
    REPORT_LONG,  /* the problems at each: docs/search.md */
    REPORT_JSON   /* bench.h's lines */
} report_form;

/* Print to stdout. The method labelled "gp", or the first, is compared with every other. Methods
 * without any trace are skipped with a message on stderr. `peer` is Optuna's version, or NULL.
 */
AS_MUST_CHECK as_status report_print(const struct ranking_spec *spec, size_t trials,
                                     const char *peer, report_form form, struct as_err *err);

#endif
