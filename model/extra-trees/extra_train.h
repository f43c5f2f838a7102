/* Training of extremely randomised trees, tree by tree, so that the caller can report, save and
 * stop between them. Several trees grow at once, one in each thread, and join the forest in their
 * order. A tree depends on the seed and its index alone, so the forest has the same bits whatever
 * the number of threads, and when it was saved and restored after any tree. */
#ifndef ASSAY_MODEL_EXTRA_TREES_EXTRA_TRAIN_H
#define ASSAY_MODEL_EXTRA_TREES_EXTRA_TRAIN_H

#include "base/mem.h"
#include "model/extra-trees/extra_grow.h"

struct extra_opts {
    struct extra_limits limits;
    struct extra_shape shape;
    size_t trees; /* of the whole forest: no more than these grow */
    uint64_t seed;
    size_t threads; /* at least 1 */
};

/* Rows; all borrowed for the call. As struct extra_rows, but row by row. */
struct extra_part {
    const float *x; /* [n, inputs] */
    size_t n;
    const int32_t *labels;
    const float *targets, *weights;
};

typedef enum extra_side { EXTRA_TRAINING, EXTRA_HELD } extra_side;

struct extra_train;

/* AS_E_NOMEM, AS_E_TOO_LARGE. Owned by the caller. */
AS_MUST_CHECK as_status extra_train_create(const struct extra_opts *opts,
                                           const struct extra_part *training,
                                           const struct extra_part *held, struct extra_train **ret,
                                           struct as_err *err);
void extra_train_free(struct extra_train *t);
AS_DEFINE_FREEP(struct extra_train, extra_train_free)

size_t extra_train_trees(const struct extra_train *t); /* done */

/* Add the next tree. AS_E_NOMEM; AS_E_TOO_LARGE: the forest has EXTRA_MAX_NODES. */
AS_MUST_CHECK as_status extra_train_tree(struct extra_train *t, struct as_err *err);

/* The means over the trees that are done, at least 1: ret [n, outputs], the bits of
 * extra_forest_predict(). AS_E_NOMEM. */
AS_MUST_CHECK as_status extra_train_predict(struct extra_train *t, extra_side side, float *ret,
                                            struct as_err *err);

/* The forest as bytes (extra_forest.h); owned by the caller. At least one tree is done. */
AS_MUST_CHECK as_status extra_train_save(const struct extra_train *t, char **ret, size_t *ret_len,
                                         struct as_err *err);

/* Continue after the trees that were saved; t is new. AS_E_INVAL: as of extra_forest_read(), or
 * more trees than the forest is to have. */
AS_MUST_CHECK as_status extra_train_restore(struct extra_train *t, const void *bytes, size_t len,
                                            struct as_err *err);

#endif
