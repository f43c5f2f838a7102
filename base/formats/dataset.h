/* Data sets: what the server learns of a file at registration, and how the trainer loads it.
 *
 * A data set is a table of numbers with one target column (CSV, or NPY with a column index), or two
 * NPY files of the same number of rows. Features are numbers; a target is a class (text or whole
 * numbers) or a number. Whatever is not finite, missing or ragged is refused with its column and
 * line.
 *
 * dataset_inspect() reads a file once with memory for one record and the classes; dataset_load()
 * then holds the features as float32. Distinct calls may run in distinct threads. */
#ifndef ASSAY_BASE_FORMATS_DATASET_H
#define ASSAY_BASE_FORMATS_DATASET_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define DATASET_MAX_ROWS ((size_t)1 << 27)
#define DATASET_MAX_FEATURES ((size_t)65536)
#define DATASET_MAX_VALUES ((size_t)1 << 29) /* rows x features: 2 GiB of float32 */
#define DATASET_MAX_CLASSES ((size_t)4096)
#define DATASET_MAX_CLASS_NAME ((size_t)256) /* bytes */
#define DATASET_AUTO_CLASSES ((size_t)100)   /* whole numbers up to here are taken for classes */

typedef enum dataset_format { DATASET_CSV, DATASET_NPY } dataset_format;

/* AUTO is a question only: an inspected data set is one of the others. */
typedef enum dataset_task {
    DATASET_TASK_AUTO,
    DATASET_CLASSIFICATION,
    DATASET_REGRESSION
} dataset_task;

/* "csv", "npy"; "auto", "classification", "regression". */
const char *dataset_format_name(dataset_format format);
const char *dataset_task_name(dataset_task task);
AS_MUST_CHECK as_status dataset_format_parse(const char *s, dataset_format *ret,
                                             struct as_err *err);
AS_MUST_CHECK as_status dataset_task_parse(const char *s, dataset_task *ret, struct as_err *err);

/* Either `table` alone, or `features` and `targets` (NPY). All borrowed. */
struct dataset_paths {
    const char *table, *features, *targets;
};

/* A zeroed one is empty. Owned strings; dataset_info_done() frees them. */
struct dataset_info {
    dataset_format format;
    dataset_task task;
    char *target;         /* name of the column as it was found; NULL with a targets file */
    int64_t target_index; /* column of the table, from 0; -1 with a targets file */
    size_t n_rows;
    size_t n_features;
    size_t n_outputs; /* classes, or 1 for regression */
    size_t n_classes; /* 0 for regression */
    char **classes;   /* numeric order when all are whole numbers below 2^53, else byte order */
    char **features;  /* n_features names when the file has them, else NULL; not in the JSON */
};

void dataset_info_done(struct dataset_info *info);

/* Read the files through once and describe them.
 *   paths   a table, or features + targets; borrowed
 *   target  column name, or its index as text, negative from the end ("-1": the last); NULL only
 *           with a targets file
 *           A table's first record is its header when it looks like one (csv.h) or names the target
 *   task    AUTO: text, or whole numbers with at most DATASET_AUTO_CLASSES distinct values, is
 *           classification; everything else regression
 *   ret     owned by the caller, untouched on failure
 * AS_E_INVAL      a missing target (the message lists the columns), text among the features, a
 *                 value that is empty or not finite, ragged rows, one class only, fewer than 2 rows
 * AS_E_TOO_LARGE  past one of the limits above
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM */
AS_MUST_CHECK as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                                        const char *target, dataset_task task,
                                        struct dataset_info *ret, struct as_err *err);

struct dataset {
    size_t n_rows, n_features, n_outputs;
    float *x;        /* [n_rows, n_features], all finite */
    int32_t *labels; /* [n_rows], in [0, n_outputs); NULL for regression */
    float *targets;  /* [n_rows, 1]; NULL for classification */
};

/* Load what `info` describes: format, task, target and classes come from it, and rows and features
 * must be as it says. ret is owned by the caller, untouched on failure. Errors as dataset_inspect;
 * AS_E_INVAL too when the files do not match `info`. */
AS_MUST_CHECK as_status dataset_load(const struct dataset_paths *paths,
                                     const struct dataset_info *info, struct dataset *ret,
                                     struct as_err *err);
void dataset_done(struct dataset *d);

/* {format, task, target?, rows, features, outputs, classes?}. New reference, NULL when memory is
 * out. */
json_t *dataset_info_to_json(const struct dataset_info *info);

/* Reads what dataset_info_to_json writes; other fields of the object (a Dataset of the API has
 * more) are passed over. target_index is -1 until a file is read. `pointer` is the object's, for
 * messages. AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_info_from_json(const json_t *obj, const char *pointer,
                                               struct dataset_info *ret, struct as_err *err);

#endif
