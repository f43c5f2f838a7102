/* Tables: aligned and fitted to a terminal, tab-separated for a pipe.
 *
 * Cells are added in row-major order and escaped to one line. When
 * memory runs out, the table keeps that state and table_format() reports it, as struct str does. */
#ifndef ASSAY_CLI_VIEW_TEXT_TABLE_H
#define ASSAY_CLI_VIEW_TEXT_TABLE_H

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

/* Add a column; all columns must be added before the first cell. A column is never cut below `min`
 * columns (0: the width of its header); the table hides whole columns from the right instead. Cells
 * of TABLE_RIGHT columns are numbers and are never cut; only their headers are. */
void table_column(struct table *t, const char *header, table_align align, size_t min);

void table_cell(struct table *t, const char *text); /* NULL: "-" on a terminal, "" in a pipe */
void table_cell_styled(struct table *t, style s, const char *text);
void table_cellf(struct table *t, const char *fmt, ...) AS_PRINTF(2, 3);

size_t table_rows(const struct table *t);

/* Append the table. In a pipe: a line of headers and a line per row, cells separated by tabs. On a
 * terminal: headers in upper case, two blanks between columns, and cells cut with an ellipsis so
 * that lines fit. Columns that do not fit are left out, and ret_hidden (may be NULL) names them as
 * "a, b". AS_E_NOMEM. */
AS_MUST_CHECK as_status table_format(struct table *t, const struct terminal *terminal,
                                     struct str *b, struct str *ret_hidden, struct as_err *err);

/* The same in pieces, for tables that do not fit into memory. Add all rows once, in pieces with
 * table_forget_rows() after each, so that the widths are known (in a pipe that is not needed);
 * append the head; add all rows again, in pieces, each followed by table_format_rows() and
 * table_forget_rows(). AS_E_NOMEM. */
AS_MUST_CHECK as_status table_format_head(struct table *t, const struct terminal *terminal,
                                          struct str *b, struct str *ret_hidden,
                                          struct as_err *err);
AS_MUST_CHECK as_status table_format_rows(const struct table *t, const struct terminal *terminal,
                                          struct str *b, struct as_err *err);
void table_forget_rows(struct table *t); /* their widths are kept */

#endif
