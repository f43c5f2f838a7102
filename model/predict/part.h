/* Members of one shape, in the slots of one network; or one member of trees or of k-means. For
 * model/predict/ alone. */
#ifndef ASSAY_MODEL_PREDICT_PART_H
#define ASSAY_MODEL_PREDICT_PART_H

#include "kernels/backend.h"
#include "model/file/model_file.h"
#include "model/network/network.h"
#include "model/plan/net.h"
#include "model/trees/tree_model.h"

struct predict_part {
    struct net_plan *plan; /* of each of its members; owned. NULL: trees or k-means */
    size_t outputs;        /* of each row, as it is computed */
    size_t encoding;       /* which encoding of rows they read */
    size_t input; /* of a combination by a column or of layers: the input of its members; else 0 */
    size_t depth; /* the layer that they are in */
    size_t n;
    size_t *member; /* [n]: their indices in the model, rising; owned */
    struct network *network;
    struct buf *x, *codes;         /* rows of a pass; NULL when there are none */
    struct tree_model *trees;      /* or neighbours */
    const struct train_spec *spec; /* of them; a view of the model */
    float *inputs;                 /* trees: [max_rows, tree_model_inputs()]; owned */
    float *centroids;              /* k-means: [clusters, dims]; owned. Else NULL */
    size_t clusters, dims;
};

void predict_part_done(struct predict_part *part);

/* The plan of a member; of others than networks NULL. AS_E_INVAL: its layers do not fit the data
 * set. Owned by the caller. */
AS_MUST_CHECK as_status predict_plan(const struct model_file *f, size_t member,
                                     struct net_plan **ret, struct as_err *err);

/* Do two plans have the same layers and widths? */
bool predict_plans_equal(const struct net_plan *a, const struct net_plan *b);

/* Has the file the weights of the members, and no others? For networks that are not made here.
 * AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status predict_part_check(const struct predict_part *part,
                                           const struct model_file *f, struct as_err *err);

/* Make the network for passes of up to max_rows rows, and set the weights of the members; or load
 * the trees or the centroids. AS_E_UNSUPPORTED: trees, and XGBoost's library is not there. */
AS_MUST_CHECK as_status predict_part_load(struct predict_part *part, struct backend *be,
                                          const struct model_file *f, size_t max_rows,
                                          struct as_err *err);

/* Encoded rows, as preprocess_apply() leaves them: x [rows, n_x], codes [rows, n_codes] or NULL. */
struct predict_rows {
    size_t rows, n_x, n_codes;
    const float *x;
    const int32_t *codes;
};

/* Put the rows through the network, the trees or k-means. ret[i] is for member part->member[i]: the
 * outputs [rows, part->outputs]. */
AS_MUST_CHECK as_status predict_part_run(struct predict_part *part, struct backend *be,
                                         const struct dataset_info *info,
                                         const struct predict_rows *rows, float *const *ret,
                                         struct as_err *err);

#endif
