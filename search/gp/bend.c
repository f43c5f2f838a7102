/* The test of all numbers, and the state. Numbers have a column each, whatever is dead. A scale is
 * first tried under the hyperparameters that were fitted to the present one, which is cheap; the
 * best of all is fitted anew. */
#include "search/gp/bend.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/gp/trial_rows.h"

/* The constants are of decision 4032. */
#define TRIALS_FIRST 12
#define GROWTH 1.1
#define FIT_EVALS 40
/* How much better, as a logarithm of the evidence, another scale must explain the values: with 3
 * other families lost 0.02 (standard error 0.01) by numbers that were bent late. */
#define BETTER 5.0
/* A number with a longer lengthscale has hardly an effect, so that its scale says nothing. */
#define LENGTH_MOST 4.0

/* A number on a better scale acts more evenly, so that its lengthscale is longer: its column is
 * tried so much narrower. A try at its own width, too, takes twice the time and gains little. */
#define WIDTH 0.6

/* The widest scale from the upper end is tried only of a number that is on the one before: tried at
 * once it was taken for the others, and `scales` lost 0.2 (standard error 0.07) after 60 trials. */
#define UPPER (-1000)
#define UPPER_WIDEST (-50000)

static const double rates[] = {0, 20, 1000, 50000, -20, UPPER, UPPER_WIDEST};
#define N_RATES (sizeof rates / sizeof rates[0])

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the scales of the parameters");
}

/* ---- the state: {"bent": [[param, rate], …], "tested": n} ---- */

static bool is_rate(double rate)
{
    for (size_t k = 1; k < N_RATES; k++)
        if (rates[k] == rate)
            return true;
    return false;
}

/* Set the rate of a number; 0 straightens it. */
static void set_rate(struct bends *b, size_t param, double rate)
{
    size_t at = 0;
    while (at < b->n_bent && b->bent[at].param < param)
        at++;
    bool is_there = at < b->n_bent && b->bent[at].param == param;
    if (rate != 0 && !is_there) {
        memmove(b->bent + at + 1, b->bent + at, (b->n_bent++ - at) * sizeof *b->bent);
        b->bent[at].param = param;
    }
    if (rate != 0)
        b->bent[at].rate = rate;
    else if (is_there)
        memmove(b->bent + at, b->bent + at + 1, (--b->n_bent - at) * sizeof *b->bent);
}

as_status bends_read(const struct search_spec *spec, const json_t *state, struct bends *ret,
                     struct as_err *err)
{
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    size_t i;
    const json_t *item;
    *ret = (struct bends){0};
    if (spec->n_objectives > 1 || spec->earlier || space_is_constrained(spec->space))
        return AS_OK;
    as_status st = encoding_create(spec->space, &e, err);
    if (st < 0 || e->has_conditions)
        return st;
    ret->may_learn = true;
    json_int_t n = json_integer_value(json_object_get(state, "tested"));
    ret->n_trials = n > 0 ? (size_t)n : 0;
    json_array_foreach(json_object_get(state, "bent"), i, item)
    {
        json_int_t param = json_integer_value(json_array_get(item, 0));
        double rate = json_number_value(json_array_get(item, 1));
        if (param >= 0 && (size_t)param < e->n && encoding_may_bend(e, (size_t)param) &&
            is_rate(rate))
            set_rate(ret, (size_t)param, rate);
    }
    return AS_OK;
}

json_t *bends_write(const struct bends *b)
{
    JSON_AUTO bent = json_array();
    for (size_t i = 0; i < b->n_bent; i++)
        if (json_array_append_new(bent, json_pack("[I,I]", (json_int_t)b->bent[i].param,
                                                  (json_int_t)b->bent[i].rate)) < 0)
            return NULL;
    if (!b->n_bent && !b->n_trials)
        return json_null();
    return json_pack("{s:O, s:I}", "bent", bent, "tested", (json_int_t)b->n_trials);
}

/* ---- the test ---- */

struct test {
    struct trial_rows t;
    const struct idle_numbers *idle;
    struct gp_fit_work *work;
    double *theta, *again;
};

static void test_done(struct test *x)
{
    trial_rows_done(&x->t);
    free(x->theta);
    free(x->again);
}

static as_status reserve(struct test *x, const struct training_set *s, struct as_err *err)
{
    x->theta = as_calloc(s->enc->n + 2, sizeof *x->theta);
    x->again = as_calloc(s->enc->n + 2, sizeof *x->again);
    as_status st = trial_rows_reserve(&x->t, s, err);
    return st == AS_OK && (!x->theta || !x->again) ? out_of_memory(err) : st;
}

static bool is_completed(const struct training_set *s, size_t i, const void *arg)
{
    (void)arg;
    return s->state[i] == OBSERVED_COMPLETED;
}

/* Column c of the rows on the scale of this rate, `width` times as wide. */
static void set_column(struct trial_rows *t, size_t c, double rate, double width)
{
    double now = t->s->enc->params[t->param[c]].bend;
    for (size_t i = 0; i < t->rows.n; i++) {
        double place = trial_rows_place(t, i, c);
        if (rate != now)
            place = encoding_bend(rate, encoding_unbend(now, place));
        trial_rows_put(t, i, c, place, width);
    }
}

/* An idle number acts in a part of the space alone. Its few trials there, beside many that it has
 * no effect on, look like those of a number that acts near an end of its range. */
static bool may_bend(const struct test *x, size_t c)
{
    size_t param = x->t.param[c];
    return encoding_may_bend(x->t.s->enc, param) && !idle_holds(x->idle, param) &&
           x->theta[c] <= log(LENGTH_MOST);
}

/* The best other scale of any number, by minus the log posterior under the present theta. *ret_at
 * is that of the present scales before. */
static as_status try_scales(struct test *x, size_t *ret_column, double *ret_rate, double *ret_at,
                            struct as_err *err)
{
    struct trial_rows *t = &x->t;
    for (size_t c = 0; c < t->columns.n_real; c++) {
        double now = t->s->enc->params[t->param[c]].bend;
        if (!may_bend(x, c))
            continue;
        for (size_t k = 0; k < N_RATES; k++) {
            double rate = rates[k], at;
            if (rate == now || (rate == UPPER_WIDEST && now != UPPER))
                continue;
            set_column(t, c, rate, WIDTH);
            as_status st =
                gp_fit_value(&t->columns, &t->rows, t->y, x->theta, x->work, &at, NULL, err);
            if (st < 0)
                return st;
            if (at < *ret_at) {
                *ret_at = at;
                *ret_column = c;
                *ret_rate = rate;
            }
        }
        set_column(t, c, now, 1);
    }
    return AS_OK;
}

static as_status test_scales(struct test *x, struct bends *b, bool *ret_changed, struct as_err *err)
{
    struct trial_rows *t = &x->t;
    struct gp_fit_opts opts = {.cold = true, .max_evals = FIT_EVALS};
    struct gp_fit_result fitted, other;
    size_t column = SIZE_MAX;
    double rate = 0;
    as_status st = gp_fit(&t->columns, &t->rows, t->y, &opts, x->work, x->theta, &fitted, err);
    double at = fitted.nll;
    if (st == AS_OK)
        st = try_scales(x, &column, &rate, &at, err);
    if (st < 0 || column == SIZE_MAX)
        return st;
    set_column(t, column, rate, 1);
    opts = (struct gp_fit_opts){.warm = x->theta, .max_evals = FIT_EVALS};
    st = gp_fit(&t->columns, &t->rows, t->y, &opts, x->work, x->again, &other, err);
    if (st < 0 || other.nll + BETTER > fitted.nll)
        return st;
    set_rate(b, t->param[column], rate);
    *ret_changed = true;
    return AS_OK;
}

as_status bends_learn(const struct training_set *s, const struct idle_numbers *idle,
                      struct gp_fit_work **work, struct bends *b, bool *ret_changed,
                      struct as_err *err)
{
    *ret_changed = false;
    if (!b->may_learn || s->n_completed < TRIALS_FIRST ||
        (double)s->n_completed < GROWTH * (double)b->n_trials)
        return AS_OK;
    if (!*work && !(*work = gp_fit_work_create()))
        return out_of_memory(err);
    AS_AUTO(test_done) struct test x = {.idle = idle, .work = *work};
    as_status st = reserve(&x, s, err);
    if (st < 0)
        return st;
    if (x.t.columns.n_real)
        st = trial_rows_fill(&x.t, s->n_completed, is_completed, NULL, err);
    if (st == AS_OK && x.t.columns.n_real)
        st = test_scales(&x, b, ret_changed, err);
    if (!*ret_changed)
        b->n_trials = s->n_completed;
    return st == AS_E_NUMERIC ? AS_OK : st;
}
