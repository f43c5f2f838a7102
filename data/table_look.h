/* A look at a CSV table before anything is learned from it: of each column what its cells are, how
 * many values it has, whether it is an identifier, constant, or says what the target is; of the
 * target the task and the classes; the rows that are copies of others.
 *
 * Unlike dataset_inspect() it does not refuse a column that no model can use, nor rows that lack
 * their target: it says so, and the caller leaves them out. data/remarks.h puts what it found into
 * sentences. */
#ifndef ASSAY_DATA_TABLE_LOOK_H
#define ASSAY_DATA_TABLE_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/formats/csv_dialect.h"
#include "data/missing_code.h"
#include "data/skewness.h"

/* Values of a column that are counted, unless all of its values differ so far. */
#define TABLE_LOOK_VALUES ((size_t)4096)

/* The kind that dataset_inspect() gives a column; LOOK_EMPTY: every cell is missing. */
typedef enum look_kind { LOOK_NUMBER, LOOK_CATEGORY, LOOK_DATE, LOOK_TEXT, LOOK_EMPTY } look_kind;

/* What float32, in which tables are kept, takes from numbers. */
struct look_rounding {
    double n, mean, m2; /* of the numbers; m2: the sum of squared distances from the mean */
    double lost, most;  /* the sum of the squares of what rounding changes, and the most of one */
    float least, greatest;
};

/* Is it more than a hundredth of how much the numbers differ? */
bool look_rounding_matters(const struct look_rounding *r);

struct look_column {
    char *name; /* owned */
    look_kind kind;
    size_t n_missing, n_numbers, n_text; /* cells; n_text: neither missing nor a number */
    char *text;                          /* the first of n_text; NULL: none. Owned */
    size_t text_line;
    size_t n_values; /* different ones */
    bool many;       /* there are more than TABLE_LOOK_VALUES: n_values is a lower bound */
    bool constant;   /* one value in all rows, none missing */
    bool identifier; /* see table_look.c */
    bool is_target;  /* its values say what the target is: see table_look.c */
    bool stray;      /* numbers, and cells of text that are no categories: see table_look.c */
    bool slashed;    /* texts such as 3/2/2021: days in an order that is not certain */
    bool written;    /* texts that are numbers as people write them (written_number.h) */
    bool too_long;   /* texts, one of them too long for a category */
    struct look_rounding rounding; /* of numbers */
    bool has_code;                 /* one of its numbers may stand for a missing value … */
    struct found_code code;        /* … this one; strays apart */
    char *bad; /* of numbers: what is said of the first that is infinite or too large; NULL:
                      * none. Owned */
};

struct table_look {
    struct csv_dialect dialect;
    size_t n_rows, n_columns;    /* rows that have a target; columns: those that are inputs */
    struct look_column *columns; /* [n_columns]; owned */
    char *target;                /* its name, as of dataset_info; owned */
    size_t n_targets;
    dataset_task task;             /* classification or regression */
    size_t n_classes;              /* 0: a regression */
    size_t rarest;                 /* rows of the rarest class … */
    char *rarest_name;             /* … and its name; NULL: a regression. Owned */
    size_t n_single;               /* classes that have one row */
    struct skewness skewness;      /* of one target of numbers; else empty */
    struct look_rounding rounding; /* the same */
    bool one_value;                /* … which is the same float32 in all rows */
    char *alike[2]; /* two classes that differ by the case of letters; NULL: none. Owned */
    /* The first of targets that are numbers as people write them; NULL: they are not. Then nothing
     * else is known of them. Owned. */
    char *written;
    size_t n_copies;                      /* rows that repeat an earlier one, the target included */
    size_t n_unlabelled, unlabelled_line; /* rows that lack the target, and the first one's line */
    bool drop_unlabelled;                 /* they are left out, by the options */
};

void table_look_done(struct table_look *t);

/* Read the table through once.
 *   target, task, options  as for dataset_inspect(); borrowed
 *   ret                    owned by the caller, untouched on failure
 * Errors are those of dataset_inspect() about the file, the target and the options. Needs memory
 * for two hashes of each row, and one of each value of the columns whose values all differ. */
AS_MUST_CHECK as_status table_look(const char *path, const char *target, dataset_task task,
                                   const struct dataset_options *options, struct table_look *ret,
                                   struct as_err *err);

#endif
