/* The required results of the search: medians and upper quartiles of regret that gp must reach at a
 * number of trials, on 21 seeds that no tuning used (1000 to 1020). A reference prototype reached a
 * tenth of these regrets or less. */
#ifndef ASSAY_BENCH_SEARCH_BARS_H
#define ASSAY_BENCH_SEARCH_BARS_H

#include <stdbool.h>

#include "base/status.h"

/* Run `method` on every bar's problem and print a row for each (bench.h's lines with json): the
 * median, the bar as the floor, and in the note the upper quartile and whether both are met.
 * Problems are as for problem_find; a name in `only` ("a,b"; NULL: all) must have a bar. */
AS_MUST_CHECK as_status bars_run(const char *method, const char *only, bool json,
                                 struct as_err *err);

#endif
