/* Parts of a model: networks, trees and k-means.
 *
 * Both read rows as preprocessing encodes them. A network gets them as they are; trees get the
 * missing values back (tree_inputs.h). Trees give probabilities or standardised numbers, networks
 * their outputs. */
#include "model/predict/part.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/plan/pad.h"
#include "model/plan/plan.h"
#include "model/kmeans/kmeans_model.h"
#include "model/trees/tree_inputs.h"

void predict_part_done(struct predict_part *part)
{
    buf_free(part->x);
    buf_free(part->codes);
    network_free(part->network);
    net_plan_free(part->plan);
    tree_model_free(part->trees);
    free(part->inputs);
    free(part->centroids);
    free(part->member);
    *part = (struct predict_part){0};
}

as_status predict_plan(const struct model_file *f, size_t member, struct net_plan **ret,
                       struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    const struct model_member *m = model_file_member(f, member);
    struct net_data data = net_data_of(m->info, m->spec);
    *ret = NULL;
    if (!train_model_is_network(&m->spec->model))
        return AS_OK;
    (void)snprintf(pointer, sizeof pointer, "/members/%zu/train", member);
    return net_plan_create(m->spec, &data, pointer, ret, err);
}

bool predict_plans_equal(const struct net_plan *a, const struct net_plan *b)
{
    return net_plan_fits(a, b) && net_plan_fits(b, a);
}

/* The values of a list of tensors of a member, at their offsets. */
static as_status read_tensors(const struct model_file *f, size_t member,
                              const struct net_tensor *tensors, size_t n, float *ret,
                              struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        as_status st = model_file_tensor(f, member, tensors[i].name, SAFETENSORS_F32,
                                         tensors[i].count, ret + tensors[i].offset, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* All weights of a member. A tensor too many is one of a layer that its document lacks. */
static as_status read_weights(const struct model_file *f, size_t member,
                              const struct net_plan *plan, float *params, float *state,
                              struct as_err *err)
{
    size_t expected = plan->n_tensors + plan->n_states, found = model_file_n_tensors(f, member);
    as_status st = read_tensors(f, member, plan->tensors, plan->n_tensors, params, err);
    if (st == AS_OK)
        st = read_tensors(f, member, plan->states, plan->n_states, state, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "/members/%zu/train/model", member);
    if (found == expected)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "/members/%zu/train/model: it has %zu tensors, but the file has %zu of this "
                   "member",
                   member, expected, found);
}

static as_status load_member(struct predict_part *part, const struct model_file *f, size_t slot,
                             float *params, float *state, struct as_err *err)
{
    const struct net_plan *plan = part->plan;
    as_status st = read_weights(f, part->member[slot], plan, params, state, err);
    if (st != AS_OK)
        return st;
    st = network_write(part->network, network_params(part->network), slot, plan, params, err);
    if (st != AS_OK)
        return st;
    return network_write_state(part->network, slot, state, err);
}

static as_status load_trees(struct predict_part *part, const struct model_file *f, size_t max_rows,
                            struct as_err *err)
{
    size_t member = part->member[0];
    const char *name = tree_model_tensor(&model_file_member(f, member)->spec->model);
    const struct safetensors_tensor *t = model_file_find(f, member, name);
    if (!t || t->type != SAFETENSORS_U8)
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu/train/model/kind: it is of %s, but the file has no such "
                       "tensor of U8",
                       member, name);
    as_status st = tree_model_load(t->data, t->size_bytes, model_file_member(f, member)->spec,
                                   model_file_member(f, member)->info, 1, &part->trees, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "/members/%zu/train/model/kind", member);
    int64_t most = model_file_member(f, member)->spec->model.trees.n_estimators;
    if ((int64_t)tree_model_rounds(part->trees) > most)
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu/train/model/n_estimators: found %" PRId64
                       ", expected at least %zu, the rounds of the stored trees",
                       member, most, tree_model_rounds(part->trees));
    if (model_file_n_tensors(f, member) != 1)
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu: found %zu tensors, expected '%s' alone for "
                       "/members/%zu/train/model/kind",
                       member, model_file_n_tensors(f, member), name, member);
    part->outputs = tree_model_outputs(part->trees);
    part->spec = model_file_member(f, member)->spec;
    part->inputs = as_calloc(max_rows * tree_model_inputs(part->trees), sizeof *part->inputs);
    return part->inputs ? AS_OK : as_fail_nomem(err);
}

/* The centroids must be as many as the document says, of as many inputs as the preprocessing
 * gives. */
static as_status load_kmeans(struct predict_part *part, const struct model_file *f,
                             struct as_err *err)
{
    size_t member = part->member[0];
    const struct model_member *m = model_file_member(f, member);
    part->clusters = (size_t)m->spec->model.kmeans.clusters;
    part->dims = preprocess_inputs(m->fit, model_file_data(f));
    part->outputs = DATASET_CLUSTER_OUTPUTS;
    part->centroids = as_calloc(part->clusters, part->dims * sizeof *part->centroids);
    if (!part->centroids)
        return as_fail_nomem(err);
    as_status st = model_file_tensor(f, member, "centroids", SAFETENSORS_F32,
                                     part->clusters * part->dims, part->centroids, err);
    if (st == AS_OK)
        st = kmeans_model_check(part->centroids, part->clusters, part->dims, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "/members/%zu/train/model", member);
    if (model_file_n_tensors(f, member) == 1)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "/members/%zu: found %zu tensors, expected 'centroids' alone for "
                   "/members/%zu/train/model/kind",
                   member, model_file_n_tensors(f, member), member);
}

static as_status load_network(struct predict_part *part, struct backend *be,
                              const struct model_file *f, size_t max_rows, struct as_err *err)
{
    const struct net_plan *plan = part->plan;
    const struct model_member *m = model_file_member(f, part->member[0]);
    const struct preprocess *fit = m->fit;
    size_t n_x = preprocess_inputs(fit, m->info);
    AS_AUTO(as_freep) float *params = as_calloc(plan->n_params, sizeof *params);
    AS_AUTO(as_freep) float *state = as_calloc(plan->n_state, sizeof *state);
    if (!params || !state)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", plan->n_params);
    if (net_shape_elements(plan->nodes[0].out) != n_x || plan->n_categories != fit->n_codes)
        return as_fail(err, AS_E_INVAL,
                       "/members/%zu: its model has %zu inputs, its preprocessing gives %zu",
                       part->member[0], net_shape_elements(plan->nodes[0].out), n_x);
    as_status st = network_create_forward(be, plan, part->n, max_rows, &part->network, err);
    if (st == AS_OK && n_x > 0)
        st = buf_create(be, BUF_F32, max_rows * n_x, &part->x, err);
    if (st == AS_OK && fit->n_codes > 0)
        st = buf_create(be, BUF_I32, max_rows * fit->n_codes, &part->codes, err);
    for (size_t slot = 0; st == AS_OK && slot < part->n; slot++)
        st = load_member(part, f, slot, params, state, err);
    return st;
}

as_status predict_part_check(const struct predict_part *part, const struct model_file *f,
                             struct as_err *err)
{
    const struct net_plan *plan = part->plan;
    AS_AUTO(as_freep) float *params = as_calloc(plan->n_params, sizeof *params);
    AS_AUTO(as_freep) float *state = as_calloc(plan->n_state, sizeof *state);
    if (!params || !state)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", plan->n_params);
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < part->n; i++)
        st = read_weights(f, part->member[i], plan, params, state, err);
    return st;
}

as_status predict_part_load(struct predict_part *part, struct backend *be,
                            const struct model_file *f, size_t max_rows, struct as_err *err)
{
    if (train_model_is_kmeans(&model_file_member(f, part->member[0])->spec->model))
        return load_kmeans(part, f, err);
    if (!part->plan)
        return load_trees(part, f, max_rows, err);
    part->outputs = part->plan->outputs;
    return load_network(part, be, f, max_rows, err);
}

/* Rows as an input that all slots share. */
static as_status upload(struct buf *to, const void *values, size_t n, struct tensor *ret,
                        struct as_err *err)
{
    *ret = tensor_none();
    if (!to)
        return AS_OK;
    as_status st = buf_upload(to, 0, values, n, err);
    if (st == AS_OK)
        *ret = tensor_at(to, 0, 0);
    return st;
}

as_status predict_part_run(struct predict_part *part, struct backend *be,
                           const struct dataset_info *info, const struct predict_rows *rows,
                           float *const *ret, struct as_err *err)
{
    if (part->centroids) {
        const struct kmeans_rows all = {rows->x, rows->rows, part->dims};
        return kmeans_predict(&all, part->centroids, part->clusters, 1, ret[0], err);
    }
    if (part->trees) {
        model_inputs_of(part->spec, info, rows->x, rows->codes, NULL, rows->rows, part->inputs);
        return tree_model_predict(part->trees, part->inputs, rows->rows, ret[0], err);
    }
    struct network_pass pass = {.rows = rows->rows};
    as_status st = upload(part->x, rows->x, rows->rows * rows->n_x, &pass.x, err);
    if (st != AS_OK)
        return st;
    st = upload(part->codes, rows->codes, rows->rows * rows->n_codes, &pass.codes, err);
    if (st != AS_OK)
        return st;
    st = network_forward(part->network, be, 0, part->n, &pass, err);
    if (st != AS_OK)
        return st;
    struct tensor out = network_outputs(part->network, 0);
    for (size_t i = 0; st == AS_OK && i < part->n; i++)
        st = buf_download(out.buf, out.offset + i * out.stride, ret[i], rows->rows * part->outputs,
                          err);
    return st;
}
