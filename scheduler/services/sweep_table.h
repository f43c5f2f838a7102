/* The trials of one sweep as columns in memory: what a page that shows all of them holds. A row is
 * replaced whole when its trial changes, and remembers the event of its last change, so a reader
 * that has an older table gets the rows that changed since. Pure; one thread at a time.
 *
 * Columns, in this order:
 *   number u32, state dict, origin dict, attempt u32, restarts u32, value f64, step f64,
 *   infeasible u8, rung u32 (how many rungs it has reached), decision dict,
 *   created_at, started_at, ended_at f64 (Unix milliseconds), runner, client, group, reason dict
 *   tags dict (with commas between them)
 *   param:NAME   f64 if all values of the parameter are numbers, else dict: a text as itself,
 *                another value as JSON; no value: the parameter is not active
 *   predicted:NAME, deviation:NAME  f64: what the model of the search predicted of an objective
 *                when it chose the trial; the file of a whole table has them if some trial has one
 *   metric:NAME  f64: the last value of each metric that some trial reported, at most
 *                SWEEP_TABLE_METRICS of them */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_TABLE_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/services/table_kind.h"
#include "scheduler/sweep/sweep_doc.h"

#define SWEEP_TABLE_METRICS 256
#define SWEEP_TABLE_NAMES 8192 /* bytes of a list of columns */

struct sweep_table;

/* An empty table for trials of that sweep, whose document is borrowed for the call. AS_E_NOMEM.
 * Owned by the caller. */
AS_MUST_CHECK as_status sweep_table_create(const struct sweep_doc *doc, struct sweep_table **ret,
                                           struct as_err *err);
void sweep_table_free(struct sweep_table *t);
AS_DEFINE_FREEP(struct sweep_table, sweep_table_free)

/* Add a trial, whose number is the number of rows, or replace it. AS_E_INTERNAL: a number is left
 * out, or the row is no valid one. AS_E_NOMEM: the row may have lost some values; put it again. */
AS_MUST_CHECK as_status sweep_table_put(struct sweep_table *t, const struct table_row *row,
                                        struct as_err *err);
/* That event changed the trial; a number that has no row is ignored. A row without a mark has not
 * changed. */
void sweep_table_mark(struct sweep_table *t, int64_t number, int64_t event);

size_t sweep_table_rows(const struct sweep_table *t);
size_t sweep_table_bytes(const struct sweep_table *t); /* about what it holds */
/* How many rows changed after that event? O(rows). */
size_t sweep_table_changed(const struct sweep_table *t, int64_t since);

/* AS_E_INVAL: there is no such column. A metric that nobody reported, and a prediction that nobody
 * made, is a column without values. */
AS_MUST_CHECK as_status sweep_table_check(const struct sweep_table *t, const char *columns,
                                          struct as_err *err);

/* Append the file (data/formats/columnar.h) to `ret`. Errors as those of sweep_table_check();
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_table_write(const struct sweep_table *t,
                                          const struct table_part *part, struct str *ret,
                                          struct as_err *err);

#endif
