/* Predicts with all members of a model.
 *
 * Members are put together twice. Those whose preprocessing learnt the same share its encoding of
 * the rows: trials of one sweep hold out the same rows, so most often there is one. Among these,
 * those with the same layers and widths share a network of as many slots, whose pass costs little
 * more than one member's (network.h).
 *
 * Rows go through in passes. A pass is so small that what the layers hand on stays in the second
 * cache (PASS_BYTES), and the predictions of all members are kept until its end: they are then
 * combined in the order of the members, whatever shares a network (combination.c).
 *
 * In a combination by a column each row needs the members of one input only. So members of
 * different inputs share no network, and each input gets its own rows of a pass (by_column.c). */
#include "model/predict/predictor.h"

#include <math.h>
#include <string.h>

#include "model/network/outputs.h"
#include "model/plan/memory.h"
#include "model/predict/predictor_priv.h"

#define PASS_ROWS ((size_t)256)
#define PASS_BYTES 4e6        /* of the activations of all members that share a network */
#define VALUES_BYTES 67108864 /* of the predictions of all members */

static void clear_encoding(struct predict_encoding *e)
{
    dataset_done(&e->set);
    free(e->codes);
    e->codes = NULL;
}

void predictor_free(struct predictor *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->encodings && i < p->n_encodings; i++)
        clear_encoding(&p->encodings[i]);
    for (size_t i = 0; p->parts && i < p->n_parts; i++)
        predict_part_done(&p->parts[i]);
    backend_free(p->be);
    free(p->encodings);
    free(p->parts);
    free(p->values);
    free(p->of_part);
    free(p->terms);
    free(p->inputs);
    free(p->sum);
    free(p->of_row);
    free(p->raw);
    free(p->part);
    for (size_t i = 0; p->stacked && i < p->n_stacks; i++)
        free(p->stacked[i]);
    free(p->stacked);
    free(p->seen);
    free(p->wanted);
    free(p->first_value);
    free(p->categorical);
    free(p->coded);
    free(p->known);
    free(p);
}

/* ---- what members share ---- */

/* The encoding of a member, which may be a new one. */
static size_t find_encoding(struct predictor *p, size_t member)
{
    const json_t *members = json_object_get(model_file_manifest(p->file), "members");
    const json_t *record = json_object_get(json_array_get(members, member), "preprocessing");
    const struct model_member *m = model_file_member(p->file, member);
    size_t stack = model_file_combine(p->file)->stack[m->input];
    for (size_t i = 0; i < p->n_encodings; i++)
        if (p->encodings[i].stack == stack && json_equal(p->encodings[i].record, record))
            return i;
    const struct dataset_info *info = stack == MODEL_NO_STACK ? p->info : m->info;
    p->encodings[p->n_encodings] =
        (struct predict_encoding){.info = info, .stack = stack, .fit = m->fit, .record = record};
    return p->n_encodings++;
}

/* The part of a member with this plan, which may be a new one. Others than networks (NULL) have
 * parts of their own. */
static struct predict_part *find_part(struct predictor *p, size_t encoding, size_t input,
                                      const struct net_plan *plan)
{
    for (size_t i = 0; plan && i < p->n_parts; i++)
        if (p->parts[i].plan && p->parts[i].encoding == encoding && p->parts[i].input == input &&
            predict_plans_equal(p->parts[i].plan, plan))
            return &p->parts[i];
    p->parts[p->n_parts] = (struct predict_part){.encoding = encoding, .input = input};
    return &p->parts[p->n_parts++];
}

static as_status add_member(struct predictor *p, size_t member, struct as_err *err)
{
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    as_status st = predict_plan(p->file, member, &plan, err);
    if (st != AS_OK)
        return st;
    const struct model_combine *c = model_file_combine(p->file);
    size_t of = model_file_member(p->file, member)->input;
    size_t input = c->kind == MODEL_BY || c->n_stacks > 0 ? of : 0;
    struct predict_part *part = find_part(p, find_encoding(p, member), input, plan);
    part->depth = c->depth[of];
    if (!part->member)
        part->member = as_calloc(model_file_n_members(p->file), sizeof *part->member);
    if (!part->member)
        return as_fail_nomem(err);
    part->member[part->n++] = member;
    if (!part->plan)
        part->plan = as_steal(plan);
    return AS_OK;
}

static as_status add_members(struct predictor *p, struct as_err *err)
{
    size_t n = model_file_n_members(p->file);
    p->encodings = as_calloc(n, sizeof *p->encodings);
    p->parts = as_calloc(n, sizeof *p->parts);
    if (!p->encodings || !p->parts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = add_member(p, i, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- passes ---- */

static size_t rows_of_pass(const struct predictor *p, size_t most)
{
    size_t n = model_file_n_members(p->file);
    size_t rows = most > 0 ? most : PASS_ROWS;
    for (size_t i = 0; most == 0 && i < p->n_parts; i++) {
        if (!p->parts[i].plan)
            continue;
        double row = net_activation_bytes(p->parts[i].plan, 1) * (double)p->parts[i].n;
        rows = row * (double)rows > PASS_BYTES ? (size_t)(PASS_BYTES / row) : rows;
    }
    size_t fit = VALUES_BYTES / (n * p->n_outputs * sizeof(float));
    rows = rows < fit ? rows : fit;
    return rows > 0 ? rows : 1;
}

static as_status load_parts(struct predictor *p, struct as_err *err)
{
    const struct backend_opts opts = {.threads = 1};
    size_t n = model_file_n_members(p->file);
    p->values = as_calloc(n * p->max_rows, p->n_outputs * sizeof *p->values);
    p->of_part = as_calloc(n, sizeof *p->of_part);
    if (!p->values || !p->of_part)
        return as_fail_nomem(err);
    as_status st = predictor_combine_init(p, err);
    if (st == AS_OK)
        st = predictor_stacks_init(p, err);
    if (st == AS_OK)
        st = backend_open("cpu", &opts, &p->be, err);
    for (size_t i = 0; st == AS_OK && i < p->n_parts; i++)
        st = predict_part_load(&p->parts[i], p->be, p->file, p->max_rows, err);
    return st;
}

/* A text has no rows. A damaged model is said to be so first. */
static as_status refuse_text(const struct predictor *p, struct as_err *err)
{
    for (size_t i = 0; i < p->n_parts; i++) {
        as_status st = predict_part_check(&p->parts[i], p->file, err);
        if (st != AS_OK)
            return st;
    }
    return as_fail(err, AS_E_UNSUPPORTED, "the model continues text: it has no rows to predict");
}

as_status predictor_create(const struct model_file *f, size_t max_rows, struct predictor **ret,
                           struct as_err *err)
{
    AS_AUTO(predictor_freep) struct predictor *p = as_calloc(1, sizeof *p);
    const struct dataset_info *info = model_file_data(f);
    if (!p)
        return as_fail_nomem(err);
    *p = (struct predictor){.file = f, .info = info, .n_outputs = info->n_outputs};
    as_status st = add_members(p, err);
    if (st == AS_OK && info->input == DATASET_TOKEN_TEXT)
        st = refuse_text(p, err);
    if (st != AS_OK)
        return st;
    st = predictor_know_values(p, err);
    if (st != AS_OK)
        return st;
    p->max_rows = rows_of_pass(p, max_rows);
    if (info->options.missing.n > 0) {
        p->coded = as_calloc(p->max_rows, info->n_features * sizeof *p->coded);
        if (!p->coded)
            return as_fail_nomem(err);
    }
    st = load_parts(p, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

size_t predictor_inputs(const struct predictor *p)
{
    return p->info->n_features;
}

size_t predictor_outputs(const struct predictor *p)
{
    return p->n_outputs;
}

static as_status encode(const struct predictor *p, struct predict_encoding *e, const float *raw,
                        size_t rows, struct as_err *err)
{
    size_t n = rows * e->info->n_features;
    clear_encoding(e);
    e->set = (struct dataset){.n_rows = rows,
                              .n_features = e->info->n_features,
                              .n_outputs = p->n_outputs,
                              .x = as_calloc(n, sizeof *e->set.x)};
    if (!e->set.x)
        return as_fail_nomem(err);
    memcpy(e->set.x, e->stack == MODEL_NO_STACK ? raw : p->stacked[e->stack], n * sizeof *raw);
    if (p->has_gaps)
        preprocess_complete(e->fit, e->info, e->set.x, rows);
    return preprocess_apply(e->fit, e->info, &e->set, &e->codes, err);
}

static as_status run_part(struct predictor *p, struct predict_part *part, struct as_err *err)
{
    const struct predict_encoding *e = &p->encodings[part->encoding];
    const struct predict_rows rows = {.rows = e->set.n_rows,
                                      .n_x = part->x || !part->plan ? e->set.n_features : 0,
                                      .n_codes = e->fit->n_codes,
                                      .x = e->set.x,
                                      .codes = e->codes};
    for (size_t i = 0; i < part->n; i++)
        p->of_part[i] = predictor_values(p, part->member[i]);
    as_status st = predict_part_run(part, p->be, e->info, &rows, p->of_part, err);
    for (size_t i = 0; st == AS_OK && i < part->n; i++) {
        const struct model_member *m = model_file_member(p->file, part->member[i]);
        /* others have made predictions of their outputs; huber leaves them as they are */
        train_loss loss = part->plan ? train_spec_loss(m->spec, m->info->task) : TRAIN_HUBER;
        outputs_to_predictions(p->of_part[i], rows.rows, part->outputs, p->n_outputs, loss, m->fit);
    }
    return st;
}

/* The members of one layer. *ret_last: there is none deeper. */
static as_status run_layer(struct predictor *p, size_t depth, const float *raw, size_t rows,
                           bool *ret_last, struct as_err *err)
{
    as_status st = AS_OK;
    *ret_last = true;
    predictor_stack_rows(p, depth, raw, rows);
    for (size_t i = 0; st == AS_OK && i < p->n_parts; i++) {
        struct predict_encoding *e = &p->encodings[p->parts[i].encoding];
        *ret_last = *ret_last && p->parts[i].depth <= depth;
        if (p->parts[i].depth != depth || !p->wanted[p->parts[i].input])
            continue;
        if (!e->is_made)
            st = encode(p, e, raw, rows, err);
        e->is_made = true;
        if (st == AS_OK)
            st = run_part(p, &p->parts[i], err);
    }
    return st;
}

as_status predictor_members_run(struct predictor *p, size_t input, const float *raw, size_t rows,
                                struct as_err *err)
{
    as_status st = AS_OK;
    bool last = false;
    predictor_want(p, input);
    for (size_t i = 0; i < p->n_encodings; i++)
        p->encodings[i].is_made = false;
    for (size_t depth = 0; st == AS_OK && !last; depth++)
        st = run_layer(p, depth, raw, rows, &last, err);
    return st;
}

/* Is it a number that may be a code? Of dates and texts a feature is another number. */
static bool may_be_code(const struct predictor *p, size_t column)
{
    const struct dataset_column *c = p->info->columns ? &p->info->columns[column] : NULL;
    return !p->categorical[column] && (!c || c->part == DATASET_CELL);
}

/* The rows with NaN for codes of missing values. Cells of a table have none any more; tensors and
 * arrays of numbers may have. */
static const float *without_codes(struct predictor *p, const float *raw, size_t rows)
{
    const struct dataset_codes *codes = &p->info->options.missing;
    size_t n = p->info->n_features;
    if (!p->coded)
        return raw;
    memcpy(p->coded, raw, rows * n * sizeof *raw);
    for (size_t c = 0; c < n; c++)
        for (size_t k = 0; may_be_code(p, c) && k < codes->n; k++)
            for (size_t r = 0; r < rows; r++)
                if (raw[r * n + c] == (float)codes->value[k])
                    p->coded[r * n + c] = NAN;
    return p->coded;
}

static as_status run_pass(struct predictor *p, const float *raw, size_t rows, float *ret,
                          struct as_err *err)
{
    bool is_by = model_file_combine(p->file)->kind == MODEL_BY;
    raw = without_codes(p, raw, rows);
    as_status st = is_by ? predictor_by_column(p, raw, rows, ret, err)
                         : predictor_members_run(p, SIZE_MAX, raw, rows, err);
    if (st != AS_OK)
        return st;
    if (!is_by)
        predictor_combine(p, rows, ret);
    predictor_calibrate(p, rows, ret);
    return AS_OK;
}

/* Sets has_gaps. */
static as_status check_rows(struct predictor *p, const float *raw, size_t rows, struct as_err *err)
{
    size_t n = p->info->n_features;
    p->has_gaps = p->coded != NULL;
    for (size_t r = 0; r < rows; r++, raw += n)
        for (size_t c = 0; c < n; c++) {
            if (isfinite(raw[c]) && !p->categorical[c]) /* most values: nothing to look up */
                continue;
            as_status st = predictor_check(p, c, raw[c], err);
            if (st != AS_OK)
                return as_err_prefix(err, st, "row %zu", r);
            p->has_gaps = p->has_gaps || isnan(raw[c]);
        }
    return AS_OK;
}

as_status predictor_run(struct predictor *p, const float *raw, size_t rows, float *ret,
                        struct as_err *err)
{
    as_status st = check_rows(p, raw, rows, err);
    for (size_t at = 0; st == AS_OK && at < rows; at += p->max_rows) {
        size_t n = rows - at < p->max_rows ? rows - at : p->max_rows;
        st = run_pass(p, raw + at * p->info->n_features, n, ret + at * p->n_outputs, err);
    }
    return st;
}
