/* Early stopping for people: the rung results of a trial (RungResult of the API), and what it has
 * done in a sweep (StoppingReport). */
#ifndef ASSAY_CLI_VIEW_RUNG_VIEW_H
#define ASSAY_CLI_VIEW_RUNG_VIEW_H

#include <jansson.h>

#include "base/str.h"
#include "cli/view/pairs.h"

/* Add a row for each result, with the decision and its reason. No rows when rungs is NULL or
 * null. */
void rung_view_rows(struct pairs *p, const json_t *rungs);

/* Append a line for each rung that a trial has reached, one about steps, and the warning if there
 * is one. Nothing when report is NULL or null. */
void rung_view_report(const json_t *report, struct str *b);

/* The same as rows, with the rungs that no trial has reached. */
void rung_view_pairs(struct pairs *p, const json_t *report);

#endif
