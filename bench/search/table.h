/* A problem that is a table: the value of every cell of a grid, in a CSV file (tables/make.py
 * describes its form). */
#ifndef ASSAY_BENCH_SEARCH_TABLE_H
#define ASSAY_BENCH_SEARCH_TABLE_H

#include <jansson.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

struct table;

/* The space's document in the file's comments: new reference. */
AS_MUST_CHECK as_status table_read_parameters(const char *path, json_t **ret, struct as_err *err);

/* Read every row. The space is borrowed and must outlive the table. AS_E_INVAL with the line: a row
 * that is not a configuration of the space, a repeated cell, or a missing cell. AS_E_IO,
 * AS_E_NOMEM.
 */
AS_MUST_CHECK as_status table_read(const char *path, const struct space *s, struct table **ret,
                                   struct as_err *err);
void table_free(struct table *t);
AS_DEFINE_FREEP(struct table, table_free)

size_t table_cells(const struct table *t);
double table_lowest(const struct table *t);
/* The cell's value; NaN for a run that failed. */
double table_value(const struct table *t, const struct config *c);

#endif
