/* Greedy ensemble selection with replacement.
 *
 * Each step adds the candidate that lowers the loss of the mean prediction most. The sum of the
 * members' predictions is kept, so a step costs one pass over the candidates and not one over the
 * members. Steps may repeat a candidate: the counts are the weights. The best prefix wins, because
 * the loss may rise again after it. Rows are split by a permutation from the seed alone, so that
 * all ensembles of a sweep are measured on the same rows. */
#include "search/ensemble.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "search/problem/draw.h"

#define MIN_PROBABILITY 1e-7

static const char *const loss_words[] = {"error", "log_loss", "mse", "rmse", "mae"};

const char *ensemble_loss_format(ensemble_loss l)
{
    return loss_words[l];
}

bool ensemble_loss_is_classification(ensemble_loss l)
{
    return l == ENSEMBLE_LOSS_ERROR || l == ENSEMBLE_LOSS_LOG_LOSS;
}

ensemble_loss ensemble_loss_for_metric(const char *metric, bool classification)
{
    if (classification)
        return as_streq(metric, "val_loss") ? ENSEMBLE_LOSS_LOG_LOSS : ENSEMBLE_LOSS_ERROR;
    if (as_streq(metric, "val_loss"))
        return ENSEMBLE_LOSS_MSE;
    return as_streq(metric, "val_mae") ? ENSEMBLE_LOSS_MAE : ENSEMBLE_LOSS_RMSE;
}

void ensemble_free(struct ensemble *e)
{
    if (!e)
        return;
    free(e->counts);
    free(e->weights);
    free(e->select_losses);
    free(e->report_losses);
    free(e);
}

/* ---- the two halves ---- */

as_status ensemble_split(size_t rows, uint64_t seed, bool *ret, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *order = as_calloc(rows, sizeof *order);
    if (!order)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", rows);
    struct rng r;
    rng_init(&r, seed, SEARCH_DRAW_ENSEMBLE);
    for (size_t i = 0; i < rows; i++)
        order[i] = i;
    for (size_t i = rows; i > 1; i--) { /* Fisher-Yates */
        size_t k = (size_t)rng_below(&r, i), moved = order[i - 1];
        order[i - 1] = order[k];
        order[k] = moved;
    }
    for (size_t i = 0; i < rows; i++)
        ret[order[i]] = i < rows - rows / 2;
    return AS_OK;
}

/* Ascending row numbers of one half. */
struct half {
    size_t *rows;
    size_t n;
};

static as_status halves_create(const struct ensemble_input *in, struct half *select,
                               struct half *report, struct as_err *err)
{
    AS_AUTO(as_freep) bool *mask = as_calloc(in->rows, sizeof *mask);
    select->rows = as_calloc(in->rows, sizeof *select->rows);
    report->rows = as_calloc(in->rows, sizeof *report->rows);
    if (!mask || !select->rows || !report->rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows", in->rows);
    as_status st = ensemble_split(in->rows, in->seed, mask, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < in->rows; i++) {
        struct half *h = mask[i] ? select : report;
        h->rows[h->n++] = i;
    }
    if (report->n == 0) /* a single row: there is no other */
        report->rows[report->n++] = select->rows[0];
    return AS_OK;
}

/* ---- losses ---- */

/* `loss` is the requested loss; selection minimises `guide`. They differ for the error rate only.
 * On a few hundred rows the error rate takes few values, and selection by it picks models that were
 * lucky on these rows. The log loss of the same rows is a steadier guide (docs/decisions/0042). */
struct score {
    double loss;
    double guide;
};

static const struct score worst_score = {INFINITY, INFINITY};

/* Is a the better single model? The requested loss decides, because users compare models by it. */
static bool score_less(struct score a, struct score b)
{
    return a.loss < b.loss || (a.loss == b.loss && a.guide < b.guide);
}

static double row_log_loss(double p)
{
    return -log(fmin(fmax(p, MIN_PROBABILITY), 1));
}

/* Score one row of classes. `sum` (outputs) holds the sum of the members so far, `extra` (outputs)
 * one more member or NULL. The prediction is their total / members. */
static struct score row_class_score(const struct ensemble_input *in, size_t row, const double *sum,
                                    const float *extra, double members)
{
    size_t best = 0, target = (size_t)in->classes[row];
    double best_p = -INFINITY, target_p = 0;
    for (size_t c = 0; c < in->outputs; c++) {
        double p = (sum[c] + (extra ? (double)extra[c] : 0)) / members;
        if (p > best_p) {
            best = c;
            best_p = p;
        }
        if (c == target)
            target_p = p;
    }
    double log_loss = row_log_loss(target_p);
    if (in->loss == ENSEMBLE_LOSS_LOG_LOSS)
        return (struct score){log_loss, log_loss};
    return (struct score){best != target, log_loss};
}

/* Score one row of numbers; arguments as for row_class_score. */
static struct score row_number_score(const struct ensemble_input *in, size_t row, const double *sum,
                                     const float *extra, double members)
{
    size_t C = in->outputs;
    double total = 0;
    for (size_t c = 0; c < C; c++) {
        double p = (sum[c] + (extra ? (double)extra[c] : 0)) / members;
        double d = p - (double)in->targets[row * C + c];
        total += (in->loss == ENSEMBLE_LOSS_MAE ? fabs(d) : d * d) / (double)C;
    }
    return (struct score){total, total};
}

/* Mean over the half; sum is [h->n x outputs]. */
static struct score half_score(const struct ensemble_input *in, const struct half *h,
                               const double *sum, const float *extra, double members)
{
    bool classes = ensemble_loss_is_classification(in->loss);
    struct score total = {0, 0};
    for (size_t i = 0; i < h->n; i++) {
        const float *more = extra ? extra + h->rows[i] * in->outputs : NULL;
        const double *so_far = sum + i * in->outputs;
        struct score one = classes ? row_class_score(in, h->rows[i], so_far, more, members)
                                   : row_number_score(in, h->rows[i], so_far, more, members);
        total.loss += one.loss;
        total.guide += one.guide;
    }
    total.loss /= (double)h->n;
    total.guide /= (double)h->n;
    if (in->loss == ENSEMBLE_LOSS_RMSE)
        total.loss = sqrt(total.loss);
    return total;
}

static void half_add(const struct ensemble_input *in, const struct half *h, const float *extra,
                     double times, double *sum)
{
    size_t C = in->outputs;
    for (size_t i = 0; i < h->n; i++)
        for (size_t c = 0; c < C; c++)
            sum[i * C + c] += times * (double)extra[h->rows[i] * C + c];
}

/* ---- checks ---- */

static bool all_finite(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

static as_status check_targets(const struct ensemble_input *in, struct as_err *err)
{
    if (!ensemble_loss_is_classification(in->loss)) {
        if (!in->targets || !all_finite(in->targets, in->rows * in->outputs))
            return as_fail(err, AS_E_INVAL, "loss %s needs targets that are finite numbers",
                           ensemble_loss_format(in->loss));
        return AS_OK;
    }
    if (!in->classes)
        return as_fail(err, AS_E_INVAL, "loss %s needs targets that are classes",
                       ensemble_loss_format(in->loss));
    for (size_t i = 0; i < in->rows; i++)
        if (in->classes[i] < 0 || (uint64_t)in->classes[i] >= in->outputs)
            return as_fail(err, AS_E_INVAL,
                           "row %zu has class %" PRId64 ", expected 0 to %zu (one per output)", i,
                           in->classes[i], in->outputs - 1);
    return AS_OK;
}

static as_status check_input(const struct ensemble_input *in, struct as_err *err)
{
    size_t cells, bytes;
    if (in->candidates == 0 || in->rows == 0 || in->outputs == 0)
        return as_fail(err, AS_E_INVAL,
                       "an ensemble needs candidates, rows and outputs; found %zu, %zu and %zu",
                       in->candidates, in->rows, in->outputs);
    if (in->candidates > ENSEMBLE_MAX_CANDIDATES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu candidates, at most %d are allowed",
                       in->candidates, ENSEMBLE_MAX_CANDIDATES);
    if (in->size < 1 || in->size > ENSEMBLE_MAX_SIZE)
        return as_fail(err, AS_E_INVAL, "an ensemble of %zu members, expected 1 to %d", in->size,
                       ENSEMBLE_MAX_SIZE);
    if (__builtin_mul_overflow(in->rows, in->outputs, &cells) ||
        __builtin_mul_overflow(cells, sizeof(double), &bytes))
        return as_fail(err, AS_E_TOO_LARGE, "%zu rows of %zu outputs do not fit in memory",
                       in->rows, in->outputs);
    return check_targets(in, err);
}

/* ---- selection ---- */

struct selection {
    const struct ensemble_input *in;
    struct half select, report;
    double *sum;   /* [select.n x outputs]: of the members so far; later of the report half */
    size_t *picks; /* [size], in order */
};

static void selection_done(struct selection *s)
{
    free(s->select.rows);
    free(s->report.rows);
    free(s->sum);
    free(s->picks);
}

static struct ensemble *ensemble_create(size_t candidates)
{
    AS_AUTO(ensemble_freep) struct ensemble *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->candidates = candidates;
    e->counts = as_calloc(candidates, sizeof *e->counts);
    e->weights = as_calloc(candidates, sizeof *e->weights);
    e->select_losses = as_calloc(candidates, sizeof *e->select_losses);
    e->report_losses = as_calloc(candidates, sizeof *e->report_losses);
    if (!e->counts || !e->weights || !e->select_losses || !e->report_losses)
        return NULL;
    return as_steal(e);
}

/* Measure each candidate alone. Fail if none has finite predictions. */
static as_status measure_singles(const struct selection *s, struct ensemble *e, struct as_err *err)
{
    const struct ensemble_input *in = s->in;
    struct score best = worst_score;
    for (size_t j = 0; j < in->candidates; j++) {
        bool usable = all_finite(in->predictions[j], in->rows * in->outputs);
        e->select_losses[j] = e->report_losses[j] = INFINITY;
        if (!usable)
            continue;
        struct score alone = half_score(in, &s->select, s->sum, in->predictions[j], 1);
        e->select_losses[j] = alone.loss;
        e->report_losses[j] = half_score(in, &s->report, s->sum, in->predictions[j], 1).loss;
        if (score_less(alone, best)) {
            best = alone;
            e->best_single = j;
        }
    }
    if (isinf(best.loss))
        return as_fail(err, AS_E_INVAL, "no candidate has predictions that are all finite");
    return AS_OK;
}

/* Add in->size members one by one; e->size becomes the length of the best prefix. */
static void select_members(struct selection *s, struct ensemble *e)
{
    const struct ensemble_input *in = s->in;
    struct score best_prefix = worst_score;
    for (size_t n = 0; n < in->size; n++) {
        struct score best = worst_score;
        for (size_t j = 0; j < in->candidates; j++) {
            if (isinf(e->select_losses[j]))
                continue;
            struct score with =
                half_score(in, &s->select, s->sum, in->predictions[j], (double)(n + 1));
            if (with.guide < best.guide) {
                best = with;
                s->picks[n] = j;
            }
        }
        half_add(in, &s->select, in->predictions[s->picks[n]], 1, s->sum);
        if (best.guide < best_prefix.guide) {
            best_prefix = best;
            e->size = n + 1;
        }
    }
    e->select_loss = best_prefix.loss;
}

static void weigh_and_report(struct selection *s, struct ensemble *e)
{
    const struct ensemble_input *in = s->in;
    for (size_t n = 0; n < e->size; n++)
        e->counts[s->picks[n]]++;
    memset(s->sum, 0, s->select.n * in->outputs * sizeof *s->sum);
    for (size_t j = 0; j < in->candidates; j++) {
        if (e->counts[j] == 0)
            continue;
        e->members++;
        e->weights[j] = (double)e->counts[j] / (double)e->size;
        half_add(in, &s->report, in->predictions[j], (double)e->counts[j], s->sum);
    }
    e->report_loss = half_score(in, &s->report, s->sum, NULL, (double)e->size).loss;
    e->select_rows = s->select.n;
    e->report_rows = s->report.n;
}

as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                          struct as_err *err)
{
    as_status st = check_input(in, err);
    if (st < 0)
        return st;
    AS_AUTO(selection_done) struct selection s = {.in = in};
    AS_AUTO(ensemble_freep) struct ensemble *e = ensemble_create(in->candidates);
    st = halves_create(in, &s.select, &s.report, err);
    if (st < 0)
        return st;
    /* the half for selection is never the smaller one, so its sums have room for the other
     * half's */
    s.sum = as_calloc(s.select.n * in->outputs, sizeof *s.sum);
    s.picks = as_calloc(in->size, sizeof *s.picks);
    if (!e || !s.sum || !s.picks)
        return as_fail(err, AS_E_NOMEM, "out of memory for an ensemble");
    st = measure_singles(&s, e, err);
    if (st < 0)
        return st;
    select_members(&s, e);
    weigh_and_report(&s, e);
    *ret = as_steal(e);
    return AS_OK;
}
