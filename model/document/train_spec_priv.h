/* Shared by the parts of the parser of train documents: for this folder alone. */
#ifndef ASSAY_MODEL_DOCUMENT_TRAIN_SPEC_PRIV_H
#define ASSAY_MODEL_DOCUMENT_TRAIN_SPEC_PRIV_H

#include "base/json.h"
#include "model/document/train_spec.h"

#define TRAIN_BELOW_ONE 0x1.fffffep-1 /* the largest float32 below 1 */
#define TRAIN_LARGEST_RATE 1e6        /* keeps float32 arithmetic finite; larger rates diverge */

/* An optional number. */
struct train_number {
    const char *name;
    double min, max;
    double *ret;
};
AS_MUST_CHECK as_status train_spec_numbers(struct json_fields *f, const struct train_number *list,
                                           size_t n, struct as_err *err);

struct train_integer {
    const char *name;
    int64_t min, max;
    int64_t *ret;
};
AS_MUST_CHECK as_status train_spec_integers(struct json_fields *f, const struct train_integer *list,
                                            size_t n, struct as_err *err);

/* An optional object: AS_OK with *ret_there false when it is absent. */
AS_MUST_CHECK as_status train_spec_section(struct json_fields *parent, const char *name,
                                           struct json_fields *ret, bool *ret_there,
                                           struct as_err *err);

/* AS_E_INVAL at the field `name` of `pointer`: "POINTER: found FOUND, expected EXPECTED". */
AS_MUST_CHECK as_status train_spec_wrong(const char *pointer, const char *name, const json_t *found,
                                         const char *expected, struct as_err *err);

/* Something in the document that does not go with something else in it. */
struct train_clash {
    bool found;
    const char *what, *why;
};

/* The first one that is found; NULL: none is. */
const struct train_clash *train_spec_find_clash(const struct train_clash *list, size_t n);

/* AS_E_INVAL at the pointer `at`, for the first one that is found: "AT: found NAME with WHAT: WHY".
 */
AS_MUST_CHECK as_status train_spec_refuse_clash(const struct train_clash *list, size_t n,
                                                const char *at, const char *name,
                                                struct as_err *err);

/* train_spec_kmeans.c: the fields of k-means in `model`; and what does not go with it in the whole
 * document, whose number of epochs is set where it has none. */
AS_MUST_CHECK as_status train_spec_parse_kmeans(struct json_fields *f, struct train_model_spec *m,
                                                struct as_err *err);
AS_MUST_CHECK as_status train_spec_check_kmeans(const struct json_fields *doc, struct train_spec *s,
                                                struct as_err *err);

/* train_spec_model.c: the field `model` of doc. */
AS_MUST_CHECK as_status train_spec_parse_model(struct json_fields *doc, struct train_model_spec *m,
                                               struct as_err *err);

/* train_spec_blocks.c: the items of a cnn's `layers`; `pointer` is that of `list`. m->activation is
 * already set. */
AS_MUST_CHECK as_status train_spec_parse_blocks(const json_t *list, const char *pointer,
                                                struct faults *faults, struct train_model_spec *m,
                                                struct as_err *err);

/* train_spec_distributed.c: the field `distributed` of doc. The optimizer and the batches are
 * already set. */
AS_MUST_CHECK as_status train_spec_parse_distributed(struct json_fields *doc,
                                                     struct train_spec *spec, struct as_err *err);

/* train_spec_model_parallel.c: the field `model_parallel` of `distributed`; d->blocks is owned by
 * the caller. What goes with that strategy, when all fields are set. More ranks than blocks. */
AS_MUST_CHECK as_status train_spec_parse_model_parallel(struct json_fields *f,
                                                        struct distributed_spec *d,
                                                        struct as_err *err);
AS_MUST_CHECK as_status train_spec_check_model_parallel(const struct json_fields *doc,
                                                        const struct train_spec *spec,
                                                        struct as_err *err);
AS_MUST_CHECK as_status train_spec_check_block_ranks(const struct train_spec *spec, int64_t ranks,
                                                     const char *at_ranks, struct as_err *err);

/* train_spec_privacy.c: the field `privacy` of doc. All other fields are already set. */
AS_MUST_CHECK as_status train_spec_parse_privacy(struct json_fields *doc, struct train_spec *spec,
                                                 struct as_err *err);

/* train_spec_stack.c: the field `stack` of doc. `validation` and `boost` are already set. */
AS_MUST_CHECK as_status train_spec_parse_stack(struct json_fields *doc,
                                               const struct train_spec *spec, struct as_err *err);

/* train_spec_lbfgs.c: what goes with that optimizer. All fields are already set. */
AS_MUST_CHECK as_status train_spec_check_lbfgs(const struct json_fields *doc,
                                               const struct train_spec *spec, struct as_err *err);

/* train_spec_cocoa.c: the same for `model: {solver: cocoa}`. */
AS_MUST_CHECK as_status train_spec_check_cocoa(const struct json_fields *doc,
                                               const struct train_spec *spec, struct as_err *err);

/* train_spec_partitions.c: the same for `distributed: {partitions: lineage}`. */
AS_MUST_CHECK as_status train_spec_check_partitions(const struct json_fields *doc,
                                                    const struct train_spec *spec,
                                                    struct as_err *err);

/* train_spec_trees.c: the fields of trees in the section `model`, whose kind is already set. */
AS_MUST_CHECK as_status train_spec_parse_trees(struct json_fields *f, struct train_model_spec *m,
                                               struct as_err *err);
/* train_spec_validation.c: the field `validation` of doc; its fields `weights` and `patience`. */
AS_MUST_CHECK as_status train_spec_parse_validation(struct json_fields *doc,
                                                    struct train_spec *spec, struct as_err *err);
AS_MUST_CHECK as_status train_spec_parse_weights(struct json_fields *doc, struct train_spec *spec,
                                                 struct as_err *err);

extern const char *const train_activation_words[]; /* NULL-terminated, by train_activation */

/* train_spec_preset.c: the blocks of a preset; width 0: its own. NULL-terminated names. */
extern const char *const train_preset_words[];
void train_spec_preset(const char *name, int64_t width, struct train_model_spec *m);

#endif
