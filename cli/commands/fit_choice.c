/* Candidates are compared by figures that no choice has seen (the ensemble's cross-fitted
 * value), and by the sizes of their trials' models, which are known before anything is composed. */
#include "cli/commands/fit_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/commands/ensemble_ask.h"
#include "cli/commands/fit_sizes.h"
#include "cli/fit/fit_metric.h"

#define ENSEMBLE_LEAST_MS 5000 /* for the sweep's own, however late it is */
#define KEEP_TIMEOUT_MS 600000
#define RETRY_MS 30000

void fit_choice_done(struct fit_choice *c)
{
    json_decref(c->ensemble);
    *c = (struct fit_choice){0};
}

/* What choosing needs. */
struct choosing {
    const struct session *s;
    const struct trial_ref *sweep;
    const struct fit_trained *of;
    int64_t size_bytes, until_ns;
    int64_t
        within_bytes; /* of what is asked for as small: size_bytes, or more if nothing has that */
    struct fit_sizes sizes;
    struct fit_choice best, larger; /* within the size, and of all that are larger */
    struct fit_choice smallest;     /* of all that are larger */
    bool has_best, has_larger, maximize;
    const char *metric; /* of the ensembles; a view of `own` */
    json_t *own;        /* the sweep's own ensemble; owned */
};

static bool is_ready(const json_t *ensemble)
{
    return as_streq(json_string_value(json_object_get(ensemble, "state")), "ready");
}

/* ---- requests ---- */

/* An ensemble to ask for. */
struct way {
    const char *method;
    int64_t size;
    bool calibrate;
    bool small;  /* only where something is too large, and of what fits */
    bool shared; /* only where another sweep takes part: of one it is there already */
};

/* *ret: the ensemble, as it is at the end of the wait. */
static as_status ask(const struct choosing *c, const struct way *way, json_t **ret,
                     int64_t *ret_number, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s, s:I, s:b}", "method", way->method, "size",
                               (json_int_t)way->size, "calibrate", (int)way->calibrate);
    JSON_AUTO answer = NULL;
    JSON_AUTO sweeps = json_array();
    bool bad = !body || !sweeps;
    for (size_t i = 0; i < c->of->n_also; i++)
        bad |= json_array_append_new(sweeps, json_string(c->of->also[i])) != 0;
    if (c->of->n_also > 0)
        bad |= json_object_set(body, "sweeps", sweeps) != 0;
    if (way->small)
        bad |=
            json_object_set_new(body, "max_bytes", json_integer((json_int_t)c->within_bytes)) != 0;
    if (bad)
        return as_fail_nomem(err);
    as_status st = ensemble_ask(c->s, c->sweep, body, c->until_ns, &answer, err);
    if (st < 0)
        return st;
    *ret_number = json_integer_value(json_object_get(answer, "number"));
    *ret = json_incref(json_object_get(answer, "ensemble"));
    return AS_OK;
}

/* ---- candidates ---- */

/* Is a better than b? Equal ones: the smaller. */
static bool is_better(const struct choosing *c, const struct fit_choice *a,
                      const struct fit_choice *b)
{
    if (a->value == b->value || isnan(a->value) || isnan(b->value))
        return a->bytes < b->bytes;
    return c->maximize ? a->value > b->value : a->value < b->value;
}

/* Shares its ensemble. */
static void hold(struct fit_choice *held, const struct fit_choice *offered)
{
    json_t *shared = json_incref(offered->ensemble);
    fit_choice_done(held);
    *held = *offered;
    held->ensemble = shared;
}

/* Keep a candidate if it is the best of its side of the size, or the smallest that is too large. */
static void offer(struct choosing *c, const struct fit_choice *offered)
{
    bool fits = offered->bytes <= c->size_bytes;
    struct fit_choice *best = fits ? &c->best : &c->larger;
    bool *has = fits ? &c->has_best : &c->has_larger;
    if (!fits && (!c->has_larger || offered->bytes < c->smallest.bytes))
        hold(&c->smallest, offered);
    if (!*has || is_better(c, offered, best))
        hold(best, offered);
    *has = true;
}

static as_status offer_ensemble(struct choosing *c, json_t *ensemble, int64_t asked,
                                struct as_err *err)
{
    const json_t *single = json_object_get(ensemble, "best_single");
    struct fit_choice whole = {.ensemble = ensemble, .asked = asked}, one = whole;
    one.single = true;
    one.asked = 0;
    whole.value = json_number_value(json_object_get(ensemble, "value"));
    one.value = json_number_value(json_object_get(single, "value"));
    c->maximize = as_streq(json_string_value(json_object_get(ensemble, "goal")), "maximize");
    as_status st = fit_size_of_ensemble(&c->sizes, ensemble, &whole.bytes, err);
    if (st == AS_OK)
        st = fit_size_of_trial(&c->sizes, single, &one.bytes, err);
    if (st < 0)
        return st;
    offer(c, &whole);
    offer(c, &one);
    return AS_OK;
}

/* Does the metric look at the order of rows alone? A calibration does not change that. */
static bool is_of_ranks(const char *metric)
{
    return as_streq(metric, "auc") || as_streq(metric, "average_precision");
}

static bool is_wanted(const struct choosing *c, const struct way *way)
{
    return clock_mono_ns() <= c->until_ns && (!way->small || c->has_larger) &&
           (!way->shared || c->of->n_also > 0) &&
           (!way->calibrate || fit_metric_is_of_classes(c->metric));
}

/* Ensembles of other methods and sizes, as long as there is time: the stacked one may be better, a
 * calibration makes probabilities better and thresholds count more right classes. Where something
 * was too large, the last ones are chosen among members that fit together. */
static as_status offer_others(struct choosing *c, struct as_err *err)
{
    static const struct way others[] = {
        {"greedy", 16, false, false, true},    {"greedy", 16, true, false, false},
        {"stacking", 16, false, false, false}, {"bucketing", 1, true, false, false},
        {"stacking", 16, true, false, false},  {"greedy", 16, false, true, false},
        {"stacking", 16, false, true, false},  {"greedy", 16, true, true, false}};
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++) {
        JSON_AUTO e = NULL;
        int64_t number = 0;
        if (!is_wanted(c, &others[i]))
            continue;
        as_status st = ask(c, &others[i], &e, &number, err);
        if (st < 0)
            return st;
        if (!is_ready(e))
            continue;
        st = offer_ensemble(c, e, number, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* Nothing is as small as it has to be: look for what is nearest to it, in steps. */
static as_status offer_smallest(struct choosing *c, struct as_err *err)
{
    static const struct way small = {"greedy", 16, false, true, false};
    int64_t within = c->size_bytes;
    while (!c->has_best && within < c->smallest.bytes / 2 && clock_mono_ns() <= c->until_ns) {
        JSON_AUTO e = NULL;
        int64_t number = 0;
        c->within_bytes = within *= 2;
        as_status st = ask(c, &small, &e, &number, err);
        if (st == AS_OK && is_ready(e))
            return offer_ensemble(c, e, number, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static bool is_calibrated(const struct fit_choice *chosen)
{
    return !chosen->single && json_is_true(json_object_get(chosen->ensemble, "calibrate"));
}

/* A calibration changes no ranks, but those who use the model read its probabilities: with a metric
 * of ranks what was chosen is calibrated in any case. Its figure is measured anew. */
static as_status calibrate_chosen(struct choosing *c, struct fit_choice *chosen, struct as_err *err)
{
    JSON_AUTO e = NULL;
    int64_t number = 0, bytes = 0, soon_ns = clock_mono_ns() + ENSEMBLE_LEAST_MS * NS_PER_MS;
    const char *method = json_string_value(json_object_get(chosen->ensemble, "method"));
    struct way way = {.method = chosen->single ? "bucketing" : method,
                      .size = json_integer_value(json_object_get(chosen->ensemble, "size")),
                      .calibrate = true,
                      .small = chosen->bytes <= c->within_bytes && c->has_larger};
    if (!chosen->ensemble || !is_of_ranks(c->metric) || is_calibrated(chosen))
        return AS_OK;
    c->until_ns = c->until_ns > soon_ns ? c->until_ns : soon_ns;
    as_status st = ask(c, &way, &e, &number, err);
    if (st < 0 || !is_ready(e))
        return st;
    st = fit_size_of_ensemble(&c->sizes, e, &bytes, err);
    if (st < 0 || (bytes > c->size_bytes && bytes > chosen->bytes))
        return st;
    json_decref(chosen->ensemble);
    chosen->ensemble = as_steal(e);
    chosen->value = json_number_value(json_object_get(chosen->ensemble, "value"));
    chosen->asked = number;
    chosen->single = false;
    return AS_OK;
}

/* The best trial of a sweep without an ensemble, which has too few trials with predictions. */
static as_status offer_best_trial(struct choosing *c, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    struct fit_choice one = {.single = true, .value = NAN};
    as_status st = request_get_within(c->s->client, c->sweep, NULL, RETRY_MS, &sweep, err);
    if (st < 0)
        return st;
    const json_t *best = json_object_get(sweep, "best");
    if (!json_is_object(best))
        return as_fail(err, AS_E_NOT_FOUND, "no training has ended");
    st = fit_size_of_trial(&c->sizes, best, &one.bytes, err);
    if (st == AS_OK)
        offer(c, &one);
    return st;
}

static as_status look_at_all(struct choosing *c, struct as_err *err)
{
    int64_t until_ns = clock_mono_ns() + ENSEMBLE_LEAST_MS * NS_PER_MS;
    until_ns = until_ns > c->until_ns ? until_ns : c->until_ns;
    as_status st = ensemble_wait_own(c->s, c->sweep, until_ns, &c->own, err);
    if (st < 0)
        return st;
    if (!is_ready(c->own))
        return offer_best_trial(c, err);
    c->metric = json_string_value(json_object_get(c->own, "metric"));
    st = offer_ensemble(c, c->own, 0, err);
    if (st == AS_OK)
        st = offer_others(c, err);
    return st == AS_OK ? offer_smallest(c, err) : st;
}

static void choosing_done(struct choosing *c)
{
    fit_sizes_done(&c->sizes);
    json_decref(c->own);
    fit_choice_done(&c->best);
    fit_choice_done(&c->larger);
    fit_choice_done(&c->smallest);
}

as_status fit_choice_make(const struct session *s, const struct fit_trained *of, int64_t size_bytes,
                          int64_t until_ns, struct fit_choice *ret, struct as_err *err)
{
    AS_AUTO(choosing_done)
    struct choosing c = {.s = s,
                         .of = of,
                         .sweep = of->sweep,
                         .size_bytes = size_bytes,
                         .within_bytes = size_bytes,
                         .until_ns = until_ns,
                         .sizes = {.s = s, .of = of}};
    as_status st = look_at_all(&c, err);
    if (st < 0)
        return st;
    struct fit_choice *chosen = c.has_best ? &c.best : &c.smallest;
    chosen->costs =
        c.has_larger && c.larger.value != chosen->value && is_better(&c, &c.larger, chosen);
    chosen->larger_value = c.larger.value;
    chosen->larger_bytes = c.larger.bytes;
    if ((st = calibrate_chosen(&c, chosen, err)) < 0)
        return st;
    *ret = *chosen;
    chosen->ensemble = NULL;
    return AS_OK;
}

const char *fit_choice_sweep(const struct fit_choice *c, const struct trial_ref *sweep)
{
    const json_t *single = json_object_get(c->ensemble, "best_single");
    const char *of = json_string_value(json_object_get(single, "sweep"));
    return c->single && of ? of : sweep->sweep;
}

/* The best trial by its name: an ensemble of two sweeps may have it from either. */
static int name_trial(const struct fit_choice *c, json_t *body)
{
    const json_t *single = json_object_get(c->ensemble, "best_single");
    if (!json_object_get(single, "sweep"))
        return json_object_set_new(body, "use", json_string("single"));
    return json_object_set(body, "trial", json_object_get(single, "number"));
}

as_status fit_choice_keep(const struct session *s, const struct trial_ref *sweep,
                          const struct fit_choice *c, const char *name, json_t **ret,
                          struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    char key[CLIENT_KEY_SIZE];
    JSON_AUTO body = json_pack("{s:s}", "sweep", fit_choice_sweep(c, sweep));
    int bad = !body;
    if (c->asked)
        bad |= json_object_set_new(body, "ensemble", json_integer(c->asked));
    else if (c->ensemble && c->single)
        bad |= name_trial(c, body);
    else if (c->ensemble)
        bad |= json_object_set_new(body, "use", json_string("ensemble"));
    if (bad)
        return as_fail_nomem(err);
    str_puts(&path, "/v1/models");
    client_path_add(&path, name);
    str_puts(&path, "/versions");
    client_key_new(key);
    const struct client_opts opts = {
        .idempotency_key = key, .timeout_ms = KEEP_TIMEOUT_MS, .retry_ms = RETRY_MS};
    as_status st = str_check(&path, err);
    return st < 0 ? st : client_call(s->client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
}
