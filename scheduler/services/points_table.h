/* The points of one metric of all trials of a sweep, thinned: what a chart of all curves draws.
 * Pure; one thread at a time.
 *
 * A trial has a line: its points in the order of their steps, of each step the value that counts
 * (as in GET …/measurements). A line keeps at most points_table_resolution() points: its first and
 * last one, and of each run of 2, 4, 8, … points the one with the lowest and the one with the
 * highest value, so no extreme is lost. All lines together keep at most POINTS_TABLE_MAX points, or
 * POINTS_LINE_MIN for each trial if that is more: when there are more, the resolution of every line
 * is halved.
 *
 * Columns, ascending by trial and step: trial u32, step f64, time f32 (seconds from the beginning
 * of its attempt until the server had it; NaN: unknown), value f64. */
#ifndef ASSAY_SCHEDULER_SERVICES_POINTS_TABLE_H
#define ASSAY_SCHEDULER_SERVICES_POINTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/services/table_kind.h"

#define POINTS_TABLE_MAX 2000000
#define POINTS_LINE_MAX 1024
#define POINTS_LINE_DEFAULT 64
#define POINTS_LINE_MIN 4 /* first, last, lowest, highest */

struct points_table;

/* No trials yet; `max_points` for POINTS_TABLE_MAX. NULL when memory is out. Owned by the caller.
 */
struct points_table *points_table_create(const char *metric, size_t max_points);
void points_table_free(struct points_table *t);
AS_DEFINE_FREEP(struct points_table, points_table_free)

const char *points_table_metric(const struct points_table *t); /* a view */

/* Trials below n have lines from now on, without points. AS_E_NOMEM. */
AS_MUST_CHECK as_status points_table_extend(struct points_table *t, size_t n, struct as_err *err);

/* What to read of a trial that changed: only what its attempt reported since, if that suffices;
 * else its line is emptied and all is read. The number is below points_table_trials(). */
struct point_want points_table_want(struct points_table *t, const struct table_change *change);

/* All that was wanted of this trial was added. Without it the next change empties its line. */
void points_table_complete(struct points_table *t, int64_t number);

/* Add the next point of a line; its step is above those that the line has. AS_E_INTERNAL: it is
 * not, or there is no such trial. AS_E_NOMEM: the line may lack points. */
AS_MUST_CHECK as_status points_table_add(struct points_table *t, const struct point_row *p,
                                         struct as_err *err);

/* See struct table_kind. */
void points_table_mark(struct points_table *t, int64_t number, int64_t event);
size_t points_table_trials(const struct points_table *t);
size_t points_table_bytes(const struct points_table *t);
size_t points_table_changed(const struct points_table *t, int64_t since);
size_t points_table_resolution(const struct points_table *t);

/* Append the file: of each line at most part->max_points, at least POINTS_LINE_MIN. A part has the
 * lines that changed, whole. AS_E_NOMEM. */
AS_MUST_CHECK as_status points_table_write(const struct points_table *t,
                                           const struct table_part *part, struct str *ret,
                                           struct as_err *err);

#endif
