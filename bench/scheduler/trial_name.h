/* The names of attempts in an answer, found without parsing it: a claim's answer is large, and the
 * load generator must be cheap. */
#ifndef ASSAY_BENCH_SCHEDULER_TRIAL_NAME_H
#define ASSAY_BENCH_SCHEDULER_TRIAL_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trial_name {
    char sweep[96];
    int64_t number, attempt;
};

/* Find the next claimed trial of a ClaimResult from *at on, and set *at behind its name. */
bool trial_name_next(const char **at, struct trial_name *ret);

/* The path of a route of the attempt, such as "complete". */
void trial_path(const struct trial_name *t, const char *route, char *ret, size_t size);

#endif
