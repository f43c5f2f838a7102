/* The one place where arrays of data sets are allocated, so that limits and overflow are checked
 * once for all formats. A data set is floats or, where all values are integers from 0 to 255,
 * bytes; dataset_to_bytes() converts in place of a second reader. */
#include "data/dataset_alloc.h"

#include <math.h>
#include <sys/mman.h>

as_status dataset_check_size(size_t rows, size_t features, struct as_err *err)
{
    size_t values;
    if (features == 0)
        return as_fail(err, AS_E_INVAL,
                       "the table has no feature: it needs a column besides the target");
    if (rows > DATASET_MAX_ROWS || features > DATASET_MAX_FEATURES ||
        __builtin_mul_overflow(rows, features, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu features: at most %zu rows, %zu features and %zu values",
                       rows, features, DATASET_MAX_ROWS, DATASET_MAX_FEATURES, DATASET_MAX_VALUES);
    return AS_OK;
}

as_status dataset_check_match(const struct dataset_info *info, size_t rows, size_t features,
                              struct as_err *err)
{
    if (features != info->n_features)
        return as_fail(err, AS_E_INVAL, "the file has %zu features, the data set says %zu",
                       features, info->n_features);
    if (rows > info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has more than the %zu rows of the data set",
                       info->n_rows);
    if (rows < info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has %zu rows, the data set says %zu", rows,
                       info->n_rows);
    return AS_OK;
}

#define HUGE_FROM ((size_t)8 << 20) /* bytes */
#define HUGE_PAGE ((uintptr_t)2 << 20)

/* Use large pages for large arrays: touching 188 MB of fresh memory in pages of 4 KiB takes as long
 * as reading and converting the values. This is only advice to the kernel, so errors are
 * ignored. */
static void advise_huge(void *p, size_t size)
{
    uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)p + size) & ~(HUGE_PAGE - 1);
    if (p && size >= HUGE_FROM && end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static unsigned char *alloc_bytes(const struct dataset *d)
{
    size_t n = d->n_rows * d->n_features / 4 + 1;
    unsigned char *bytes = as_calloc(n, 4);
    advise_huge(bytes, 4 * n);
    return bytes;
}

as_status dataset_alloc(const struct dataset_info *info, bool bytes, struct dataset *ret,
                        struct as_err *err)
{
    as_status st = dataset_check_size(info->n_rows, info->n_features, err);
    if (st < 0)
        return st;
    ret->n_rows = info->n_rows;
    ret->n_features = info->n_features;
    ret->n_outputs = info->n_outputs;
    bool tokens = info->task == DATASET_LANGUAGE_MODELING;
    bool alone = info->task == DATASET_CLUSTERING; /* without targets */
    if (tokens)
        ret->tokens = as_calloc(info->n_rows, sizeof *ret->tokens);
    else if (bytes)
        ret->bytes = alloc_bytes(ret);
    else
        ret->x = as_calloc(info->n_rows * info->n_features, sizeof *ret->x);
    advise_huge(ret->x, info->n_rows * info->n_features * sizeof *ret->x);
    if (info->task == DATASET_CLASSIFICATION)
        ret->labels = as_calloc(info->n_rows, sizeof *ret->labels);
    else if (!tokens && !alone)
        ret->targets = as_calloc(info->n_rows * info->n_outputs, sizeof *ret->targets);
    if (tokens ? !ret->tokens
               : (!ret->x && !ret->bytes) || (!alone && !ret->labels && !ret->targets))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu features", info->n_rows,
                       info->n_features);
    return AS_OK;
}

/* ---- bytes ---- */

bool dataset_is_bytes(const struct dataset *d)
{
    for (size_t i = 0; d->x && i < d->n_rows * d->n_features; i++)
        if (!(d->x[i] >= 0 && d->x[i] <= 255 && d->x[i] == floorf(d->x[i])) || signbit(d->x[i]))
            return false;
    return d->x != NULL;
}

as_status dataset_to_bytes(struct dataset *d, struct as_err *err)
{
    size_t n = d->n_rows * d->n_features;
    if (!dataset_is_bytes(d))
        return AS_OK;
    d->bytes = alloc_bytes(d);
    if (!d->bytes)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu features", d->n_rows,
                       d->n_features);
    for (size_t i = 0; i < n; i++)
        d->bytes[i] = (unsigned char)d->x[i];
    free(as_steal(d->x));
    return AS_OK;
}
