/* The data of a training run: split, fit, encode.
 *
 * The order of the steps matters. The split needs only row numbers and classes and comes first, so
 * that fitting sees training rows alone. Then the targets of the held-out rows are copied in their
 * own unit, and the rows of each class are counted. Encoding comes last, because it works in place
 * and standardises the targets.
 *
 * Each draw has a key of seed, purpose and epoch, so a trial that resumes gets the same order.
 *
 * Text is not encoded. The windows of an epoch begin at a random phase: with a fixed phase, the
 * model would never see the tokens on both sides of a window's edge together. */
#include "data/preprocess/train_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/random_purpose.h"
#include "data/preprocess/split.h"

void train_data_done(struct train_data *d)
{
    dataset_done(&d->set);
    preprocess_done(&d->fit);
    free(d->codes);
    free(d->rows);
    free(d->own_rows);
    free(d->parts.base);
    free(d->parts.work);
    free(d->val_targets);
    free(d->val_labels);
    free(d->weights);
    free(d->val_weights);
    free(d->held_weights);
    free(d->class_rows);
    *d = (struct train_data){0};
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the data of the run");
}

/* ---- the split ---- */

static as_status split_table(struct train_data *d, const struct preprocess_opts *opts,
                             struct as_err *err)
{
    struct preprocess_rows r;
    d->rows = as_calloc(d->set.n_rows, sizeof *d->rows);
    if (!d->rows)
        return out_of_memory(err);
    as_status st =
        split_rows(opts, d->set.labels, d->set.n_rows, d->set.n_outputs, d->rows, &r, err);
    if (st != AS_OK)
        return st;
    d->val_rows = d->held_rows = d->rows;
    d->train_rows = d->rows + (r.train - r.held);
    d->n_val = r.n_held;
    d->n_train = r.n_train;
    return AS_OK;
}

static as_status split_text(struct train_data *d, const struct preprocess_opts *opts,
                            struct as_err *err)
{
    size_t n = d->set.n_rows, context = opts->context, held = opts->n_validation;
    if (held < context + 1 || n - held < context + 1)
        return as_fail(err, AS_E_INVAL,
                       "%zu tokens to train on and %zu held out, expected at least %zu each: "
                       "model.context and the token that follows",
                       n - held, held, context + 1);
    d->context = context;
    d->n_tokens = n - held;
    d->n_train = dataset_epoch_windows(d->n_tokens, context);
    d->n_val = (held - 1) / context;
    d->rows = as_calloc(d->n_val, sizeof *d->rows);
    if (!d->rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu windows", d->n_val);
    for (size_t i = 0; i < d->n_val; i++)
        d->rows[i] = (int32_t)(d->n_tokens + i * context);
    d->val_rows = d->held_rows = d->rows;
    return AS_OK;
}

/* Put the training row (text: the window) of a random place at each place of ret. */
static void draw_again(const struct train_data *d, int64_t resample, int32_t phase, int32_t *ret)
{
    struct rng r = draw_stream((uint64_t)resample, DRAW_RESAMPLE, 0);
    struct draw_ahead a;
    a.r = &r;
    a.left = 0;
    for (size_t i = 0; i < d->n_train; i++) {
        size_t place = (size_t)draw_below(&a, d->n_train);
        ret[i] = d->context == 0 ? d->train_rows[place] : phase + (int32_t)(place * d->context);
    }
}

static void order_rows(const struct train_data *d, uint64_t seed, int64_t resample, int64_t epoch,
                       int32_t *ret)
{
    struct rng r = draw_stream(seed, DRAW_SHUFFLE, (uint64_t)epoch);
    int32_t first = 0; /* text: the phase */
    if (d->context == 0) {
        memcpy(ret, d->train_rows, d->n_train * sizeof *ret);
    } else {
        size_t room = d->n_tokens - d->n_train * d->context; /* at least 1 */
        size_t phases = room < d->context ? room : d->context;
        size_t phase = (size_t)rng_below(&r, phases);
        for (size_t i = 0; i < d->n_train; i++)
            ret[i] = (int32_t)(phase + i * d->context);
        first = (int32_t)phase;
    }
    if (resample > 0)
        draw_again(d, resample, first, ret);
    draw_shuffle(&r, ret, d->n_train);
}

void train_data_order(const struct train_data *d, uint64_t seed, int64_t resample, int64_t epoch,
                      int32_t *ret)
{
    if (d->parts.n > 0)
        row_parts_order(&d->parts, seed, epoch, ret);
    else
        order_rows(d, seed, resample, epoch, ret);
}

size_t train_data_places(const struct train_data *d)
{
    const struct row_parts *p = &d->parts;
    return p->n > 0 ? row_parts_batches(p) * p->n * p->micro : d->n_train;
}

/* ---- targets ---- */

static as_status count_classes(struct train_data *d, struct as_err *err)
{
    d->class_rows = as_calloc(d->set.n_outputs, sizeof *d->class_rows);
    if (!d->class_rows)
        return out_of_memory(err);
    for (size_t i = 0; i < d->n_train; i++)
        d->class_rows[d->set.labels[d->train_rows[i]]]++;
    return AS_OK;
}

static as_status classes_as_numbers(struct dataset *set, struct as_err *err)
{
    set->targets = as_calloc(set->n_rows, sizeof *set->targets);
    if (!set->targets)
        return out_of_memory(err);
    for (size_t i = 0; i < set->n_rows; i++)
        set->targets[i] = (float)set->labels[i];
    return AS_OK;
}

static as_status keep_val_targets(struct train_data *d, struct as_err *err)
{
    size_t n = d->n_targets;
    d->val_targets = as_calloc(d->n_val * n, sizeof *d->val_targets);
    if (!d->val_targets)
        return out_of_memory(err);
    for (size_t i = 0; n && i < d->n_val; i++)
        memcpy(d->val_targets + i * n, d->set.targets + (size_t)d->val_rows[i] * n,
               n * sizeof *d->val_targets);
    return AS_OK;
}

/* Every report needs them. */
static as_status keep_val_labels(struct train_data *d, struct as_err *err)
{
    d->val_labels = as_calloc(d->n_val, sizeof *d->val_labels);
    if (!d->val_labels)
        return out_of_memory(err);
    for (size_t i = 0; i < d->n_val; i++)
        d->val_labels[i] = d->set.labels[d->val_rows[i]];
    return AS_OK;
}

/* Keep what evaluation needs of the targets, in the unit of the file. */
static as_status prepare_targets(struct train_data *d, bool shares, struct as_err *err)
{
    as_status st = AS_OK;
    d->n_targets = d->set.targets ? d->set.n_outputs : 0;
    if (d->set.labels)
        st = keep_val_labels(d, err);
    if (st != AS_OK)
        return st;
    d->shares = shares && d->set.labels && d->set.n_outputs == 2;
    if (d->shares) {
        st = classes_as_numbers(&d->set, err);
        if (st != AS_OK)
            return st;
        d->n_targets = 1;
    }
    return keep_val_targets(d, err);
}

/* ---- weights ---- */

static double sum_of_weights(const float *weights, const int32_t *rows, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)weights[rows[i]];
    return sum;
}

/* With a mean of 1, a batch has about the gradient that it has without weights, and learning rates
 * keep their meaning. */
static as_status prepare_weights(struct train_data *d, const float *weights, struct as_err *err)
{
    double train = sum_of_weights(weights, d->train_rows, d->n_train);
    double held = sum_of_weights(weights, d->val_rows, d->n_val);
    if (!(train > 0) || !(held > 0))
        return as_fail(err, AS_E_INVAL,
                       "the weights of all %zu rows %s are 0, expected one above 0",
                       train > 0 ? d->n_val : d->n_train, train > 0 ? "held out" : "to train on");
    d->weights = as_calloc(d->set.n_rows, sizeof *d->weights);
    d->val_weights = as_calloc(d->n_val, sizeof *d->val_weights);
    d->held_weights = as_calloc(d->n_val, sizeof *d->held_weights);
    if (!d->weights || !d->val_weights || !d->held_weights)
        return out_of_memory(err);
    for (size_t i = 0; i < d->set.n_rows; i++)
        d->weights[i] = (float)((double)weights[i] / train * (double)d->n_train);
    for (size_t i = 0; i < d->n_val; i++) {
        d->val_weights[i] = d->weights[d->val_rows[i]];
        d->held_weights[i] = weights[d->val_rows[i]];
    }
    return AS_OK;
}

/* ---- all of it ---- */

/* Split, fit, count: what needs all rows, and changes none. */
static as_status learn(struct train_data *d, const struct dataset_info *info,
                       const struct preprocess_opts *opts, struct as_err *err)
{
    bool text = info->input == DATASET_TOKEN_TEXT;
    as_status st = text ? split_text(d, opts, err) : split_table(d, opts, err);
    if (st != AS_OK)
        return st;
    /* rows that are for both parts are held out from nothing that is learnt */
    size_t apart = text ? d->n_val : (size_t)(d->train_rows - d->rows);
    const struct preprocess_rows rows = {d->train_rows, d->val_rows, d->n_train, apart};
    d->is_bytes = d->set.bytes != NULL;
    st = preprocess_fit(&d->set, info, &rows, opts, &d->fit, err);
    if (st != AS_OK)
        return st;
    d->n_codes = d->fit.n_codes;
    return d->set.labels && !text ? count_classes(d, err) : AS_OK;
}

static as_status prepare_all(struct train_data *d, const struct dataset_info *info,
                             const struct preprocess_opts *opts, struct as_err *err)
{
    as_status st = learn(d, info, opts, err);
    if (st != AS_OK || info->input == DATASET_TOKEN_TEXT)
        return st;
    if (opts->weights)
        st = prepare_weights(d, opts->weights, err);
    if (st != AS_OK)
        return st;
    st = prepare_targets(d, opts->targets_as_shares, err);
    if (st != AS_OK)
        return st;
    return preprocess_apply(&d->fit, info, &d->set, &d->codes, err);
}

as_status train_data_prepare(struct dataset *set, const struct dataset_info *info,
                             const struct preprocess_opts *opts, struct train_data *ret,
                             struct as_err *err)
{
    AS_AUTO(train_data_done) struct train_data d = {.set = *set};
    *set = (struct dataset){0};
    as_status st = prepare_all(&d, info, opts, err);
    if (st != AS_OK)
        return st;
    *ret = d;
    d = (struct train_data){0};
    return AS_OK;
}

/* ---- partitions ---- */

/* The held-out rows instead of all, with numbers of their own. */
static as_status keep_held(struct train_data *d, const struct dataset_map *map,
                           const struct dataset_info *info, struct as_err *err)
{
    d->own_rows = as_calloc(d->n_val, sizeof *d->own_rows);
    d->parts.base = as_calloc(d->parts.n, sizeof *d->parts.base);
    d->parts.work = as_calloc(row_parts_each(&d->parts) + 1, sizeof *d->parts.work);
    if (!d->own_rows || !d->parts.base || !d->parts.work)
        return out_of_memory(err);
    for (size_t i = 0; i < d->n_val; i++)
        d->own_rows[i] = (int32_t)i;
    for (size_t i = 0; i < d->parts.n; i++)
        d->parts.base[i] = -1;
    as_status st = dataset_map_rows(map, info, d->held_rows, d->n_val, &d->set, err);
    d->val_rows = d->own_rows;
    d->is_bytes = d->set.bytes != NULL;
    return st;
}

static as_status deal(struct train_data *d, uint64_t seed, struct as_err *err)
{
    struct row_parts *p = &d->parts;
    if (d->n_train < p->n)
        return as_fail(err, AS_E_INVAL,
                       "/train/distributed/partitions: %zu rows to train on, expected at least the "
                       "%zu shards of a batch, which have a partition each",
                       d->n_train, p->n);
    row_parts_deal(d->train_rows, d->n_train, seed);
    p->n_rows = d->n_train;
    d->n_train = row_parts_each(p) * p->n;
    return AS_OK;
}

as_status train_data_prepare_held(const struct dataset_map *map, const struct dataset_info *info,
                                  const struct preprocess_opts *opts, struct row_parts parts,
                                  struct train_data *ret, struct as_err *err)
{
    AS_AUTO(train_data_done) struct train_data d = {.set = map->set, .parts = parts};
    as_status st = learn(&d, info, opts, err);
    d.set = (struct dataset){0}; /* it is the map's */
    if (st == AS_OK)
        st = deal(&d, opts->split_seed, err);
    if (st == AS_OK)
        st = keep_held(&d, map, info, err);
    if (st == AS_OK)
        st = prepare_targets(&d, opts->targets_as_shares, err);
    if (st == AS_OK)
        st = preprocess_apply(&d.fit, info, &d.set, &d.codes, err);
    if (st != AS_OK)
        return st;
    *ret = d;
    d = (struct train_data){0};
    return AS_OK;
}

as_status train_data_encode(const struct train_data *d, const struct dataset_info *info,
                            struct dataset *rows, int32_t **ret_codes, struct as_err *err)
{
    as_status st = d->shares ? classes_as_numbers(rows, err) : AS_OK;
    return st == AS_OK ? preprocess_apply(&d->fit, info, rows, ret_codes, err) : st;
}
