/* The objectives and the constrained metrics of a sweep. `sweep` is a Sweep of the API. A sweep
 * with the field `metric` alone has one objective. */
#ifndef ASSAY_CLI_VIEW_OBJECTIVES_H
#define ASSAY_CLI_VIEW_OBJECTIVES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

size_t objectives_count(const json_t *sweep);         /* 1 or more */
bool objectives_has_constraints(const json_t *sweep); /* on metrics */

/* {name, goal} of objective i; a view of sweep, NULL past the last. */
const json_t *objectives_at(const json_t *sweep, size_t i);
bool objectives_maximizes(const json_t *objective);

/* The names of the objectives and then of the constrained metrics, each once: an array of texts,
 * owned by the caller; NULL when memory is out. */
json_t *objectives_names(const json_t *sweep);

/* Append "error (minimize), throughput (maximize)". */
void objectives_words(const json_t *sweep, struct str *b);

/* Append one constraint as "latency_ms <= 20" or "0.1 <= share <= 0.5". */
void objectives_bounds(const json_t *constraint, struct str *b);

#endif
