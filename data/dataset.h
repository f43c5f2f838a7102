/* Data sets: the record that describes their files, their values in memory, and the inputs that a
 * model sees.
 *
 * The input is one of three. A *table*: rows of columns that are numbers or categories (text), both
 * of which may be missing. *Images*: rows of height x width x channels numbers, channels last. A
 * text of *tokens*: one long sequence of small whole numbers. A model predicts a class, one or more
 * numbers, or the next token.
 *
 * dataset_read.h reads the files, dataset_json.h stores the record, and data/preprocess turns rows
 * into inputs. The number of inputs of a model follows from the record alone: dataset_inputs(). */
#ifndef ASSAY_DATA_DATASET_H
#define ASSAY_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define DATASET_MAX_ROWS ((size_t)1 << 27)
#define DATASET_MAX_FEATURES ((size_t)65536) /* numbers in a row; also inputs of a model */
#define DATASET_MAX_VALUES ((size_t)1 << 29) /* rows x features: 2 GiB of float32 */
#define DATASET_MAX_CLASSES ((size_t)4096)
#define DATASET_MAX_CLASS_NAME ((size_t)256) /* bytes of the name of a class or category */
#define DATASET_AUTO_CLASSES ((size_t)100)   /* so many distinct whole numbers are classes */
#define DATASET_MAX_TARGETS ((size_t)256)    /* columns of a regression's target */
#define DATASET_CLUSTER_OUTPUTS ((size_t)2)  /* of a clustering: the cluster, and the distance */
#define DATASET_MAX_VOCAB ((size_t)65536)
#define DATASET_MAX_ARRAY_NAME ((size_t)128)       /* characters */
#define DATASET_MAX_CATEGORIES ((size_t)1024)      /* distinct values of one column */
#define DATASET_MAX_ALL_CATEGORIES ((size_t)16384) /* of all columns */
#define DATASET_MAX_COLUMNS                                                                        \
    ((size_t)4096) /* columns of a table with categories or missing values */
#define DATASET_MAX_PATTERNS ((size_t)1024) /* names in one of the lists of dataset_options */
#define DATASET_MAX_PATTERN ((size_t)1024)  /* bytes of one */
#define DATASET_MAX_CODES ((size_t)16)      /* numbers that stand for a missing value */
#define DATASET_MIN_BUCKETS ((size_t)8)     /* numbers that a text becomes */
#define DATASET_MAX_BUCKETS ((size_t)4096)
#define DATASET_BUCKETS ((size_t)256)
#define DATASET_MIN_CATEGORY_ROWS ((size_t)2) /* a value with fewer rows counts as "other" */

typedef enum dataset_format {
    DATASET_CSV,
    DATASET_NPY,
    DATASET_NPZ,
    DATASET_IDX,         /* MNIST's files; gzip too */
    DATASET_CIFAR,       /* binary version of CIFAR-10, or CIFAR-100 with its fine labels */
    DATASET_SAFETENSORS, /* arrays by name */
    DATASET_TEXT,        /* every byte is a token; gzip too */
    DATASET_TOKENS       /* llm.c's .bin: 256 int32 (20240520, 1, count), then uint16 */
} dataset_format;

/* AUTO is only for requests: an inspected data set has one of the other tasks. */
typedef enum dataset_task {
    DATASET_TASK_AUTO,
    DATASET_CLASSIFICATION,
    DATASET_REGRESSION,
    DATASET_LANGUAGE_MODELING,
    DATASET_CLUSTERING /* no target, or one that is left out; two outputs: cluster, distance */
} dataset_task;

typedef enum dataset_input { DATASET_TABLE, DATASET_IMAGE, DATASET_TOKEN_TEXT } dataset_input;

extern const char *const dataset_format_names[]; /* NULL-terminated, in the enums' order */
extern const char *const dataset_task_names[];
extern const char *const dataset_input_names[];

/* "csv", …, "tokens"; "auto", "classification", "regression", "language_modeling",
 * "clustering"; "table", "image", "tokens". */
const char *dataset_format_name(dataset_format format);
const char *dataset_task_name(dataset_task task);
const char *dataset_input_name(dataset_input input);
AS_MUST_CHECK as_status dataset_task_parse(const char *s, dataset_task *ret, struct as_err *err);

/* What is done to the targets of a regression before they are standardised
 * (data/preprocess/target_unit.h). */
typedef enum target_transform {
    TARGET_AS_IS,
    TARGET_LOG,
    TARGET_LOG1P,
    TARGET_QUANTILE
} target_transform;

extern const char *const target_transform_names[]; /* "none", …; NULL-terminated */

/* Either `table` alone, or `features` and `targets` (IDX, NPY). All borrowed.
 *   decoded  the path of the decoded copy, or NULL. dataset_load() reads the copy if it is whole
 *            and of this data set, else writes it (its folder exists; failing to write is no error)
 */
struct dataset_paths {
    const char *table, *features, *targets, *decoded;
};

/* Names of columns. '*' stands for any text and '?' for any character (fnmatch). */
struct dataset_names {
    char **name;
    size_t n;
};

/* Numbers that stand for a missing value, such as -999. */
struct dataset_codes {
    double *value;
    size_t n;
};

/* How to read the files, where the files do not state it. A zeroed struct is the default. The
 * strings are owned in dataset_info and by dataset_options_from_json(), borrowed elsewhere. */
struct dataset_options {
    bool channels_first; /* npy, npz, safetensors: images are [N, C, H, W] */
    bool raw;            /* tokens: there is no header, uint16 from the first byte */
    size_t vocab;        /* tokens: size of the vocabulary; 0: the largest token + 1 */
    char *x, *y;         /* npz, safetensors: names of the arrays; NULL: "x" and "y" */
    char *positive; /* of two classes, the one that metrics are of: it is the last one, class 1.
                          * NULL: the classes are in order (dataset_info) */
    char separator; /* csv: between cells. 0: dataset_inspect() finds it and writes it here
                          * unless it is a comma; dataset_load() reads commas */
    char decimal;   /* csv: ',' or '.'; 0: as above, a point */
    char comment;   /* csv: lines that begin with it are no records; 0: there are none */
    struct dataset_names select; /* csv: the columns that are inputs; none: all but the target … */
    struct dataset_names drop;   /* … and these, which are never inputs */
    struct dataset_names text;   /* csv: columns whose cells are texts (dataset_column) */
    struct dataset_names numeric; /* csv: columns of numbers, which may be written with signs; a
                                   * cell that is none is missing */
    struct dataset_codes missing; /* csv: a cell of an input that is one of these is missing */
    size_t buckets;               /* csv: numbers that a text becomes; 0: DATASET_BUCKETS */
    bool drop_unlabelled;         /* csv: a row that lacks its target is none of the rows */
};

bool dataset_codes_have(const struct dataset_codes *codes, double v);

/* Free what is owned. */
void dataset_options_done(struct dataset_options *o);
AS_MUST_CHECK as_status dataset_options_copy(const struct dataset_options *o,
                                             struct dataset_options *ret, struct as_err *err);

/* Which number of a cell a feature is. A date gives the days since a day that is recorded, and the
 * sine and cosine of 2 pi times: its weekday / 7 (Monday 0), its (month - 1) / 12, its share of the
 * day. A text gives counts of its words and pairs of words, hashed (data/text_hash.h). */
typedef enum dataset_part {
    DATASET_CELL, /* the number or the category itself */
    DATASET_DAYS,
    DATASET_WEEK_SIN,
    DATASET_WEEK_COS,
    DATASET_MONTH_SIN,
    DATASET_MONTH_COS,
    DATASET_HOUR_SIN,
    DATASET_HOUR_COS,
    DATASET_HASHED
} dataset_part;

extern const char *const dataset_part_names[]; /* "cell", "days", "week_sin", …; NULL-terminated */

/* One feature of a table, in the file's order, without the targets and the columns that are no
 * inputs. A column of the file is one feature; one of dates or texts is several, side by side,
 * which are numeric and have its name. A column whose cells are all missing is numeric. */
struct dataset_column {
    char *name; /* the header's, or the column's index as text */
    bool categorical;
    size_t n_missing; /* rows; 0 for cycles and texts, which are 0 where the cell is missing */
    size_t n_other;   /* categorical: rows whose value is too rare to be one of `values` */
    size_t n_values;
    char **values; /* categorical: in byte order; owned */
    dataset_part part;
    size_t index;   /* among the features of its column of the file, from 0 … */
    size_t n_parts; /* … which are so many; 0 means 1 */
    int64_t since;  /* dates: the day that is 0 in DATASET_DAYS, in days since 1970-01-01 */
    size_t n_empty; /* texts: rows whose cell is missing */
};

/* The number of features of the file's column whose first feature is c. */
size_t dataset_column_width(const struct dataset_column *c);

/* The record of a data set. A zeroed struct is empty. Strings are owned; dataset_info_done() frees
 * them. */
struct dataset_info {
    dataset_format format;
    dataset_task task;
    dataset_input input;
    struct dataset_options options; /* as the caller gave them, and what was found in the file */
    char *target;      /* the name of its column, "a,b" for several; NULL without a table */
    size_t n_rows;     /* for tokens, the number of tokens */
    size_t n_features; /* numbers in a row: of the columns, or height * width * channels; 1 for
                        * tokens */
    size_t n_outputs;  /* classes; columns of the target; for tokens, the vocabulary */
    size_t n_classes;  /* 0 unless the task is classification */
    char **classes;    /* numeric order when all are whole numbers below 2^53, else byte order; with
                        * options.positive that one last */
    size_t height, width, channels; /* images; else 0 */
    struct dataset_column *columns; /* [n_features] of a table; NULL: all numeric, none missing, no
                                     * names (arrays, tables past DATASET_MAX_COLUMNS, records from
                                     * before 2026-11-21) */
};

void dataset_info_done(struct dataset_info *info);

/* The first feature of the next column of the file, where `feature` is the first of one: one more
 * where columns are not described. So a loop goes over the columns of the file that are inputs. */
size_t dataset_next_column(const struct dataset_info *info, size_t feature);
size_t dataset_file_columns(const struct dataset_info *info); /* how many these are */

/* ---- how a model sees a row ----
 *
 * Inputs of a table: first the numeric columns, then the categorical columns, both in the order of
 * the file.
 *   numeric      the value; then, if the column has missing values in the file, an indicator: 1
 *                where the value was missing
 *   categorical  `slots`: one for each value, one for all other values (rare, or not seen in the
 *                training rows), and one for missing if the column has missing values in the file.
 *                One-hot: each slot is an input. As codes (for an embedding): the column is one
 *                whole number, and all columns share one numbering: the slots of the second column
 *                begin where those of the first end
 * Images have n_features inputs, tokens have 1. */

/* Inputs that are numbers: values and indicators of a table, n_features of an image, else 0. */
size_t dataset_numeric_inputs(const struct dataset_info *info);
size_t dataset_categorical_columns(const struct dataset_info *info); /* 0 but for tables */

/* Is a feature a number of its own, not one of the cycles of a date or the words of a text? NULL:
 * of a table whose columns have no names, all of which are. */
bool dataset_column_is_number(const struct dataset_column *c);
size_t dataset_number_columns(const struct dataset_info *info); /* such features of a table */

size_t dataset_column_slots(const struct dataset_column *column); /* categorical */
size_t dataset_category_slots(const struct dataset_info *info);   /* of all columns */

/* Inputs of a model with one-hot categories: dataset_numeric_inputs + dataset_category_slots; 1 for
 * tokens. With an embedding of width D, the first layer has dataset_numeric_inputs + D *
 * dataset_categorical_columns inputs, and the embedding has dataset_category_slots rows. */
size_t dataset_inputs(const struct dataset_info *info);

/* Text: the windows of `context` >= 1 tokens in an epoch over n_tokens tokens: one fewer than fit,
 * so that every phase below `context` leaves room for them and for the token after the last one; at
 * least one. */
size_t dataset_epoch_windows(size_t n_tokens, size_t context);

/* A data set as it is in the files. */
struct dataset {
    size_t n_rows, n_features, n_outputs;
    float *x; /* [n_rows, n_features], finite. In tables a missing number is NaN, and a category is
               * its index in `values` (n_values: other, n_values + 1: missing). NULL for tokens,
               * and when there are bytes */
    unsigned char *bytes; /* [n_rows, n_features], instead of x: see dataset_load_bytes(). From
                           * malloc, rounded up to whole elements of 4 bytes */
    int32_t *labels;      /* [n_rows], in [0, n_outputs); classification, else NULL */
    float *targets;       /* [n_rows, n_outputs]; regression, else NULL */
    int32_t *tokens;      /* [n_rows], in [0, n_outputs); language modeling, else NULL */
};

void dataset_done(struct dataset *d);

/* A row while files are read, for who must not hold all of them (dataset_rows.h). */
struct dataset_row_view {
    const float *x;       /* [n_features]; in tables as in struct dataset */
    int32_t label;        /* classification */
    const float *targets; /* [n_outputs]; regression, else NULL */
};

typedef as_status dataset_row_fn(void *ctx, const struct dataset_row_view *row, struct as_err *err);

#endif
