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
    const char *shown;    /* the name of FILE for people; NULL: its path */
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
    struct csv_dialect written;                 /* what they say: data_add_check() */
    const char *select, *drop, *text, *numeric; /* csv: names of columns, separated by commas */
    const char *missing;                        /* csv: numbers, separated by commas, … */
    double codes[DATASET_MAX_CODES];            /* … which are these: data_add_check() */
    size_t n_codes;
    bool drop_unlabelled; /* csv */
    int64_t buckets;
    const char *size; /* of images in a folder */
    bool grey;
};

/* The options about a table, for the option tables of all commands that register one. */
#define DATA_TABLE_OPTS(d)                                                                         \
    {"task",                                                                                       \
     0,                                                                                            \
     OPT_STRING,                                                                                   \
     &(d)->task,                                                                                   \
     "TASK",                                                                                       \
     NULL,                                                                                         \
     "instead of what follows from the target's values",                                           \
     "classification|regression|clustering"},                                                      \
        {"positive",                                                                               \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->positive,                                                                           \
         "CLASS",                                                                                  \
         NULL,                                                                                     \
         "of two classes, the one that precision, recall and F1 are of (the last one)"},           \
        {"separator",                                                                              \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->separator,                                                                          \
         "CHARACTER",                                                                              \
         NULL,                                                                                     \
         "csv: between cells, if the first lines do not show it; \"tab\" is a tab"},               \
        {"decimal",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->decimal,                                                                            \
         "SIGN",                                                                                   \
         NULL,                                                                                     \
         "csv: a comma if numbers are written 3,14 and the first lines do not show it"},           \
        {"comment",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->comment,                                                                            \
         "CHARACTER",                                                                              \
         NULL,                                                                                     \
         "csv: lines that begin with it are skipped"},                                             \
        {"drop",                                                                                   \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->drop,                                                                               \
         "COLUMNS",                                                                                \
         NULL,                                                                                     \
         "csv: columns that are no inputs; with commas between, * for any text"},                  \
        {"text",                                                                                   \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->text,                                                                               \
         "COLUMNS",                                                                                \
         NULL,                                                                                     \
         "csv: free texts, whose words become numbers"},                                           \
        {"numeric",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->numeric,                                                                            \
         "COLUMNS",                                                                                \
         NULL,                                                                                     \
         "csv: columns of numbers; a cell that is no number is missing"},                          \
        {"missing",                                                                                \
         0,                                                                                        \
         OPT_STRING,                                                                               \
         &(d)->missing,                                                                            \
         "NUMBERS",                                                                                \
         NULL,                                                                                     \
         "csv: numbers that mean that a value is missing, such as -999; with commas between"},     \
    {                                                                                              \
        "drop-unlabelled", 0, OPT_FLAG, &(d)->drop_unlabelled, NULL, NULL,                         \
            "csv: leave out the rows that lack the target"                                         \
    }

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
