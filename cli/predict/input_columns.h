/* Which columns of a table are those of a model. */
#ifndef ASSAY_CLI_PREDICT_INPUT_COLUMNS_H
#define ASSAY_CLI_PREDICT_INPUT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "data/dataset.h"

#define PREDICT_NO_COLUMN SIZE_MAX

struct predict_columns {
    size_t n;   /* cells of a row */
    size_t *of; /* [n] the first of the model's features that each gives; PREDICT_NO_COLUMN: none.
                    * Owned */
    char
        *ignored; /* names of columns that are neither the model's nor its target, and were not left
                    * out of its data set either; NULL: none */
};

void predict_columns_done(struct predict_columns *c);

/* Does the model know its columns by names, which a header must have? Else columns go by their
 * place. */
bool predict_columns_named(const struct dataset_info *info);

/* Match n columns with those of the model: by name in any order, or by their place if the model has
 * no names. A table without names that has all columns of the model's data set, also those that it
 * left out, is matched by the indices of these. `names` NULL: an array.
 * AS_E_INVAL: a column of the model is missing (the message has its name and those that are there),
 * or two have its name; a wrong number of columns. AS_E_NOMEM. */
AS_MUST_CHECK as_status predict_columns_match(const struct dataset_info *info,
                                              const char *const *names, size_t n,
                                              struct predict_columns *ret, struct as_err *err);

#endif
