/* Model files: one model, with all that predicting needs.
 *
 * A model file is a safetensors file (data/formats/safetensors.h), so any library for that format
 * opens it. Its `__metadata__` has
 *   format   "assay-model"
 *   version  "1"
 *   model    the manifest, as JSON text:
 *     {"dataset": {…},                      the data set it was trained on (data/dataset_json.h)
 *      "combine": {"kind": "mean"},         how members make one prediction
 *      "members": [{"weight": 0.5, "train": {…}, "preprocessing": {…},
 *                   "trial"?: 12, "attempt"?: 1, "seed"?: "123", "sweep"?: "s",
 *                   "input"?: 0, "fold"?: 0}],
 *      "metrics"?: {…}, "measured_on"?: "held-out rows", "lineage"?: {…}}
 *   assay_crc32c  the checksum of the file; a model file without one is refused
 * The tensors of member I are those of its own model.safetensors, with the prefix "members/I/".
 *
 * combine.kind (the formulas: model/combine/combine.h):
 *   mean    {}: the weighted mean of the members' probabilities, or of their numbers in the
 *           targets' own unit. Weights are above 0 and their sum is 1.
 *   linear  {"inputs": "log" for classes, "outputs" for numbers, "weights": [one for each input],
 *           "biases": [one for each output]}: a stacked ensemble. An input is a model: the weighted
 *           mean of the members whose `input` is its index, which follow each other in the order of
 *           the inputs. Trials of several folds are inputs of several members, others of one. The
 *           weights of an input's members are above 0, and their sum is 1; those of inputs are any
 *           numbers but 0.
 *   sum     {}: boosting. The first member predicts what the model predicts, with weight 1. The
 *           others predict numbers, one for each output (model_residual_info), which are added with
 *           weights above 0: of a regression to its predictions, of classes to the logarithms of
 *           its probabilities.
 *   by      {"column": NAME, "buckets": [{"value": TEXT, "input": 0}], "other": 1}: each row has
 *           the prediction of one input: that of the value which the row has in a column of the
 *           data set, or `other` where the cell has no such value or is missing. A value is a text
 *           as a CSV file may have it: a category, a number or a date, which is compared as a model
 *           reads it.
 *
 * For classes `combine` of any kind may have further fields (search/ensemble/calibration.c fits
 * them):
 *   calibration  {"slope": 0.8, "bias"?: -0.1}: softmax over the classes of slope * ln(p), with the
 *                bias added for the second of two classes (combine_calibrate)
 *   threshold    of two classes: the second is predicted where its probability is above this;
 *                absent: the likelier one
 *   class_weights  [one for each class] of more classes: that class is predicted whose probability
 *                times its weight is the highest; absent: the likeliest one
 *
 * Where models of boosting are combined with others, `combine` of kind mean, linear or by has the
 * field "sums": [the inputs whose members are a sum, in rising order]. A mean then has inputs too,
 * and "weights": [one for each input], above 0, the sum is 1.
 *
 * Stacking in layers: `combine` of kind mean, linear or by
 * may have the field "stacks": [{"of": [1, 2], "inputs": [0]}]. The members of these inputs were
 * trained on the columns of the data set and, behind them, on what the inputs `of` predict, in this
 * order: of two classes the probability of the second one, else one number for each output
 * (model_stacked_info). An input may be of another stack itself. In a mean and a linear combination
 * the weight of an input that another one sees may be 0: it is there for that one alone.
 *
 * The bytes are a function of the content: equal members in the same order give the same file. A
 * model is known by the SHA-256 of its file. Its name, versions and times are not in the file.
 *
 * The file that a trial of the built-in trainer leaves (model.safetensors, format "assay-model-1")
 * is read as a model of one member. */
#ifndef ASSAY_MODEL_FILE_MODEL_FILE_H
#define ASSAY_MODEL_FILE_MODEL_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/formats/safetensors.h"
#include "data/preprocess/preprocess.h"
#include "model/combine/combine.h"
#include "model/document/train_spec.h"

#define MODEL_FILE_FORMAT "assay-model"
#define MODEL_FILE_VERSION "1"
#define MODEL_FILE_MAX_BYTES ((size_t)8 << 30) /* the default limit of readers, and the writer's */
#define MODEL_FILE_MAX_MEMBERS ((size_t)1024)
#define MODEL_FILE_MAX_BUCKETS ((size_t)1000)

/* ---- reading ---- */

/* A file that was read and checked whole. It is never changed, so threads may share it. */
struct model_file;

/* Read a file of at most max_bytes; its bytes are an image (base/file_image.h), and tensors that
 * need no other form, such as the nodes of extra trees, are used in it. AS_E_INVAL: damaged, cut
 * short, or not a model; the message begins with the path. AS_E_UNSUPPORTED: another version, or a
 * combine.kind that this version does not know; the message has what was found and what is known.
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status model_file_read(const char *path, size_t max_bytes, struct model_file **ret,
                                        struct as_err *err);

/* The same for the bytes of a file. Takes `bytes` (from malloc), even on failure. */
AS_MUST_CHECK as_status model_file_parse(char *bytes, size_t len, struct model_file **ret,
                                         struct as_err *err);
/* The same. Takes what *image holds, even on failure: it is zeroed. */
AS_MUST_CHECK as_status model_file_parse_image(struct file_image *image, struct model_file **ret,
                                               struct as_err *err);

void model_file_free(struct model_file *f);
AS_DEFINE_FREEP(struct model_file, model_file_free)

/* Views of f, until model_file_free(). */
const json_t *model_file_manifest(const struct model_file *f);
const struct dataset_info *model_file_data(const struct model_file *f);
size_t model_file_n_members(const struct model_file *f);

typedef enum model_combine_kind {
    MODEL_MEAN,
    MODEL_LINEAR,
    MODEL_SUM,
    MODEL_BY
} model_combine_kind;

/* A value of the column of MODEL_BY, and the input that predicts the rows with it. */
struct model_bucket {
    const char *value;
    size_t input;
    size_t width;          /* the features of the column */
    const float *features; /* [width]: the value as a row has it */
};

/* What an input of a further layer sees beside the columns of the data set: what the inputs `of`
 * predict. */
struct model_stack {
    const size_t *of; /* [n_of] */
    size_t n_of;
    const struct dataset_info *info; /* what its members were trained on: model_stacked_info() */
};

#define MODEL_NO_STACK SIZE_MAX

/* How members make one prediction: those of an input make one, then the inputs. */
struct model_combine {
    model_combine_kind kind;
    bool of_logs;          /* linear: of logarithms of probabilities */
    size_t n_inputs;       /* of a sum, and of a mean without weights: 1 */
    const double *weights; /* [n_inputs] of linear, and of a mean that has inputs; else NULL */
    const double *biases;  /* linear: [model_file_data()->n_outputs]; else NULL */
    const bool *sums;      /* [n_inputs]: are the members of the input a sum of boosting? Else their
                            * weighted mean is taken */
    size_t column;         /* by: the first feature of the column */
    const struct model_bucket *buckets; /* by: [n_buckets], sorted by their features */
    size_t n_buckets, other;
    const struct model_stack *stacks; /* [n_stacks] */
    size_t n_stacks;
    const size_t *stack; /* [n_inputs]: which stack an input sees, or MODEL_NO_STACK */
    const size_t *depth; /* [n_inputs]: 0 sees columns alone, others 1 more than the deepest that
                          * they see */
    /* Of classes, whatever the kind: what follows the combination. */
    struct combine_calibration calibration; /* slope 0: none */
    double threshold; /* of two classes: the second is predicted above it; NaN: the likelier one */
    const double *class_weights; /* [classes] of more: see above; NULL: the likeliest one */
};

/* The class that is predicted for a row with the probabilities p[classes]. */
size_t model_combine_class(const struct model_combine *c, const float *p, size_t classes);

/* Which input predicts a row?
 *   c    of kind MODEL_BY
 *   row  its features, as dataset_load() gives them
 * O(log n_buckets). */
size_t model_combine_input(const struct model_combine *c, const float *row);

/* A view of f. */
const struct model_combine *model_file_combine(const struct model_file *f);

struct model_member {
    const struct dataset_info
        *info;     /* what it was trained on: model_file_data(), its residual, or that of a stack */
    double weight; /* > 0; the sum over the members of an input is 1, but not in a sum */
    size_t input;  /* which input of the combination it belongs to */
    const struct train_spec *spec;
    const json_t *train;          /* the document of `spec` */
    const struct preprocess *fit; /* what this member's preprocessing learnt */
    int64_t trial, attempt;       /* 0: not known */
    const char *seed;             /* decimal; NULL: not known */
    const char *sweep;            /* id; NULL: that of the lineage */
};

/* i < model_file_n_members(). */
const struct model_member *model_file_member(const struct model_file *f, size_t i);

/* The members of an input, which follow each other: returns their number; *ret_first is the
 * first. */
size_t model_file_input(const struct model_file *f, size_t input, size_t *ret_first);

/* The number of a member's tensors, without those that repeat its preprocessing (input.mean, …). */
size_t model_file_n_tensors(const struct model_file *f, size_t member);

/* A tensor of a member, by its name in the member's own file; a view of f, or NULL. Its data may be
 * unaligned. */
const struct safetensors_tensor *model_file_find(const struct model_file *f, size_t member,
                                                 const char *name);

/* Copy the n values of a tensor. AS_E_INVAL: there is none of this name, type and number of
 * values; the message names it. */
AS_MUST_CHECK as_status model_file_tensor(const struct model_file *f, size_t member,
                                          const char *name, safetensors_type type, size_t n,
                                          void *ret, struct as_err *err);

/* ---- writing ---- */

/* The data set as the later members of a sum see it: a regression of as many numbers as `info` has
 * outputs. *ret: dataset_info_done(). AS_E_NOMEM. */
AS_MUST_CHECK as_status model_residual_info(const struct dataset_info *info,
                                            struct dataset_info *ret, struct as_err *err);

/* The numbers that an input adds to the rows of a further layer: of two classes 1, else one for
 * each output. And these of a row, from what the input predicts. */
size_t model_stacked_width(const struct dataset_info *info);
void model_stacked_values(const struct dataset_info *info, const float *predicted, float *ret);

/* The data set as the members of a further layer see it, behind n inputs.
 *   ret  dataset_info_done()
 * AS_E_INVAL: it is no table, or has too many columns; AS_E_NOMEM. */
AS_MUST_CHECK as_status model_stacked_info(const struct dataset_info *info, size_t n,
                                           struct dataset_info *ret, struct as_err *err);

/* A file that gives its members to a new model: a trial's model.safetensors or a model file. */
struct model_source {
    const char *path;
    double weight;          /* mean: > 0; a source of several members divides it by their weights.
                             * linear: not 0; the source is one input. by: not used, the same */
    int64_t trial, attempt; /* 0: those that the source has */
    const char *seed;       /* decimal; NULL: that of the source */
    const char *sweep;      /* id; NULL: that of the source */
};

/* Compose a model of n >= 1 sources, in this order.
 *   path     replaced by the file in one step, but not durably (file_publishv)
 *   combine  the manifest's `combine`; NULL: {"kind": "mean"}, or that of a single source that is a
 *            sum. Without `weights` and `sums`, which are those of the sources. Kind sum: the
 *            first source may be a sum itself, and the others were trained on its
 *            model_residual_info(). Kind by: inputs are the indices of sources; a value that the
 *            column does not have in the data set, or that is written in two ways, is left out if
 *            that changes no prediction
 *   about    {metrics?, measured_on?, lineage?}, taken over into the manifest; or NULL
 * All borrowed. AS_E_INVAL: a source is no model, two were trained on other data sets, weights that
 * do not add up to 1, another field in `about`, a column that the data set does not have.
 * AS_E_UNSUPPORTED as for model_file_read(), or a source is itself a linear combination or by a
 * column, or a sum in a sum. A source of several layers is one input, and those that it sees are
 * further ones, which equal inputs of other sources share.
 * AS_E_TOO_LARGE: past MODEL_FILE_MAX_BYTES or MODEL_FILE_MAX_MEMBERS. AS_E_NOT_FOUND, AS_E_IO,
 * AS_E_NOMEM. Takes the memory of all sources together. */
AS_MUST_CHECK as_status model_file_write(const char *path, const struct model_source *sources,
                                         size_t n, const json_t *combine, const json_t *about,
                                         struct as_err *err);

/* Compose the model of a trial of a further layer.
 *   path   as of model_file_write()
 *   own    the mean of its own trainings, on model_stacked_info() of the others
 *   of     [n >= 1] the models whose predictions it saw, in this order; their weights do not count
 *   about  as of model_file_write()
 * All borrowed. AS_E_INVAL: `own` was trained on other columns; and as of model_file_write(). */
AS_MUST_CHECK as_status model_file_write_stacked(const char *path, const struct model_source *own,
                                                 const struct model_source *of, size_t n,
                                                 const json_t *about, struct as_err *err);

/* Write one part of a mean as a model of its own: a member, or an input that is a sum.
 *   path   as of model_file_write()
 *   from   the model file
 *   part   below parts
 *   parts  how many models `from` is the mean of
 * AS_E_INVAL: it is no model, not such a mean, or a part of it is a mean of several.
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_UNSUPPORTED, AS_E_NOMEM. */
AS_MUST_CHECK as_status model_file_write_part(const char *path, const char *from, size_t part,
                                              size_t parts, struct as_err *err);

#endif
