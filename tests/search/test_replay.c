/* The tests make a history with suggest() itself, with results that arrive late and out of order as
 * in a service. It must replay to the last bit, and a manipulated history must not. */
#include "search/replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "search/prior/warm_start.h"
#include "search/regret_replay.h"
#include "search/suggest.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

#define LATE 3 /* results are known this many trials later */

/* What the search of a sweep learns from, and the prior of x; empty: nothing. */
static const char *earlier = "", *believed = "";
/* The condition of m; empty: the search has to find out what has an effect where. */
static const char *condition = ",\"when\":{\"opt\":\"a\"}";

/* The loss is by the logarithm of the distance of x from its lower end. */
static bool is_steep;
/* The loss is higher where opt is a, by so much more as m is higher. */
static bool has_two_parts;
/* The document says that values have no noise. */
static bool is_exact;

static json_t *make_sweep(const char *method)
{
    char text[1200];
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"s\",\"method\":\"%s\",\"seed\":\"7\",\"metrics\":[{\"name\":\"loss\","
                   "\"goal\":\"minimize\"}],\"constraints\":[{\"metric\":\"ms\",\"max\":20}],"
                   "\"document\":{\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"%s},"
                   "\"search\":{\"method\":\"%s\",\"seed\":7%s},\"parameters\":{"
                   "\"x\":{\"type\":\"float\",\"min\":-1,\"max\":1,\"points\":4%s},"
                   "\"w\":{\"type\":\"int\",\"min\":1,\"max\":9},"
                   "\"opt\":{\"type\":\"categorical\",\"values\":[\"a\",\"b\"]},"
                   "\"m\":{\"type\":\"float\",\"min\":0,\"max\":1,\"points\":3%s}}}}",
                   method, is_exact ? ",\"noise\":\"none\"" : "", method, earlier, believed,
                   condition);
    return json_plain(text);
}

/* The data that a service keeps while it makes a history. */
struct maker {
    json_t *sweep, *items, *state;
    struct space *space;
    struct search_spec spec;
    struct warm_start *earlier;
    struct observation all[64];
    struct config *configs[64];
    size_t n, n_suggested;
};

static void maker_init(struct maker *m, const char *method)
{
    struct as_err err = {0};
    *m = (struct maker){.sweep = make_sweep(method), .items = json_array()};
    ck_ok(space_parse(json_object_get(json_object_get(m->sweep, "document"), "parameters"),
                      "/parameters", &m->space, &err),
          err);
    m->spec =
        (struct search_spec){.space = m->space, .seed = 7, .n_objectives = 1, .n_outcomes = 1};
    m->spec.outcomes[0] = (struct outcome_bound){.min = -INFINITY, .max = 20};
    m->spec.is_exact = is_exact;
    ck_ok(search_method_parse(method, "/method", &m->spec.method, &err), err);
    struct json_fields f;
    const json_t *search = json_object_get(json_object_get(m->sweep, "document"), "search");
    ck_ok(json_fields_init(&f, search, "/search", &err), err);
    ck_ok(warm_start_parse(&f, m->space, &m->earlier, &err), err);
    m->spec.earlier = m->earlier;
}

static void maker_done(struct maker *m)
{
    for (size_t i = 0; i < m->n; i++)
        config_free(m->configs[i]);
    json_decref(m->sweep);
    json_decref(m->items);
    json_decref(m->state);
    warm_start_free(m->earlier);
    space_free(m->space);
}

/* The state, the values and the rest of trial t: one in seven fails, one in eleven was cancelled.
 */
static void add_item(struct maker *m, size_t t, json_t *origin, bool is_suggested, size_t seen)
{
    const char *state = t % 11 == 5 ? "cancelled" : t % 7 == 3 ? "failed" : "completed";
    double loss = m->configs[t] && m->configs[t]->entries[0].active
                      ? m->configs[t]->entries[0].value.real
                      : 0;
    double steep = log10(loss + 1 + 1e-4) + 2.5;
    loss = is_steep ? 0.06 * steep * steep : loss * loss;
    if (has_two_parts && m->configs[t]->entries[2].value.choice == 0)
        loss += 0.5 + m->configs[t]->entries[3].value.real;
    json_t *item =
        json_pack("{s:I, s:s, s:o, s:o, s:I, s:o, s:{s:f, s:f}}", "number", (json_int_t)t, "state",
                  state, "origin", origin, "params", config_to_json(m->space, m->configs[t]),
                  "finish_seq", (json_int_t)(t + 1), "index",
                  is_suggested ? json_integer((json_int_t)m->n_suggested) : json_null(), "metrics",
                  "loss", loss, "ms", 10 + 20 * loss);
    ck_assert_ptr_nonnull(item);
    if (is_suggested)
        ck_assert_int_eq(json_object_set_new(item, "seen", json_integer((json_int_t)seen)), 0);
    ck_assert_int_eq(json_array_append_new(m->items, item), 0);
    m->all[t] = (struct observation){.number = t,
                                     .config = m->configs[t],
                                     .state = *state == 'c' && state[1] == 'o' ? OBSERVED_COMPLETED
                                                                               : OBSERVED_FAILED,
                                     .is_suggested = is_suggested};
    for (size_t i = 0; i < SEARCH_MAX_OBJECTIVES; i++)
        m->all[t].values[i] = NAN;
    for (size_t i = 0; i < SEARCH_MAX_OUTCOMES; i++)
        m->all[t].outcomes[i] = NAN;
    if (m->all[t].state == OBSERVED_COMPLETED) {
        m->all[t].values[0] = loss;
        m->all[t].outcomes[0] = 10 + 20 * loss;
    }
}

/* Suggest trial t from the results of all but the last LATE. */
static void make_suggested(struct maker *m)
{
    struct as_err err = {0};
    struct suggestion s = {0};
    struct observation known[64];
    size_t t = m->n, n = 0, seen = t > LATE ? t - LATE : 0;
    for (size_t i = 0; i < t; i++) {
        bool is_known = i < seen;
        if (is_known && i % 11 == 5)
            continue; /* cancelled */
        known[n] = m->all[i];
        if (!is_known) {
            known[n].state = OBSERVED_PENDING;
            known[n].values[0] = known[n].outcomes[0] = NAN;
        }
        n++;
    }
    struct history h = {.trials = known, .n = n};
    ck_ok(suggest(&m->spec, &h, m->state, t, m->n_suggested, NULL, &s, &err), err);
    json_t *reason = json_deep_copy(s.reason);
    json_decref(m->state);
    m->state = json_incref(s.state);
    m->configs[t] = config_copy(s.config);
    add_item(m, t, json_string("suggested"), true, seen);
    ck_assert_int_eq(json_object_set_new(json_array_get(m->items, t), "suggestion", reason), 0);
    suggestion_done(&s);
    m->n_suggested++;
    m->n++;
}

static void make_known(struct maker *m)
{
    struct as_err err = {0};
    JSON_AUTO params = json_plain("{\"x\":1.0,\"w\":3,\"opt\":\"b\"}");
    if (*condition == '\0')
        ck_assert_int_eq(json_object_set_new(params, "m", json_real(0.5)), 0);
    ck_ok(config_from_json(m->space, params, "", &m->configs[m->n], &err), err);
    add_item(m, m->n, json_string("known"), false, 0);
    m->n++;
}

/* A history of n trials, two of which were added by users. */
static void make_trials(struct maker *m, const char *method, size_t n)
{
    maker_init(m, method);
    for (size_t t = 0; t < n; t++) {
        if (t == 4 || t == 9)
            make_known(m);
        else
            make_suggested(m);
    }
}

static void make(struct maker *m, const char *method)
{
    make_trials(m, method, 30);
}

/* How many suggestions are the same; `first` is the number of the first that is not. */
static size_t count_same(const struct maker *m, size_t *total, int64_t *first)
{
    struct as_err err = {0};
    struct replay *r = NULL;
    struct replay_step step;
    size_t same = 0;
    *total = 0;
    *first = -1;
    ck_ok(replay_create(m->sweep, m->items, &r, &err), err);
    as_status st;
    while ((st = replay_next(r, &step, &err)) == AS_OK) {
        ++*total;
        same += step.is_same;
        if (!step.is_same && *first < 0)
            *first = (int64_t)step.number;
    }
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
    ck_assert_uint_eq(*total, replay_suggested(r));
    replay_free(r);
    return same;
}

static const char *const methods[] = {"gp",    "sobol",     "random",     "grid", "tpe", "forest",
                                      "cmaes", "evolution", "coordinate", "mcmc", "auto"};

START_TEST(the_same_again)
{
    struct maker m;
    size_t total;
    int64_t first;
    make(&m, methods[_i]);
    ck_assert_uint_eq(count_same(&m, &total, &first), 28);
    ck_assert_uint_eq(total, 28);
    maker_done(&m);
}
END_TEST

/* The document holds what was known before; without it the first suggestion is another one. */
START_TEST(the_same_with_what_was_known_before)
{
    static const char *const learning[] = {"gp",        "tpe",        "forest", "cmaes",
                                           "evolution", "coordinate", "mcmc"};
    struct maker m;
    size_t total;
    int64_t first;
    earlier = ",\"prior\":[{\"sweep\":\"old\",\"completed\":9,\"trials\":[{\"params\":{\"x\":0.9,"
              "\"w\":8,\"opt\":\"a\",\"m\":0.1},\"cost\":3}]}]";
    believed = ",\"prior\":{\"mean\":-0.8,\"deviation\":0.1}";
    make(&m, learning[_i]);
    ck_assert_uint_eq(count_same(&m, &total, &first), 28);
    json_t *search = json_object_get(json_object_get(m.sweep, "document"), "search");
    ck_assert_int_eq(json_object_del(search, "prior"), 0);
    ck_assert_uint_lt(count_same(&m, &total, &first), 28);
    ck_assert_int_eq(first, 0);
    maker_done(&m);
    earlier = believed = "";
}
END_TEST

/* What was learned of the parameters is a part of the state, and of the reasons. */
START_TEST(the_same_with_what_was_learned)
{
    const char *declared = condition;
    struct maker m;
    size_t total, n_learned = 0, i;
    int64_t first;
    json_t *item;
    condition = "";
    has_two_parts = true;
    make_trials(&m, "gp", 60);
    json_array_foreach(m.items, i, item) n_learned +=
        json_object_get(json_object_get(item, "suggestion"), "no_effect") != NULL;
    ck_assert_uint_gt(n_learned, 2);
    ck_assert_uint_eq(count_same(&m, &total, &first), 58);
    maker_done(&m);
    condition = declared;
    has_two_parts = false;
}
END_TEST

/* So are the scales of numbers. */
START_TEST(the_same_with_learned_scales)
{
    const char *declared = condition;
    struct maker m;
    size_t total, n_learned = 0, i;
    int64_t first;
    json_t *item;
    condition = "";
    is_steep = true;
    make_trials(&m, "gp", 60);
    json_array_foreach(m.items, i, item) n_learned +=
        json_object_get(json_object_get(item, "suggestion"), "scales") != NULL;
    ck_assert_uint_gt(n_learned, 2);
    ck_assert_uint_eq(count_same(&m, &total, &first), 58);
    maker_done(&m);
    condition = declared;
    is_steep = false;
}
END_TEST

/* That values are exact is a word of the document. */
START_TEST(the_same_with_exact_values)
{
    struct maker m;
    size_t total;
    int64_t first;
    is_exact = true;
    make(&m, "gp");
    ck_assert_uint_eq(count_same(&m, &total, &first), 28);
    /* without the word, the models would be others */
    json_t *document = json_object_get(m.sweep, "document");
    ck_assert_int_eq(json_object_del(json_object_get(document, "metric"), "noise"), 0);
    ck_assert_uint_lt(count_same(&m, &total, &first), 28);
    maker_done(&m);
    is_exact = false;
}
END_TEST

START_TEST(in_any_order)
{
    struct maker m;
    size_t total;
    int64_t first;
    make(&m, "gp");
    for (size_t i = 0; i < 15; i++) { /* the list from the end */
        json_t *a = json_incref(json_array_get(m.items, i));
        json_t *b = json_incref(json_array_get(m.items, 29 - i));
        ck_assert_int_eq(json_array_set_new(m.items, i, b), 0);
        ck_assert_int_eq(json_array_set_new(m.items, 29 - i, a), 0);
    }
    ck_assert_uint_eq(count_same(&m, &total, &first), 28);
    maker_done(&m);
}
END_TEST

START_TEST(a_changed_parameter)
{
    struct maker m;
    size_t total;
    int64_t first;
    make(&m, methods[_i]);
    json_t *params = json_object_get(json_array_get(m.items, 12), "params");
    json_int_t w = json_integer_value(json_object_get(params, "w"));
    ck_assert_int_eq(json_object_set_new(params, "w", json_integer(w == 1 ? 2 : 1)), 0);
    ck_assert_uint_lt(count_same(&m, &total, &first), 28);
    ck_assert_int_eq(first, 12);
    maker_done(&m);
}
END_TEST

/* The parameters are the same, the reason is not. */
START_TEST(a_changed_reason)
{
    struct maker m;
    size_t total;
    int64_t first;
    make(&m, "gp");
    json_t *reason = json_object_get(json_array_get(m.items, 20), "suggestion");
    double value = json_number_value(json_object_get(reason, "value"));
    ck_assert_int_eq(json_object_set_new(reason, "value", json_real(nextafter(value, INFINITY))),
                     0);
    ck_assert_uint_eq(count_same(&m, &total, &first), 27);
    ck_assert_int_eq(first, 20);
    maker_done(&m);
}
END_TEST

/* Each part is possible, but not in combination. */
START_TEST(what_does_not_fit_together)
{
    static const struct {
        size_t item;
        const char *field;
        json_int_t value;
        const char *part;
    } cases[] = {
        {12, "index", 11, "trial 12 has index 11, expected 10"},
        {12, "seen", 13, "trial 12 saw the results up to 13, and ended as number 13"},
        {12, "finish_seq", 12, "trial 12 has the place 12 of the order, as another trial has"},
    };
    struct as_err err = {0};
    struct replay *r = NULL;
    struct maker m;
    make(&m, "gp");
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        json_t *trial = json_array_get(m.items, cases[i].item);
        json_t *before = json_incref(json_object_get(trial, cases[i].field));
        json_object_set_new(trial, cases[i].field, json_integer(cases[i].value));
        ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err, cases[i].part);
        json_object_set_new(trial, cases[i].field, before);
    }
    json_object_set_new(m.sweep, "counts", json_pack("{s:i}", "total", 30));
    ck_ok(replay_create(m.sweep, m.items, &r, &err), err);
    replay_free(r);
    json_array_remove(m.items, 29);
    ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err,
             "found 29 trials, expected 30");
    maker_done(&m);
}
END_TEST

START_TEST(another_seed)
{
    struct maker m;
    size_t total;
    int64_t first;
    make(&m, "random");
    ck_assert_int_eq(json_object_set_new(m.sweep, "seed", json_string("8")), 0);
    ck_assert_uint_lt(count_same(&m, &total, &first), 5);
    ck_assert_int_eq(first, 0);
    maker_done(&m);
}
END_TEST

START_TEST(what_is_not_whole)
{
    struct as_err err = {0};
    struct replay *r = NULL;
    struct maker m;
    make(&m, "sobol");
    json_t *trial = json_array_get(m.items, 7);
    ck_assert_int_eq(json_object_set_new(trial, "finish_seq", json_null()), 0);
    ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err, "/items/7");
    ck_assert_int_eq(json_object_set_new(trial, "state", json_string("running")), 0);
    ck_ok(replay_create(m.sweep, m.items, &r, &err), err);
    replay_free(r);
    ck_assert_int_eq(json_object_set_new(trial, "index", json_null()), 0);
    ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err, "index");
    ck_assert_int_eq(json_array_remove(m.items, 7), 0);
    ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err, "not whole");
    ck_assert_int_eq(json_object_del(m.sweep, "metrics"), 0);
    ck_fails(replay_create(m.sweep, m.items, &r, &err), AS_E_INVAL, err, "/sweep/metrics");
    ck_fails(replay_create(m.items, m.items, &r, &err), AS_E_INVAL, err, "expected a sweep");
    maker_done(&m);
}
END_TEST

#define BETWEEN 33 /* completed trials: no scheduled count, at which a service may keep a bound */

/* The bounds that a service would keep of that history: each from the trials that had ended when
 * its last trial completed. */
static json_t *bounds_of(const struct maker *m)
{
    struct as_err err = {0};
    struct observation known[64];
    size_t completed = 0, due = regret_bound_next(0), n = 0;
    json_t *list = json_array();
    for (size_t t = 0; t < m->n; t++) {
        struct regret_bound b;
        if (t % 11 == 5)
            continue; /* cancelled */
        known[n++] = m->all[t];
        completed += m->all[t].state == OBSERVED_COMPLETED;
        if ((completed < due && completed != BETWEEN) || m->all[t].state != OBSERVED_COMPLETED)
            continue;
        const struct history h = {known, n};
        ck_ok(regret_bound_compute(&m->spec, &h, &b, &err), err);
        json_t *x = json_pack("{s:I, s:I, s:b, s:o*, s:o*}", "completed", (json_int_t)completed,
                              "finish_seq", (json_int_t)(t + 1), "enough", b.is_enough, "bound",
                              b.is_known ? json_real(b.bound) : NULL, "relative",
                              b.is_known && isfinite(b.relative) ? json_real(b.relative) : NULL);
        ck_assert_int_eq(json_array_append_new(list, x), 0);
        due = regret_bound_next(completed);
    }
    return list;
}

/* How many bounds are the same; `ret_why` (160 bytes): of the last that is not. */
static size_t count_bounds(const struct maker *m, const json_t *list, char *ret_why)
{
    struct as_err err = {0};
    AS_AUTO(replay_freep) struct replay *r = NULL;
    size_t same = 0;
    *ret_why = 0;
    ck_ok(replay_create(m->sweep, m->items, &r, &err), err);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct regret_step step;
        ck_ok(regret_replay_step(r, list, i, &step, &err), err);
        same += step.is_same;
        if (!step.is_same)
            (void)snprintf(ret_why, 160, "%s", step.why);
    }
    return same;
}

static void set(json_t *list, size_t i, const char *name, json_t *v)
{
    ck_assert_int_eq(json_object_set_new(json_array_get(list, i), name, v), 0);
}

START_TEST(bounds_are_the_same_again)
{
    struct maker m;
    struct as_err err = {0};
    struct regret_step step;
    AS_AUTO(replay_freep) struct replay *r = NULL;
    char why[160];
    make_trials(&m, _i ? "random" : "gp", 48);
    JSON_AUTO list = bounds_of(&m);
    size_t n = json_array_size(list);
    ck_assert_uint_ge(n, 16);
    ck_assert_uint_eq(count_bounds(&m, list, why), n);
    size_t between = regret_bound_latest(BETWEEN) - regret_bound_next(0) + 1;
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(list, between), "completed")), BETWEEN);
    ck_assert_uint_gt(n, between + 1); /* one follows */
    const double bound = json_real_value(json_object_get(json_array_get(list, 9), "bound"));
    set(list, 9, "bound", json_real(nextafter(bound, 2)));
    ck_assert_uint_eq(count_bounds(&m, list, why), n - 1);
    ck_assert_ptr_nonnull(strstr(why, "again"));
    set(list, 9, "bound", json_real(bound));
    set(list, 4, "enough", json_true());
    ck_assert_uint_eq(count_bounds(&m, list, why), n - 1);
    ck_assert_str_eq(why, "whether it says something differs");
    set(list, 4, "enough", json_false());
    json_int_t seq = json_integer_value(json_object_get(json_array_get(list, 6), "finish_seq"));
    set(list, 7, "finish_seq", json_integer(seq));
    ck_assert_uint_lt(count_bounds(&m, list, why), n);
    ck_assert_ptr_nonnull(strstr(why, "trials had completed"));
    ck_assert_int_eq(json_array_remove(list, 7), 0); /* one is missing */
    ck_assert_uint_eq(count_bounds(&m, list, why), n - 2);
    ck_assert_ptr_nonnull(strstr(why, "the one before is of"));
    set(list, 0, "finish_seq", json_string("first"));
    ck_ok(replay_create(m.sweep, m.items, &r, &err), err);
    ck_fails(regret_replay_step(r, list, 0, &step, &err), AS_E_INVAL, err, "/regret/0");
    maker_done(&m);
}
END_TEST

START_TEST(nothing)
{
    struct as_err err = {0};
    struct replay *r = NULL;
    struct replay_step step;
    JSON_AUTO sweep = make_sweep("gp");
    JSON_AUTO items = json_array();
    ck_ok(replay_create(sweep, items, &r, &err), err);
    ck_assert_int_eq(replay_next(r, &step, &err), AS_E_EXHAUSTED);
    replay_free(r);
    replay_free(NULL);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("replay");
    TCase *t = tcase_create("replay");
    tcase_add_loop_test(t, the_same_with_what_was_known_before, 0, 7);
    tcase_add_loop_test(t, the_same_again, 0, AS_ARRAY_LEN(methods));
    tcase_add_test(t, the_same_with_what_was_learned);
    tcase_add_test(t, the_same_with_learned_scales);
    tcase_add_test(t, the_same_with_exact_values);
    tcase_add_test(t, in_any_order);
    tcase_add_loop_test(t, a_changed_parameter, 0, AS_ARRAY_LEN(methods));
    tcase_add_test(t, another_seed);
    tcase_add_test(t, a_changed_reason);
    tcase_add_test(t, what_does_not_fit_together);
    tcase_add_test(t, what_is_not_whole);
    tcase_add_loop_test(t, bounds_are_the_same_again, 0, 2);
    tcase_add_test(t, nothing);
    suite_add_tcase(s, t);
    return s;
}
