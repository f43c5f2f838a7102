/* k nearest neighbours, as they are stored and predict: the training rows themselves (T. Cover,
 * P. Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information Theory 13,
 * 1967; weights by distance are those of scikit-learn).
 *
 * A model is one block of bytes, little-endian, whose arrays follow each other without gaps:
 *   char   [8]                "assaynn1"
 *   uint32 [4]                inputs, outputs, rows, and 1 for classes, 0 for numbers
 *   float  [rows][inputs]     the rows, encoded (data/preprocess)
 *   uint32 [rows]             of classes: the class of each row, below `outputs`
 *   float  [rows][outputs]    of numbers: the targets of each row
 *   float  [rows]             how much each row counts, above 0
 *
 * The squared distance of two rows is summed in double in the order of the inputs and rounded to
 * float32, FLT_MAX at most; where it is below NEIGHBOURS_ZERO of the sum of their squares, it is 0.
 * So what computes it in another order in double gets the same numbers. Of equally near rows the
 * first ones count. The prediction is the mean of the neighbours' classes (shares) or targets,
 * weighted by what they count and, if asked for, by 1 / distance; then rows at distance 0 leave no
 * other a share. */
#ifndef ASSAY_MODEL_NEIGHBOURS_NEIGHBOURS_H
#define ASSAY_MODEL_NEIGHBOURS_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define NEIGHBOURS_ZERO 1e-12
#define NEIGHBOURS_MAX_BYTES ((size_t)1 << 28) /* of a stored model */

struct neighbours_shape {
    size_t inputs, outputs;
    bool classes; /* else numbers */
};

/* What a model is made of; all borrowed. */
struct neighbours_rows {
    const float *x; /* [n, inputs] */
    size_t n;
    const int32_t *labels; /* [n]; NULL for numbers */
    const float *targets;  /* [n, outputs]; NULL for classes */
    const float *weights;  /* [n], >= 0: rows of 0 are left out. NULL: all 1 */
};

/* The bytes of a stored model of so many rows. */
size_t neighbours_bytes(const struct neighbours_shape *shape, size_t rows);

/* Make the bytes of a model; owned by the caller.
 * AS_E_INVAL: no row has a weight above 0. AS_E_TOO_LARGE: past NEIGHBOURS_MAX_BYTES.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status neighbours_write(const struct neighbours_shape *shape,
                                         const struct neighbours_rows *rows, char **ret,
                                         size_t *ret_len, struct as_err *err);

/* A model that predicts. A zeroed one is empty. */
struct neighbours {
    struct neighbours_shape shape;
    size_t n;
    const uint32_t *labels; /* [n]; NULL for numbers. These three are views of the bytes … */
    const float *targets;   /* [n, outputs]; NULL for classes */
    const float *weights;   /* [n] */
    const float *x;         /* [n, inputs] */
    char *copy;             /* … or of this, where they are not aligned; owned */
    float *blocks;          /* owned: x in another order, for vectors */
    double *squares;        /* owned: [n] the sum of the squares of each row */
};

/* Read and check a model.
 *   bytes  stay until neighbours_done(); hostile ones are refused
 *   ret    untouched on failure
 * AS_E_INVAL: not such bytes, cut short, another shape, a class that there is not, a number that is
 * not finite, a weight that is not above 0. AS_E_NOMEM. */
AS_MUST_CHECK as_status neighbours_read(const void *bytes, size_t len,
                                        const struct neighbours_shape *shape,
                                        struct neighbours *ret, struct as_err *err);
void neighbours_done(struct neighbours *m);

struct neighbours_opts {
    size_t k; /* neighbours of each row, at least 1; more than there are rows: all of them */
    bool by_distance;
    size_t threads; /* that predict rows side by side; at least 1 */
};

/* Predict rows.
 *   x    [rows, inputs]; borrowed
 *   ret  [rows, outputs]: shares of the classes, or numbers; NaN where an input is none
 * A row's bits depend on the row alone, and not on threads. Any number of threads may call it at
 * once. AS_E_NOMEM. */
AS_MUST_CHECK as_status neighbours_predict(const struct neighbours *m,
                                           const struct neighbours_opts *opts, const float *x,
                                           size_t rows, float *ret, struct as_err *err);

#endif
