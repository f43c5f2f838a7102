/* Stacking: a regularised regression of what is true on what the candidates predict.
 *
 * The best `size` candidates take part, each with one coefficient w, and each output has a bias b.
 *
 *   classes   multinomial logistic regression on the logarithms of the candidates' probabilities:
 *             P(class c) = softmax(sum_m w_m ln p_mc + b_c). It minimises
 *                 mean over rows of -ln P(target) + penalty / 2 * (s |w - 1/M|^2 + |b|^2),
 *             where s is the mean square of ln p_mc around its mean over the classes of a row
 *   numbers   ridge regression: sum_m w_m f_mc + b_c. It minimises
 *                 mean over rows and outputs of squared error + penalty * s |w - 1/M|^2,
 *             where s is the mean square of f_mc around its mean over the rows. b is free
 *
 * A class's own probabilities suffice as inputs of its logit (A. Seewald, "How to make stacking
 * better and faster while also taking care of an unknown weakness", ICML 2002), and one coefficient
 * for each candidate and not for each pair of candidate and class keeps small sets from being
 * fitted by accident. The penalty pulls to the equal weights of a mean and not to 0: with a strong
 * one the ensemble is the (geometric) mean of its members. The strength is chosen by
 * cross-validation inside of the rows that are fitted. With non_negative, coefficients are at least
 * 0 (L. Breiman, "Stacked regressions", 1996).
 *
 * Means over rows are weighted where rows have weights; a row of weight 2 counts as two.
 *
 * At most STACK_VALUES logarithms or numbers take part: a few dozen coefficients need no more rows,
 * and the time stays within seconds. */
#include <math.h>
#include <string.h>

#include "model/combine/combine.h"
#include "search/ensemble/selection_priv.h"
#include "search/regression/lbfgs.h"

#define STACK_VALUES ((size_t)1 << 19)
#define INNER_FOLDS 3

/* From strong to weak: each fit starts at the one before, and ties go to the stronger. */
static const double penalties[] = {100, 10, 1, 0.1, 0.01, 1e-3, 1e-4};

struct stack {
    size_t n, M, C;
    double *x;           /* [n, M, C]; classes: logarithms */
    double *y;           /* numbers: [n, C] */
    size_t *label;       /* classes: [n] */
    double *weight;      /* [n]; 1 if all are alike */
    unsigned char *fold; /* [n] */
    int without;         /* the fold that a fit leaves out; -1: none */
    double penalty, scale;
    double *gram;          /* numbers: [M, M] and [M]: products of the centred columns … */
    double *mean;          /* … around these: [M, C], then [C] of y */
    double squares;        /* numbers: mean square of the centred y */
    double *theta;         /* [M + C]; numbers: [M] of it are fitted, the rest follows */
    double *lower, *upper; /* [M + C] */
    double *logits;        /* [C] */
    struct lbfgs_work *lbfgs;
};

static void stack_done(struct stack *k)
{
    free(k->x);
    free(k->y);
    free(k->label);
    free(k->weight);
    free(k->fold);
    free(k->gram);
    free(k->mean);
    free(k->theta);
    free(k->lower);
    free(k->upper);
    free(k->logits);
    lbfgs_work_free(k->lbfgs);
}

/* ---- the rows ---- */

static void set_bounds(struct stack *k, bool non_negative)
{
    for (size_t i = 0; i < k->M + k->C; i++) {
        k->lower[i] = non_negative && i < k->M ? 0 : -INFINITY;
        k->upper[i] = INFINITY;
        k->theta[i] = i < k->M ? 1 / (double)k->M : 0;
    }
}

/* For n rows of the first M picks. */
static as_status stack_init(struct stack *k, const struct selection *s, size_t n, size_t M,
                            struct as_err *err)
{
    const struct ensemble_input *in = s->in;
    bool classes = in->truth.classes != NULL;
    k->n = n;
    k->M = M;
    k->C = in->truth.outputs;
    k->without = -1;
    k->x = as_calloc(n * k->M, k->C * sizeof *k->x);
    k->y = as_calloc(classes ? 1 : n * k->C, sizeof *k->y);
    k->label = as_calloc(classes ? n : 1, sizeof *k->label);
    k->weight = as_calloc(n, sizeof *k->weight);
    k->fold = as_calloc(n, sizeof *k->fold);
    k->gram = as_calloc(k->M + 1, k->M * sizeof *k->gram);
    k->mean = as_calloc(k->M + 1, k->C * sizeof *k->mean);
    k->theta = as_calloc(k->M + k->C, sizeof *k->theta);
    k->lower = as_calloc(k->M + k->C, sizeof *k->lower);
    k->upper = as_calloc(k->M + k->C, sizeof *k->upper);
    k->logits = as_calloc(k->C, sizeof *k->logits);
    if (!k->x || !k->y || !k->label || !k->weight || !k->fold || !k->gram || !k->mean ||
        !k->theta || !k->lower || !k->upper || !k->logits)
        return as_fail_nomem(err);
    set_bounds(k, in->non_negative);
    return lbfgs_work_create(k->M + k->C, 1, &k->lbfgs, err);
}

static void copy_row(struct stack *k, const struct selection *s, size_t row, size_t i)
{
    const struct score_truth *t = &s->in->truth;
    k->weight[i] = score_weight(t, row);
    for (size_t m = 0; m < k->M; m++)
        for (size_t c = 0; c < k->C; c++) {
            double v = (double)s->in->predictions[s->picks[m]][row * k->C + c];
            k->x[(i * k->M + m) * k->C + c] = t->classes ? combine_log(v) : v;
        }
    if (t->classes)
        k->label[i] = (size_t)t->classes[row];
    for (size_t c = 0; !t->classes && c < k->C; c++)
        k->y[i * k->C + c] = (double)t->targets[row * k->C + c];
}

/* Every stride-th row, in the order of the seed's places, so that a file sorted by class is no
 * trouble. Returns the number of rows. */
static size_t copy_rows(struct stack *k, const struct selection *s, struct row_list l,
                        size_t stride)
{
    size_t n = 0;
    for (size_t i = 0; i < l.n; i++) {
        size_t place = s->places[l.rows[i]];
        if (place % stride != 0 || n == k->n)
            continue;
        k->fold[n] = (unsigned char)(place / stride % INNER_FOLDS);
        copy_row(k, s, l.rows[i], n++);
    }
    return n;
}

/* Where no row has weight, all count alike. */
static void mend_weights(struct stack *k)
{
    double sum = 0;
    for (size_t i = 0; i < k->n; i++)
        sum += k->weight[i];
    for (size_t i = 0; !(sum > 0) && i < k->n; i++)
        k->weight[i] = 1;
}

static bool is_used(const struct stack *k, size_t i)
{
    return k->fold[i] != k->without;
}

/* ---- classes ---- */

/* The mean square of the inputs around their means over the classes of a row. */
static double scale_of_logs(const struct stack *k)
{
    double sum = 0, cells = 0;
    for (size_t i = 0; i < k->n * k->M; i++) {
        double w = k->weight[i / k->M];
        cells += w * (double)k->C;
        const double *x = k->x + i * k->C;
        double mean = 0;
        for (size_t c = 0; c < k->C; c++)
            mean += x[c] / (double)k->C;
        for (size_t c = 0; c < k->C; c++)
            sum += w * (x[c] - mean) * (x[c] - mean);
    }
    return sum > 0 ? sum / cells : 1;
}

/* -ln P(target) of row i; the probabilities are left in k->logits. */
static double row_loss(struct stack *k, const double *theta, size_t i)
{
    double most = -INFINITY, sum = 0;
    double *z = k->logits;
    memcpy(z, theta + k->M, k->C * sizeof *z);
    for (size_t m = 0; m < k->M; m++) {
        const double *x = k->x + (i * k->M + m) * k->C;
        for (size_t c = 0; c < k->C; c++)
            z[c] += theta[m] * x[c];
    }
    for (size_t c = 0; c < k->C; c++)
        most = fmax(most, z[c]);
    double target = z[k->label[i]] - most;
    for (size_t c = 0; c < k->C; c++)
        sum += z[c] = exp(z[c] - most);
    for (size_t c = 0; c < k->C; c++)
        z[c] /= sum;
    return log(sum) - target;
}

/* Value and gradient of the objective of classes; of one point at a time (lbfgs_fn). */
static void logistic(void *ctx, const double *theta, const size_t *start, size_t points,
                     double *ret_f, double *ret_g)
{
    struct stack *k = ctx;
    double n = 0, f = 0;
    (void)start;
    (void)points; /* there is one start */
    memset(ret_g, 0, (k->M + k->C) * sizeof *ret_g);
    for (size_t i = 0; i < k->n; i++) {
        if (!is_used(k, i))
            continue;
        double w = k->weight[i];
        n += w;
        f += w * row_loss(k, theta, i);
        k->logits[k->label[i]] -= 1; /* the derivative by the logits */
        for (size_t c = 0; c < k->C; c++)
            k->logits[c] *= w;
        for (size_t m = 0; m < k->M; m++) {
            const double *x = k->x + (i * k->M + m) * k->C;
            for (size_t c = 0; c < k->C; c++)
                ret_g[m] += k->logits[c] * x[c];
        }
        for (size_t c = 0; c < k->C; c++)
            ret_g[k->M + c] += k->logits[c];
    }
    f /= n;
    for (size_t j = 0; j < k->M + k->C; j++) {
        double d = j < k->M ? theta[j] - 1 / (double)k->M : theta[j];
        double strength = k->penalty * (j < k->M ? k->scale : 1);
        ret_g[j] = ret_g[j] / n + strength * d;
        f += strength / 2 * d * d;
    }
    *ret_f = f;
}

/* ---- numbers ---- */

static void centre(struct stack *k)
{
    double n = 0;
    memset(k->mean, 0, (k->M + 1) * k->C * sizeof *k->mean);
    for (size_t i = 0; i < k->n; i++) {
        double w = is_used(k, i) ? k->weight[i] : 0;
        for (size_t j = 0; is_used(k, i) && j < k->M * k->C; j++)
            k->mean[j] += w * k->x[i * k->M * k->C + j];
        for (size_t c = 0; is_used(k, i) && c < k->C; c++)
            k->mean[k->M * k->C + c] += w * k->y[i * k->C + c];
        n += w;
    }
    for (size_t j = 0; j < (k->M + 1) * k->C; j++)
        k->mean[j] /= n;
}

/* The products of the centred columns, as means over rows and outputs. */
static void multiply(struct stack *k)
{
    double n = 0, *by_y = k->gram + k->M * k->M;
    memset(k->gram, 0, (k->M + 1) * k->M * sizeof *k->gram);
    k->squares = 0;
    for (size_t i = 0; i < k->n; i++) {
        const double *x = k->x + i * k->M * k->C;
        double w = is_used(k, i) ? k->weight[i] : 0;
        n += w * (double)k->C;
        for (size_t c = 0; is_used(k, i) && c < k->C; c++) {
            double y = k->y[i * k->C + c] - k->mean[k->M * k->C + c];
            k->squares += w * y * y;
            for (size_t a = 0; a < k->M; a++) {
                double xa = x[a * k->C + c] - k->mean[a * k->C + c];
                by_y[a] += w * xa * y;
                for (size_t b = 0; b <= a; b++)
                    k->gram[a * k->M + b] += w * xa * (x[b * k->C + c] - k->mean[b * k->C + c]);
            }
        }
    }
    for (size_t a = 0; a < k->M; a++) {
        by_y[a] /= n;
        for (size_t b = 0; b <= a; b++) {
            k->gram[a * k->M + b] /= n;
            k->gram[b * k->M + a] = k->gram[a * k->M + b];
        }
    }
    k->squares /= n;
}

/* Half of the objective of numbers, as a share of the mean square of y (lbfgs_fn). */
static void ridge(void *ctx, const double *w, const size_t *start, size_t points, double *ret_f,
                  double *ret_g)
{
    const struct stack *k = ctx;
    const double *by_y = k->gram + k->M * k->M;
    double unit = k->squares > 0 ? k->squares : 1, f = k->squares / 2;
    (void)start;
    (void)points;
    for (size_t a = 0; a < k->M; a++) {
        double product = 0, d = w[a] - 1 / (double)k->M, strength = k->penalty * k->scale;
        for (size_t b = 0; b < k->M; b++)
            product += k->gram[a * k->M + b] * w[b];
        f += w[a] * (product / 2 - by_y[a]) + strength / 2 * d * d;
        ret_g[a] = (product - by_y[a] + strength * d) / unit;
    }
    *ret_f = f / unit;
}

static void solve_numbers(struct stack *k)
{
    const struct lbfgs_opts opts = {
        .max_iters = 2000, .max_evals = 4000, .pg_tol = 1e-10, .f_tol = 1e-15};
    const struct lbfgs_problem p = {
        .fn = ridge, .ctx = k, .n = k->M, .lower = k->lower, .upper = k->upper};
    struct lbfgs_result r;
    lbfgs_minimize(&p, &opts, k->theta, 1, &r, k->lbfgs);
    for (size_t c = 0; c < k->C; c++) {
        double *b = &k->theta[k->M + c];
        *b = k->mean[k->M * k->C + c];
        for (size_t m = 0; m < k->M; m++)
            *b -= k->theta[m] * k->mean[m * k->C + c];
    }
}

static double row_error(const struct stack *k, size_t i)
{
    double sum = 0;
    for (size_t c = 0; c < k->C; c++) {
        double v = k->theta[k->M + c] - k->y[i * k->C + c];
        for (size_t m = 0; m < k->M; m++)
            v += k->theta[m] * k->x[(i * k->M + m) * k->C + c];
        sum += v * v;
    }
    return sum / (double)k->C;
}

/* ---- both ---- */

/* Fit with k->penalty, from where k->theta is. A rough fit is good enough to compare penalties. */
static void solve(struct stack *k, bool classes, bool rough)
{
    const struct lbfgs_opts opts = {.max_iters = rough ? 30 : 200,
                                    .max_evals = rough ? 40 : 300,
                                    .pg_tol = rough ? 1e-3 : 1e-6,
                                    .f_tol = rough ? 1e-5 : 1e-10};
    const struct lbfgs_problem p = {
        .fn = logistic, .ctx = k, .n = k->M + k->C, .lower = k->lower, .upper = k->upper};
    struct lbfgs_result r;
    if (classes)
        lbfgs_minimize(&p, &opts, k->theta, 1, &r, k->lbfgs);
    else
        solve_numbers(k);
}

/* Prepare the fits without a fold (or with all). */
static void leave_out(struct stack *k, int fold, bool classes, bool non_negative)
{
    k->without = fold;
    set_bounds(k, non_negative);
    if (classes)
        return;
    centre(k);
    multiply(k);
    double trace = 0;
    for (size_t m = 0; m < k->M; m++)
        trace += k->gram[m * k->M + m] / (double)k->M;
    k->scale = trace > 0 ? trace : 1;
}

/* Add the losses of the fold that is left out, for each penalty. */
static void validate(struct stack *k, bool classes, double *losses)
{
    for (size_t p = 0; p < AS_ARRAY_LEN(penalties); p++) {
        k->penalty = penalties[p];
        solve(k, classes, true);
        for (size_t i = 0; i < k->n; i++)
            if (!is_used(k, i))
                losses[p] += k->weight[i] * (classes ? row_loss(k, k->theta, i) : row_error(k, i));
    }
}

static size_t choose_penalty(struct stack *k, bool classes, bool non_negative)
{
    double losses[AS_ARRAY_LEN(penalties)] = {0};
    double count[INNER_FOLDS] = {0}, all = 0;
    size_t best = 0;
    for (size_t i = 0; i < k->n; i++) {
        count[k->fold[i]] += k->weight[i];
        all += k->weight[i];
    }
    for (int f = 0; f < INNER_FOLDS; f++) {
        if (!(count[f] > 0) || !(count[f] < all))
            continue; /* very few rows: the strongest penalty */
        leave_out(k, f, classes, non_negative);
        validate(k, classes, losses);
    }
    for (size_t p = 1; p < AS_ARRAY_LEN(penalties); p++)
        best = losses[p] < losses[best] ? p : best;
    return best;
}

as_status stacking_fit(struct selection *s, struct row_list l, struct combination *ret,
                       struct as_err *err)
{
    const struct ensemble_input *in = s->in;
    bool classes = in->truth.classes != NULL;
    AS_AUTO(stack_done) struct stack k = {0};
    size_t M = 0;
    as_status st = selection_best(s, &M, err);
    if (st != AS_OK)
        return st;
    size_t row = in->truth.outputs * M;
    size_t most = row < STACK_VALUES ? STACK_VALUES / row : 1;
    size_t stride = 1 + (l.n - 1) / most;
    st = stack_init(&k, s, l.n < most ? l.n : most, M, err);
    if (st != AS_OK)
        return st;
    k.n = copy_rows(&k, s, l, stride);
    if (k.n == 0) { /* few rows of very many outputs, none of which is at such a place */
        k.n = 1;
        copy_row(&k, s, l.rows[0], 0);
    }
    mend_weights(&k);
    k.scale = classes ? scale_of_logs(&k) : 1;
    size_t chosen = choose_penalty(&k, classes, in->non_negative);
    leave_out(&k, -1, classes, in->non_negative);
    for (size_t p = 0; p <= chosen; p++) {
        k.penalty = penalties[p];
        solve(&k, classes, p < chosen);
    }
    for (size_t m = 0; m < k.M; m++) {
        ret->weights[s->picks[m]] = k.theta[m];
        ret->counts[s->picks[m]] = k.theta[m] != 0;
    }
    memcpy(ret->biases, k.theta + k.M, k.C * sizeof *ret->biases);
    ret->penalty = k.penalty;
    ret->is_linear = true;
    return AS_OK;
}
