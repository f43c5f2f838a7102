/* Cursors of lists: the place where a page ended, as opaque text. */
#ifndef ASSAY_SCHEDULER_SERVICES_CURSOR_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_CURSOR_PRIV_H

#include "base/arena.h"
#include "scheduler/rows/page.h"

#define CURSOR_FIELDS_MAX 6

/* Format a cursor: hexadecimal of "list:field:field…". Fields may hold any byte except ':' and NUL;
 * the last one may hold ':'. NULL when memory is out. */
const char *cursor_make(struct arena *a, const char *list, const char *const *fields, size_t n);

/* Parse the n fields; they are in `a`. AS_E_INVAL: not a cursor of that list. */
AS_MUST_CHECK as_status cursor_read(struct arena *a, const char *cursor, const char *list,
                                    const char **ret_fields, size_t n, struct as_err *err);

/* Parse a field as a number. AS_E_INVAL. */
AS_MUST_CHECK as_status cursor_i64(const char *field, int64_t *ret, struct as_err *err);

/* The page's size, or its default. AS_E_INVAL: it is out of bounds. */
AS_MUST_CHECK as_status page_size(const struct page_req *page, int64_t *ret, struct as_err *err);

#endif
