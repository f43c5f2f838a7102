/* A sweep document from a YAML or JSON file, with overrides from the command line, and with the
 * places of its fields for error messages. */
#ifndef ASSAY_CLI_FILES_DOCUMENT_H
#define ASSAY_CLI_FILES_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

#define DOCUMENT_MAX_BYTES (4 << 20)

struct document {
    char *name; /* name of the file, as given; all owned */
    char *text;
    size_t len;
    json_t *tree;
};

/* Read `path` ("-": standard input). A name that ends in .json is JSON, everything else YAML (of
 * which JSON is a part). AS_E_NOT_FOUND; AS_E_IO; AS_E_TOO_LARGE; AS_E_INVAL with file, line and
 * column. */
AS_MUST_CHECK as_status document_read(const char *path, struct document *ret, struct as_err *err);
void document_done(struct document *d);

/* Set a field, such as "limits.max_trials=10". Missing objects on the path are created. The value
 * is read as YAML. AS_E_USAGE: the message names what was expected. */
AS_MUST_CHECK as_status document_set(struct document *d, const char *assignment,
                                     struct as_err *err);

/* Put "FILE:LINE:COLUMN: /pointer: " before an error whose pointer names a field of the document.
 * The pointer is then emptied, because the message contains it. Returns st. */
as_status document_explain(const struct document *d, as_status st, struct as_err *err);

#endif
