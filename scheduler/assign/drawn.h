/* Suggestions of methods that do not learn, and what a trial's parameters leave out. Pure. */
#ifndef ASSAY_SCHEDULER_ASSIGN_DRAWN_H
#define ASSAY_SCHEDULER_ASSIGN_DRAWN_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/assignment_row.h"
#include "scheduler/suggester/prepared.h"
#include "scheduler/sweep/sweep_doc.h"

/* Draw the suggestion for a trial: its number, index, params and reason are set, in `a`; the rest
 * is zero. AS_E_EXHAUSTED: there is nothing left. Other errors are those of suggest(). */
AS_MUST_CHECK as_status draw_suggestion(struct arena *a, const struct sweep_doc *doc,
                                        int64_t number, int64_t index, struct made_trial *ret,
                                        struct as_err *err);

/* A suggestion that was prepared, as the trial of that number: what it lends lives as long as the
 * suggestion. The rest is zero. */
struct made_trial prepared_suggestion(const struct prepared *p, int64_t number);

/* The names of the document's parameters that `params` does not contain. */
AS_MUST_CHECK as_status inactive_names(struct arena *a, const json_t *doc, const json_t *params,
                                       const char ***ret, size_t *ret_n, struct as_err *err);

#endif
