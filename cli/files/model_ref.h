/* A model as it is written on the command line: NAME, NAME@3 or NAME@ALIAS. */
#ifndef ASSAY_CLI_FILES_MODEL_REF_H
#define ASSAY_CLI_FILES_MODEL_REF_H

#include <stdbool.h>

#include "base/status.h"

#define MODEL_REF_MAX 64 /* characters of a name, an alias */

struct model_ref {
    char name[MODEL_REF_MAX + 1];
    char version[MODEL_REF_MAX + 1]; /* a number, an alias, or "default" for the name alone: a
                                        segment of a path of the API */
    bool has_version;                /* it was written */
};

/* Which models exist is not checked. AS_E_USAGE: it has another form. */
AS_MUST_CHECK as_status model_ref_parse(const char *text, struct model_ref *ret,
                                        struct as_err *err);

#endif
