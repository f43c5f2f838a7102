/* assay data add: uploads files and registers them as a data set. */
#ifndef ASSAY_CLI_COMMANDS_DATA_ADD_H
#define ASSAY_CLI_COMMANDS_DATA_ADD_H

#include <stdint.h>

#include "base/status.h"
#include "cli/session/session.h"
#include "data/remarks.h"

/* The command line; views of argv, NULL or 0 where an option is absent. */
struct data_add {
    const struct session *session;
    const char *name;
    const char *file;     /* FILE, or --features */
    const char *features; /* --features */
    const char *targets;
    const char *test, *test_targets; /* files of the test rows */
    const char *test_column;         /* or the column that says which they are */
    const char *format;
    const char *target, *task, *description;
    bool channels_first, raw;
    bool looked_at; /* the caller has said the remarks on the table */
    int64_t vocab;
    const char *x, *y, *positive;
    const char *separator, *decimal, *comment;  /* csv */
    const char *select, *drop, *text, *numeric; /* csv: names of columns, separated by commas */
    int64_t buckets;
    const char *size; /* of images in a folder */
    bool grey;
};

/* Check that the options fit together, and set `file` and `format` if other options determine them.
 * AS_E_USAGE. */
AS_MUST_CHECK as_status data_add_check(struct data_add *d, struct as_err *err);

/* How the table is read, as struct dataset_options. *ret, zeroed before, is owned by the caller, on
 * failure too. AS_E_INVAL names the option; AS_E_NOMEM. */
AS_MUST_CHECK as_status data_add_options(const struct data_add *d, struct dataset_options *ret,
                                         struct as_err *err);

/* Say the remarks on a table, a line each, and how many more there are. */
void remarks_say(const struct table_look *look, const struct remark *remarks, size_t n);

/* Say what there is to remark on a table (data/remarks.h); then upload and register the data
 * set, and print it. Errors of the client; errors about the content name the files. */
AS_MUST_CHECK as_status data_add(const struct data_add *d, struct as_err *err);

#endif
