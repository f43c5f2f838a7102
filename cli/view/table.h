/* Tables: aligned and fitted to a terminal, tab-separated for a pipe.
 *
 * Cells are added in row-major order and escaped to one line. A table that ran out of memory stays
 * so until table_format reports it, as struct str does. */
#ifndef ASSAY_CLI_VIEW_TABLE_H
#define ASSAY_CLI_VIEW_TABLE_H

#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/view/terminal.h"

typedef enum table_align { TABLE_LEFT, TABLE_RIGHT } table_align;

struct table;

/* NULL when memory is out. Owned by the caller. */
struct table *table_create(void);
void table_free(struct table *t);
AS_DEFINE_FREEP(struct table, table_free)

/* All columns come before the first cell. `min` is the width below which it is never cut: the table
 * hides whole columns from the right instead; 0 stands for its header's width. Cells of TABLE_RIGHT
 * columns, numbers as they are, are never cut; only their headers are. */
void table_column(struct table *t, const char *header, table_align align, size_t min);

void table_cell(struct table *t, const char *text); /* NULL: "-" on a terminal, "" in a pipe */
void table_cell_styled(struct table *t, style s, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) AS_PRINTF(2, 3);

size_t table_rows(const struct table *t);

/* Append the table. Not a terminal: a line of headers and a line per row, cells separated by tabs.
 * A terminal: upper-case headers, two blanks between columns, cells cut with an ellipsis so that
 * lines fit; columns that do not fit at all are left out and named in ret_hidden (may be NULL; "a,
 * b"). AS_E_NOMEM. */
AS_MUST_CHECK as_status table_format(const struct table *t, const struct terminal *terminal,
                                     struct str *b, struct str *ret_hidden, struct as_err *err);

#endif
