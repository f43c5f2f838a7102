/* Command-line option tables: one table gives parsing, checking and --help.
 *
 * Every option has a long form (`--name VALUE` or `--name=VALUE`), and may have a letter and an
 * environment variable, which is used when the option is absent. Positional arguments are kept. */
#ifndef ASSAY_BASE_OPT_H
#define ASSAY_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "base/str.h"

typedef enum opt_kind {
    OPT_FLAG,     /* bool */
    OPT_STRING,   /* const char *, a view of argv or the environment */
    OPT_I64,      /* int64_t */
    OPT_DOUBLE,   /* double */
    OPT_DURATION, /* int64_t milliseconds */
    OPT_LIST,     /* struct opt_list: an option that may be given several times */
} opt_kind;

#define OPT_LIST_MAX 256

/* The values in the order of the command line: views of argv. */
struct opt_list {
    size_t n;
    const char *values[OPT_LIST_MAX];
};

/* At the end of `choices`: other values are allowed too. */
#define OPT_OR_ANOTHER "|*"

struct opt {
    const char *name; /* without the dashes; a row with name NULL ends the table */
    char letter;      /* 0: none */
    opt_kind kind;
    void *ret;         /* where the value is stored; the caller puts the default there */
    const char *value; /* what --help calls the value, such as "URL" */
    const char *env;   /* environment variable used when the option is absent, or NULL */
    const char *help;
    const char *choices; /* OPT_STRING: the values that are allowed, "a|b|c"; NULL: any */
};

/* Parse argv[1..argc). Positional arguments are moved to the front of argv[1…] in order;
 * *ret_n_args counts them. "--" ends the options. `--help` is a flag of the caller's own table.
 * AS_E_INVAL names the option. */
AS_MUST_CHECK as_status opt_parse(const struct opt *table, int argc, char **argv, int *ret_n_args,
                                  struct as_err *err);

/* The index of the first argument from argv[1] that is no option of the table and no value of one;
 * argc if there is none. Nothing is stored. AS_E_INVAL: an unknown option, or a value is
 * missing. */
AS_MUST_CHECK as_status opt_skip(const struct opt *table, int argc, char **argv, int *ret,
                                 struct as_err *err);

/* A number that was given, and where it must lie. */
struct opt_range {
    const char *name; /* of the option */
    int64_t value, min, max;
};

/* AS_E_INVAL names the first value that lies elsewhere: "--workers is 0, expected 1 to 256"; with
 * the max INT64_MAX "expected 1 or more". */
AS_MUST_CHECK as_status opt_check_ranges(const struct opt_range *ranges, size_t n,
                                         struct as_err *err);

/* Pass to fn() the arguments that set the variables of another program with the same table to what
 * those of this table are: "--name=value" for each number, each text that is not NULL and each
 * element of a list, "--name" for a flag that is true. Until fn() fails, whose status is returned;
 * AS_E_NOMEM. */
typedef as_status opt_argument_fn(void *arg, const char *argument, struct as_err *err);
AS_MUST_CHECK as_status opt_arguments(const struct opt *table, opt_argument_fn *fn, void *arg,
                                      struct as_err *err);

/* Append the choices as "a, b, c". */
void opt_choices(const struct opt *o, struct str *b);

/* Print the table as aligned help lines. */
void opt_help(const struct opt *table, FILE *out);

#endif
