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
    free(e->is_left_out);
    free(e->best);
    free(e->none);
}

as_status effects_reserve(struct effects *e, const struct training_set *s, struct as_err *err)
{
    size_t d = s->enc->n;
    e->is_left_out = as_calloc(d, sizeof *e->is_left_out);
    e->best = as_calloc(d, sizeof *e->best);
    e->none = as_calloc(d, sizeof *e->none);
    as_status st = trial_rows_reserve(&e->t, s, err);
    if (st < 0)
        return st;
    return e->is_left_out && e->best && e->none ? AS_OK : out_of_memory(err);
}

/* Column c of the rows, `scale` times as wide as it is; 0 makes it constant. */
static void set_column(struct trial_rows *t, size_t c, double scale)
{
    for (size_t i = 0; i < t->rows.n; i++)
        trial_rows_put(t, i, c, trial_rows_place(t, i, c), scale);
}

/* Minus the log posterior with column c so wide. */
static as_status value_at(struct trial_rows *t, size_t c, double scale, const double *theta,
                          struct gp_fit_work *work, double *ret, struct as_err *err)
{
    set_column(t, c, scale);
    return gp_fit_value(&t->columns, &t->rows, t->y, theta, work, ret, NULL, err);
}

static as_status weigh(struct effects *e, size_t c, const double *theta, struct gp_fit_work *work,
                       struct as_err *err)
{
    double none, at[N_LENGTHS], usual = 0, best = -INFINITY, own = exp(theta[c]);
    as_status st = value_at(&e->t, c, 0, theta, work, &none, err);
    for (size_t k = 0; k < N_LENGTHS && st == AS_OK; k++)
        st = value_at(&e->t, c, own / lengths[k], theta, work, &at[k], err);
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

as_status effects_weigh(struct effects *e, size_t n_all,
                        bool (*takes)(const struct training_set *s, size_t i, const void *arg),
                        const void *arg, struct gp_fit_work **work, struct as_err *err)
{
    struct gp_fit_opts opts = {.cold = true, .max_evals = FIT_EVALS};
    struct trial_rows *t = &e->t;
    AS_AUTO(as_freep) double *theta = as_calloc(gp_n_theta(&t->columns), sizeof *theta);
    if (!theta || (!*work && !(*work = gp_fit_work_create())))
        return out_of_memory(err);
    as_status st = trial_rows_fill(t, n_all, takes, arg, err);
    for (size_t c = 0; c < t->columns.n_real; c++)
        set_column(t, c, !e->is_left_out[c]);
    if (st == AS_OK)
        st = gp_fit(&t->columns, &t->rows, t->y, &opts, *work, theta, NULL, err);
    for (size_t c = 0; c < t->columns.n_real && st == AS_OK; c++) {
        if (!encoding_may_die(t->s->enc, t->param[c]))
            continue;
        st = weigh(e, c, theta, *work, err);
        set_column(t, c, !e->is_left_out[c]);
    }
    return st;
}
