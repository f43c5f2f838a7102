/* What reading and writing of model files share: for model/file/ alone. */
#ifndef ASSAY_MODEL_FILE_MODEL_FILE_PRIV_H
#define ASSAY_MODEL_FILE_MODEL_FILE_PRIV_H

#include "base/json.h"
#include "model/file/model_file.h"

#define MODEL_FILE_TRIAL_FORMAT "assay-model-1" /* of a trial's own model.safetensors */
#define MODEL_FILE_WEIGHT_SLACK 1e-6            /* how far from 1 the sum of weights may be */
#define MODEL_FILE_RATE_MAX 1e30                /* weights of a sum */
#define MODEL_FILE_PREFIX_MAX 32                /* bytes of "members/I/" with its NUL */

struct model_file {
    struct safetensors *tensors; /* NULL: a manifest alone */
    json_t *manifest;
    struct dataset_info info, residual; /* residual: of a sum, else empty */
    struct model_combine combine;
    double *combine_weights, *combine_biases,
        *class_weights; /* of `combine`; owned, as what follows */
    bool *combine_sums;
    struct model_bucket *combine_buckets;
    float *bucket_features;
    struct stack_own { /* what the stacks view */
        size_t *of;
        struct dataset_info info;
    } * stacks_own; /* [combine.n_stacks] */
    struct model_stack *combine_stacks;
    size_t *combine_stack, *combine_depth;
    size_t *n_tensors; /* [n]: of each member; owned */
    size_t *first;     /* [inputs + 1]: the first member of each, then n; owned */
    size_t n;
    struct model_member *members; /* [n]; views of specs, fits and manifest */
    struct train_spec *specs;     /* [n] */
    struct preprocess *fits;      /* [n] */
    bool of_trial;                /* tensors have no prefix */
};

/* Check a manifest and fill all of `f` but its tensors. Takes a new reference. On failure the
 * caller frees f. Errors as in model_file_read(). */
AS_MUST_CHECK as_status model_manifest_read(json_t *manifest, struct model_file *f,
                                            struct as_err *err);

/* The parts of it: `combine`, for these members of the manifest; and how members belong to its
 * inputs. */
AS_MUST_CHECK as_status model_manifest_combine(const json_t *obj, const json_t *members,
                                               struct model_file *file, struct as_err *err);
AS_MUST_CHECK as_status model_manifest_inputs(struct model_file *file, struct as_err *err);

/* Put " (by OTHER)" behind a message: the part of the manifest that a field contradicts. Yields
 * `st`. */
as_status model_manifest_against(as_status st, const char *other, struct as_err *err);

/* Does the record of a member's preprocessing go with its document and data set? `pointer` is the
 * member's. AS_E_INVAL: the message names the fields that contradict each other. */
AS_MUST_CHECK as_status model_manifest_fit(const struct model_member *m, const char *pointer,
                                           struct as_err *err);

/* The tensors input.mean, input.scale, target.mean and target.scale of a member repeat its record,
 * for programs that read the weights alone. Is this the name of one? Are they equal to the record
 * where they are there? AS_E_INVAL. */
bool model_file_is_moment(const char *name);
AS_MUST_CHECK as_status model_file_moments(const struct model_file *f, struct as_err *err);

/* The field `stacks` of `combine`, whose inputs are known (manifest_stacks.c). Without it the file
 * has none. */
AS_MUST_CHECK as_status model_manifest_stacks(struct json_fields *f, struct model_file *file,
                                              struct as_err *err);

/* The fields of a `combine` of kind by. */
AS_MUST_CHECK as_status model_manifest_by(struct json_fields *f, struct model_file *file,
                                          struct as_err *err);

/* A copy of a `combine` of kind by without the buckets that a reader would refuse and that change
 * no prediction. *ret is a new reference. AS_E_NOMEM. */
AS_MUST_CHECK as_status model_by_tidy(const struct dataset_info *info, const json_t *combine,
                                      json_t **ret, struct as_err *err);

/* Do members have inputs, which they name? */
static inline bool model_has_inputs(const struct model_combine *c)
{
    return c->kind == MODEL_LINEAR || c->kind == MODEL_BY || (c->kind == MODEL_MEAN && c->weights);
}

/* "members/12/" */
void model_file_prefix(size_t member, char ret[MODEL_FILE_PREFIX_MAX]);

/* The member that a tensor's name "members/12/layers.0.weight" begins with, and the rest of the
 * name, a view. False if it begins otherwise. */
bool model_file_owner(const char *name, size_t *ret_member, const char **ret_rest);

#endif
