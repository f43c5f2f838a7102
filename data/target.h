/* The target of a data set while it is read: its task, its classes, and the class of a cell. For
 * dataset_csv.c and dataset_arrays.c. */
#ifndef ASSAY_DATA_TARGET_H
#define ASSAY_DATA_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"

/* One target: its text (NULL in NPY files) and, when it is a number, its value. `text` is borrowed
 * and without surrounding spaces. */
struct target_value {
    const char *text;
    size_t len;
    bool is_number;
    double number;
};

/* The distinct values so far that can still become classes, at most DATASET_MAX_CLASSES of each
 * kind. */
struct target_scan {
    dataset_task task; /* as requested */
    size_t n_rows;
    bool any_text, any_fraction;
    int64_t *whole; /* sorted */
    size_t n_whole, whole_cap;
    bool whole_full;
    char **texts; /* sorted by bytes, owned */
    size_t n_texts, texts_cap;
    bool texts_full;
};

void target_scan_done(struct target_scan *s);

/* AS_E_INVAL (the caller prefixes the place): text in a column that began with numbers, unless the
 * task is classification; a fraction among the classes of an NPY file; a class name that is too
 * long. AS_E_NOMEM. */
AS_MUST_CHECK as_status target_scan_add(struct target_scan *s, const struct target_value *v,
                                        struct as_err *err);

/* Decide the task: sets task, n_outputs, n_classes and classes of `info`, which has none yet.
 * AS_E_INVAL: one class only; AS_E_TOO_LARGE: too many; AS_E_NOMEM. */
AS_MUST_CHECK as_status target_scan_end(struct target_scan *s, struct dataset_info *info,
                                        struct as_err *err);

/* Are all class names whole numbers that a double holds exactly? Only then are classes compared as
 * numbers, else as text. */
bool target_classes_whole(const struct dataset_info *info);

/* Are the names of the classes distinct and in the order that dataset.h promises? target_class_of()
 * relies on it. */
bool target_classes_in_order(const struct dataset_info *info);

/* Put the positive class last, if the options name one. AS_E_INVAL: the data set has not two
 * classes, or none of this name. */
AS_MUST_CHECK as_status target_order_classes(struct dataset_info *info, struct as_err *err);

/* The index of the class of a value. AS_E_INVAL if it has no class. `whole` is
 * target_classes_whole(). */
AS_MUST_CHECK as_status target_class_of(const struct dataset_info *info, bool whole,
                                        const struct target_value *v, int32_t *ret,
                                        struct as_err *err);

/* The column that `target` names among n: by name (if there are names), or by index, negative from
 * the end. AS_E_INVAL; the message lists the columns. */
AS_MUST_CHECK as_status target_find_column(const char *target, size_t n, const char *const *names,
                                           size_t *ret, struct as_err *err);

/* The columns that `target` names: one, as above; or, if no column has the whole text as its name,
 * several distinct ones, separated by commas. *ret is owned by the caller. AS_E_INVAL,
 * AS_E_TOO_LARGE past DATASET_MAX_TARGETS, AS_E_NOMEM. */
AS_MUST_CHECK as_status target_find_columns(const char *target, size_t n, const char *const *names,
                                            size_t **ret, size_t *ret_n, struct as_err *err);

/* A text by which target_find_columns() finds these columns again: their names, separated by
 * commas; or their indices, if there are no names (NULL) or the names are ambiguous. Owned by the
 * caller. AS_E_INVAL: no text does. AS_E_NOMEM. */
AS_MUST_CHECK as_status target_name(const size_t *columns, size_t n, size_t n_columns,
                                    const char *const *names, char **ret, struct as_err *err);

/* Set task and n_outputs for n > 1 targets, which are always a regression. AS_E_INVAL: `task` is
 * classification. */
AS_MUST_CHECK as_status target_several(dataset_task task, size_t n, struct dataset_info *info,
                                       struct as_err *err);

/* AS_E_INVAL if v is not finite or too large for float32. */
AS_MUST_CHECK as_status target_check_float(double v, struct as_err *err);

#endif
