/* The attempts of all trials of a sweep, and the seats of their gangs: what a timeline draws. Pure,
 * except that the kind `table_of_attempts` reads the database; one thread at a time.
 *
 * Columns, ascending by trial, attempt and seat: trial u32, attempt u32, seat f32 (NaN: the attempt
 * itself), runner, client, group dict (an attempt of a gang has none of them, its seats have
 * runners), began_at, ended_at f64 (Unix milliseconds; NaN: it has not ended), outcome dict (none:
 * it runs). */
#ifndef ASSAY_SCHEDULER_SERVICES_ATTEMPTS_TABLE_H
#define ASSAY_SCHEDULER_SERVICES_ATTEMPTS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/services/table_kind.h"

struct attempts_table;

/* NULL when memory is out. Owned by the caller. */
struct attempts_table *attempts_table_create(void);
void attempts_table_free(struct attempts_table *t);
AS_DEFINE_FREEP(struct attempts_table, attempts_table_free)

/* Trials below n are there from now on. AS_E_NOMEM. */
AS_MUST_CHECK as_status attempts_table_extend(struct attempts_table *t, size_t n,
                                              struct as_err *err);

/* Add an attempt or a seat, or replace it. New ones of a trial come in their order.
 * AS_E_INTERNAL: there is no such trial. AS_E_NOMEM: the row may have lost words; put it again. */
AS_MUST_CHECK as_status attempts_table_put(struct attempts_table *t, const struct timeline_row *row,
                                           struct as_err *err);

/* AS_E_NOMEM. See struct table_kind. */
AS_MUST_CHECK as_status attempts_table_write(const struct attempts_table *t,
                                             const struct table_part *part, struct str *ret,
                                             struct as_err *err);

#endif
