/* One fit to all columns gives the hyperparameters. Then each column alone is made as wide as an
 * effect of each strength asks for, or constant, and the likelihood is read again. A trial that
 * says nothing of a number has the middle in its column, so that it weighs neither for nor
 * against. */
#include "search/gp/effect.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define FIT_EVALS 60

/* Lengthscales of effects: the usual ones first. */
static const double lengths[] = {0.35, 0.7, 1.4, 2.8, 5.6};
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])
#define N_USUAL 3

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for what is learned of the parameters");
}

void effects_done(struct effects *e)
{
    trial_rows_done(&e->t);
    free(e->is_silent);
    free(e->is_left_out);
    free(e->best);
    free(e->none);
}

as_status effects_reserve(struct effects *e, const struct training_set *s, struct as_err *err)
{
    size_t d = s->enc->n;
    e->is_silent = as_calloc(TRIAL_ROWS_MOST, d * sizeof *e->is_silent);
    e->is_left_out = as_calloc(d, sizeof *e->is_left_out);
    e->best = as_calloc(d, sizeof *e->best);
    e->none = as_calloc(d, sizeof *e->none);
    as_status st = trial_rows_reserve(&e->t, s, err);
    if (st < 0)
        return st;
    return e->is_silent && e->is_left_out && e->best && e->none ? AS_OK : out_of_memory(err);
}

/* Column c of the rows, `scale` times as wide as it is; 0 makes it constant. */
static void set_column(struct effects *e, size_t c, double scale)
{
    struct trial_rows *t = &e->t;
    for (size_t i = 0; i < t->rows.n; i++)
        trial_rows_put(t, i, c, trial_rows_place(t, i, c), effects_is_silent(e, i, c) ? 0 : scale);
}

/* Minus the log posterior with column c so wide. */
static as_status value_at(struct effects *e, size_t c, double scale, const double *theta,
                          struct gp_fit_work *work, double *ret, struct as_err *err)
{
    set_column(e, c, scale);
    return gp_fit_value(&e->t.columns, &e->t.rows, e->t.y, theta, work, ret, NULL, err);
}

static as_status weigh(struct effects *e, size_t c, const double *theta, struct gp_fit_work *work,
                       struct as_err *err)
{
    double none, at[N_LENGTHS], usual = 0, best = -INFINITY, own = exp(theta[c]);
    as_status st = value_at(e, c, 0, theta, work, &none, err);
    for (size_t k = 0; k < N_LENGTHS && st == AS_OK; k++)
        st = value_at(e, c, own / lengths[k], theta, work, &at[k], err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < N_LENGTHS; k++) {
        best = fmax(best, none - at[k]);
        usual += k < N_USUAL ? exp(fmin(300, none - at[k])) / N_USUAL : 0;
    }
    e->best[c] = best;
    e->none[c] = -log(usual);
    return AS_OK;
}

static void find_silent(struct effects *e, const struct effect_trials *trials)
{
    const struct trial_rows *t = &e->t;
    size_t n = t->columns.n_real;
    for (size_t i = 0; trials->is_silent && i < t->rows.n; i++)
        for (size_t c = 0; c < n; c++)
            e->is_silent[i * n + c] =
                trials->is_silent(t->s, t->trial[i], t->param[c], trials->arg);
}

size_t effects_rows(const struct effects *e, size_t c)
{
    size_t n = 0;
    for (size_t i = 0; i < e->t.rows.n; i++)
        n += !effects_is_silent(e, i, c);
    return n;
}

as_status effects_weigh(struct effects *e, const struct effect_trials *trials,
                        struct gp_fit_work **work, struct as_err *err)
{
    struct gp_fit_opts opts = {.cold = true, .max_evals = FIT_EVALS};
    struct trial_rows *t = &e->t;
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(&t->columns), sizeof *theta);
    if (!theta || (!*work && !(*work = gp_fit_work_create())))
        return out_of_memory(err);
    as_status st = trial_rows_fill(t, trials->n, trials->takes, trials->arg, err);
    if (st < 0)
        return st;
    find_silent(e, trials);
    for (size_t c = 0; c < t->columns.n_real; c++)
        set_column(e, c, !e->is_left_out[c]);
    st = gp_fit(&t->columns, &t->rows, t->y, &opts, *work, theta, NULL, err);
    for (size_t c = 0; c < t->columns.n_real && st == AS_OK; c++) {
        if (!encoding_may_die(t->s->enc, t->param[c]))
            continue;
        st = weigh(e, c, theta, *work, err);
        set_column(e, c, !e->is_left_out[c]);
    }
    return st;
}
