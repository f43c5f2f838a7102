/* The test of each step, and the state: {"tested": n, "unseen": bool}. */
#include "search/gp/influence.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "search/regression/warp.h"

/* The constants are of decision 4033. */
#define RESULTS_FIRST 30 /* with 24, evidence on networks and on noise overlap */
#define GROWTH 1.25
#define ROWS_LEAST 16 /* values of a step, before it is looked at */
#define ROWS_MOST 64  /* the first half of them and the newest half */
#define EVIDENCE 4.0  /* so much greater is the log posterior where there is an influence */
#define FIT_EVALS 60
#define PLACES_MOST 32 /* steps that are looked at, beside the last one */

struct influence influence_read(const json_t *state)
{
    json_int_t n = json_integer_value(json_object_get(state, "tested"));
    if (n <= 0)
        return (struct influence){0};
    return (struct influence){(size_t)n, json_is_true(json_object_get(state, "unseen"))};
}

json_t *influence_write(const struct influence *f)
{
    if (!f->n_tested)
        return json_null();
    return json_pack("{s:I, s:b}", "tested", (json_int_t)f->n_tested, "unseen", f->is_unseen);
}

/* The values of one step. */
struct test {
    const struct training_set *s;
    double place; /* of the step */
    struct gp_columns columns;
    struct gp_rows rows;
    double *x, *y, *theta;
    int32_t *z;
};

static void test_done(struct test *t)
{
    free(t->x);
    free(t->z);
    free(t->y);
    free(t->theta);
}

static as_status reserve(struct test *t, struct as_err *err)
{
    t->columns = t->s->columns;
    t->columns.has_steps = false;
    t->x = as_calloc(ROWS_MOST, t->columns.n_real * sizeof *t->x);
    t->z = as_calloc(ROWS_MOST, t->columns.n_cat * sizeof *t->z);
    t->y = as_calloc(ROWS_MOST, sizeof *t->y);
    t->theta = as_calloc(gp_n_theta(&t->columns), sizeof *t->theta);
    if (!t->x || !t->z || !t->y || !t->theta)
        return as_fail(err, AS_E_NOMEM, "out of memory for a test of the parameters' influence");
    return AS_OK;
}

/* The value of trial i at the step; false: it has none. */
static bool find_value(const struct test *t, size_t i, double *ret)
{
    const struct training_set *s = t->s;
    if (t->place >= 1) {
        *ret = s->costs[i * s->spec->n_objectives];
        return s->state[i] == OBSERVED_COMPLETED;
    }
    for (size_t r = s->rung_from[i]; r < s->rung_from[i + 1]; r++) {
        if (s->rungs[r].place != t->place)
            continue;
        *ret = s->rungs[r].costs[0];
        return true;
    }
    return false;
}

/* Fill the rows; too few values leave them empty. */
static as_status fill_rows(struct test *t, struct as_err *err)
{
    size_t n_values = 0, seen = 0, n_real = t->columns.n_real, n_cat = t->columns.n_cat;
    AS_AUTO(gp_warp_freep) struct gp_warp *warp = NULL;
    double value;
    t->rows = (struct gp_rows){.x = t->x, .z = t->z};
    for (size_t i = 0; i < t->s->n; i++)
        n_values += find_value(t, i, &value);
    if (n_values < ROWS_LEAST)
        return AS_OK;
    for (size_t i = 0; i < t->s->n; i++) {
        if (!find_value(t, i, &value))
            continue;
        bool is_row = seen < ROWS_MOST / 2 || n_values - seen <= ROWS_MOST / 2;
        seen++;
        if (!is_row)
            continue;
        memcpy(t->x + t->rows.n * n_real, t->s->x + i * n_real, n_real * sizeof *t->x);
        memcpy(t->z + t->rows.n * n_cat, t->s->z + i * n_cat, n_cat * sizeof *t->z);
        t->y[t->rows.n++] = value;
    }
    as_status st = gp_warp_create(WARP_HALF_RANK, t->y, t->rows.n, &warp, err);
    if (st == AS_OK)
        memcpy(t->y, gp_warp_values(warp), t->rows.n * sizeof *t->y);
    return st;
}

/* All rows have one configuration. */
static void level_rows(struct test *t)
{
    for (size_t i = 0; i < t->rows.n * t->columns.n_real; i++)
        t->x[i] = 0.5;
    for (size_t i = 0; i < t->rows.n * t->columns.n_cat; i++)
        t->z[i] = 0;
}

/* How much greater is the log posterior of a fit with the configurations? */
static as_status weigh(struct test *t, struct gp_fit_work *work, double *ret, struct as_err *err)
{
    struct gp_fit_opts opts = {.cold = true, .max_evals = FIT_EVALS};
    struct gp_fit_result with, without;
    as_status st = gp_fit(&t->columns, &t->rows, t->y, &opts, work, t->theta, &with, err);
    if (st < 0)
        return st;
    level_rows(t);
    st = gp_fit(&t->columns, &t->rows, t->y, &opts, work, t->theta, &without, err);
    if (st == AS_OK)
        *ret = without.nll - with.nll;
    return st;
}

/* The places of the steps at which trials have values, and of the last one. */
static size_t list_places(const struct training_set *s, double ret[PLACES_MOST + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < s->rung_from[s->n]; i++) {
        size_t k = 0;
        while (k < n && ret[k] != s->rungs[i].place)
            k++;
        if (k == n && n < PLACES_MOST)
            ret[n++] = s->rungs[i].place;
    }
    ret[n++] = 1;
    return n;
}

as_status influence_learn(const struct training_set *s, struct gp_fit_work **work,
                          struct influence *f, struct as_err *err)
{
    double places[PLACES_MOST + 1];
    size_t n_results = training_set_results(s);
    if (!s->rungs || s->spec->n_objectives > 1 || !s->enc->n_varied || n_results < RESULTS_FIRST ||
        (double)n_results < GROWTH * (double)f->n_tested)
        return AS_OK;
    if (!*work && !(*work = gp_fit_work_create()))
        return as_fail_nomem(err);
    AS_AUTO(test_done) struct test t = {.s = s};
    as_status st = reserve(&t, err);
    size_t n_tests = 0, n_places = list_places(s, places);
    bool is_seen = false;
    for (size_t k = 0; k < n_places && st == AS_OK && !is_seen; k++) {
        double gain = INFINITY;
        t.place = places[k];
        if ((st = fill_rows(&t, err)) < 0 || !t.rows.n)
            continue;
        st = weigh(&t, *work, &gain, err);
        st = st == AS_E_NUMERIC ? AS_OK : st;
        is_seen = gain >= EVIDENCE;
        n_tests++;
    }
    if (st == AS_OK)
        *f = (struct influence){n_results, n_tests > 0 && !is_seen};
    return st;
}
