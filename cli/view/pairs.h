/* Rows of name and value: `state  running`. In a pipe a tab separates the two. */
#ifndef ASSAY_CLI_VIEW_PAIRS_H
#define ASSAY_CLI_VIEW_PAIRS_H

#include <jansson.h>

#include "base/str.h"
#include "cli/view/terminal.h"

struct pairs {
    struct str text; /* owned */
    struct terminal terminal;
    size_t name_width; /* columns of the names on a terminal */
};

/* Add a row; no row when value is NULL or "". The value is escaped to one line. */
void pairs_add(struct pairs *p, const char *name, style s, const char *value);
void pairs_addf(struct pairs *p, const char *name, const char *fmt, ...) AS_PRINTF(3, 4);

/* Add a row for a scalar of the API; no row for null. */
void pairs_add_json(struct pairs *p, const char *name, const json_t *v);

/* Write all to stdout and empty it. AS_E_NOMEM; AS_E_IO. */
AS_MUST_CHECK as_status pairs_print(struct pairs *p, struct as_err *err);

#endif
