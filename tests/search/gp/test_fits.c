/* Fits of a model past 200 rows: no suggestion does more than a slice, and the slices arrive where
 * one fit would. */
#include <math.h>

#include "search/gp/surrogate.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SPACE                                                                                      \
    "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n"                         \
    "z: {type: float, min: 0, max: 1}\nk: {type: categorical, values: [a, b, c]}\n"
#define FROM 190
#define TO 330
#define SLICE 10 /* values of a slice of 200 rows; it has fewer for more rows */
#define WHOLE 24 /* of all slices of a fit */

/* Random trials of a bowl with a wave. */
static void add_trials(struct sweep *w, size_t to)
{
    const struct search_method *gp = w->spec.method;
    struct as_err err = {0};
    ck_ok(search_method_parse("sobol", "", &w->spec.method, &err), err);
    while (w->n < to) {
        ck_ok(sweep_ask(w, &err), err);
        double wave = sin(9 * sweep_number(w, w->n - 1, 0));
        sweep_tell(w, w->n - 1, sweep_bowl(w, w->n - 1) + 0.2 * wave);
    }
    w->spec.method = gp;
}

struct rig {
    struct sweep *w;
    struct surrogate_store store;
    json_t *state;
    struct surrogate made;
    struct training_set *set;
};

static void drop(struct rig *r)
{
    surrogate_done(&r->made);
    training_set_free(r->set);
    r->set = NULL;
}

static void rig_done(struct rig *r)
{
    drop(r);
    surrogate_store_done(&r->store);
    json_decref(r->state);
}

/* The model of the trials now, from the state of the time before. */
static void prepare(struct rig *r, surrogate_target target)
{
    struct as_err err = {0};
    const struct history h = {r->w->trials, r->w->n};
    const struct surrogate_spec spec = {target, 0, 2048, r->w->n};
    drop(r);
    ck_ok(training_set_create(&r->w->spec, &h, NULL, &r->set, &err), err);
    ck_ok(surrogate_prepare(&r->store, r->set, &spec, r->state, &r->made, &err), err);
    json_decref(r->state);
    r->state = json_incref(r->made.state);
}

/* One result between two suggestions. */
START_TEST(slices_are_short)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(rig_done) struct rig r = {.w = &w};
    size_t fits = 0, sum = 0, most_sum = 0;
    sweep_init(&w, s, 3, false);
    for (size_t n = FROM; n <= TO; n++) {
        add_trials(&w, n);
        prepare(&r, SURROGATE_WARPED);
        ck_assert(n > 200 || (r.made.refitted && !json_object_get(r.state, "next")));
        if (n <= 200)
            continue;
        ck_assert_msg(r.made.evals <= SLICE, "%zu values at %zu rows", r.made.evals, n);
        sum = r.made.evals ? sum + r.made.evals : 0;
        most_sum = sum > most_sum ? sum : most_sum;
        fits += r.made.refitted;
    }
    ck_assert_uint_ge(fits, 5);
    ck_assert_uint_le(most_sum, 3 * WHOLE);
}
END_TEST

static double posterior_at(const struct rig *r, const double *theta, double *ret_fitted)
{
    const struct gp_columns *c = gp_model_columns(r->made.model);
    const struct gp_rows rows = {r->set->n, r->set->x, r->set->z};
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = gp_fit_work_create();
    struct gp_fit_opts opts = {.cold = true, .n_random = 2};
    struct gp_fit_result best;
    double own[16], value;
    struct as_err err = {0};
    const double *y = gp_warp_values(r->made.warp);
    ck_assert_uint_le(gp_n_theta(c), AS_ARRAY_LEN(own));
    ck_ok(gp_fit_value(c, &rows, y, theta, work, &value, NULL, &err), err);
    ck_ok(gp_fit(c, &rows, y, &opts, work, own, &best, &err), err);
    *ret_fitted = best.nll;
    return value;
}

/* The first model of 300 trials sees 128 of them, and then the slices see all, without new results.
 * A value of 1 more of the negative log posterior is less than hyperparameters matter. */
START_TEST(slices_converge)
{
    static const surrogate_target targets[] = {SURROGATE_WARPED, SURROGATE_PLAIN};
    for (size_t k = 0; k < AS_ARRAY_LEN(targets); k++) {
        AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
        AS_AUTO(sweep_done) struct sweep w = {0};
        AS_AUTO(rig_done) struct rig r = {.w = &w};
        sweep_init(&w, s, 3, false);
        add_trials(&w, 300);
        prepare(&r, targets[k]);
        ck_assert(json_object_get(r.state, "next"));
        size_t steps = 0;
        for (; json_object_get(r.state, "next") && steps < 10; steps++) {
            prepare(&r, targets[k]);
            ck_assert_uint_le(r.made.evals, SLICE);
        }
        ck_assert(steps > 1 && steps < 10);
        prepare(&r, targets[k]);
        ck_assert(!r.made.refitted && r.made.evals == 0);
        double fitted, value = posterior_at(&r, gp_model_theta(r.made.model), &fitted);
        ck_assert_msg(value <= fitted + 1, "%g, not %g", value, fitted);
    }
}
END_TEST

/* So many results at once that the model's rows would not suffice: all are in the base, and the fit
 * to them waits. */
START_TEST(many_results_at_once)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(rig_done) struct rig r = {.w = &w};
    sweep_init(&w, s, 3, false);
    add_trials(&w, 210);
    prepare(&r, SURROGATE_WARPED);
    add_trials(&w, 210 + SURROGATE_NEW_ROWS);
    prepare(&r, SURROGATE_WARPED);
    ck_assert_uint_eq(r.made.fit_rows, w.n);
    ck_assert(r.made.evals == 0 && json_object_get(r.state, "next"));
}
END_TEST

/* A state whose unfinished fit is not one is as good as one without. */
START_TEST(strange_fits_under_way)
{
    static const char *const strange[] = {"[]", "{}", "{\"evals\": -1}", "{\"evals\": 3}", "7"};
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(rig_done) struct rig r = {.w = &w};
    sweep_init(&w, s, 3, false);
    add_trials(&w, 205);
    prepare(&r, SURROGATE_WARPED);
    while (json_object_get(r.state, "next"))
        prepare(&r, SURROGATE_WARPED);
    for (size_t i = 0; i < AS_ARRAY_LEN(strange); i++) {
        json_object_set_new(r.state, "next", json_loads(strange[i], JSON_DECODE_ANY, NULL));
        prepare(&r, SURROGATE_WARPED);
        ck_assert(!json_object_get(r.state, "next") && r.made.evals == 0);
    }
}
END_TEST

#define NUMBER(name) name ": {type: float, min: 0, max: 1}\n"
#define NINE_NUMBERS                                                                               \
    NUMBER("a")                                                                                    \
    NUMBER("b")                                                                                    \
    NUMBER("c") NUMBER("d") NUMBER("e") NUMBER("f") NUMBER("g") NUMBER("h") NUMBER("i")
#define KIND "kind: {type: categorical, values: [p, q]}\n"

/* ln s2 of a model of 25 random trials. */
static double variance_of(const char *space, surrogate_target target)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(space);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(rig_done) struct rig r = {.w = &w};
    struct as_err err = {0};
    sweep_init(&w, s, 3, false);
    ck_ok(search_method_parse("sobol", "", &w.spec.method, &err), err);
    while (w.n < 25) {
        ck_ok(sweep_ask(&w, &err), err);
        double a = sweep_number(&w, w.n - 1, 0), b = sweep_number(&w, w.n - 1, 1);
        sweep_tell(&w, w.n - 1, (a - 0.3) * (a - 0.3) + a * b);
    }
    prepare(&r, target);
    return gp_model_theta(r.made.model)[r.set->enc->n_lengths];
}

/* The smooth model of a large space of choices that declares nothing has the variance of its
 * values; others have their own. */
START_TEST(the_smooth_model_of_a_large_flat_space_is_of_unit_variance)
{
    static const char flat[] = NINE_NUMBERS NUMBER("j") KIND;
    static const char declared[] =
        NINE_NUMBERS KIND "j: {type: float, min: 0, max: 1, when: {kind: p}}\n";
    ck_assert(variance_of(flat, SURROGATE_SMOOTH) == 0);
    ck_assert(variance_of(flat, SURROGATE_WARPED) != 0);
    ck_assert(variance_of(declared, SURROGATE_SMOOTH) != 0);
    ck_assert(variance_of(NINE_NUMBERS KIND, SURROGATE_SMOOTH) != 0);
    ck_assert(variance_of(NINE_NUMBERS NUMBER("j") NUMBER("k"), SURROGATE_SMOOTH) != 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/fits");
    TCase *t = tcase_create("slices");
    tcase_add_test(t, slices_are_short);
    tcase_add_test(t, slices_converge);
    tcase_add_test(t, many_results_at_once);
    tcase_add_test(t, strange_fits_under_way);
    tcase_add_test(t, the_smooth_model_of_a_large_flat_space_is_of_unit_variance);
    suite_add_tcase(s, t);
    return s;
}
