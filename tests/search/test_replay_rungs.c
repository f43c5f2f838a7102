/* The replay of a sweep with early stopping.
 *
 * The test plays a service: several trials run at once, reach rungs, are paused, pruned and
 * promoted, complete, fail and are cancelled, in an order that a random stream chooses. It keeps
 * what the search sees as it changes. The replay has the recorded trials alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/replay.h"
#include "search/suggest.h"
#include "search/trial_rungs.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

#define TRIALS 36
#define RUNGS 4
#define SLOTS 5

static const double steps[RUNGS] = {1, 3, 9, 27};

static const char *const methods[] = {"gp",         "tpe",  "forest", "cmaes", "evolution",
                                      "coordinate", "mcmc", "auto",   "random"};

static const char document[] =
    "{\"id\":\"s\",\"method\":\"%s\",\"seed\":\"7\",\"metrics\":[{\"name\":\"a\",\"goal\":"
    "\"maximize\"}%s],\"constraints\":[],\"document\":{\"early_stopping\":{\"method\":\"asha\","
    "\"metric\":\"a\",\"max_steps\":27},\"parameters\":{"
    "\"x\":{\"type\":\"float\",\"min\":-1,\"max\":1},"
    "\"w\":{\"type\":\"int\",\"min\":1,\"max\":9},"
    "\"opt\":{\"type\":\"categorical\",\"values\":[\"p\",\"q\"]}}}}";

typedef enum life { QUEUED, PAUSED, PRUNED, COMPLETED, FAILED, CANCELLED } life;

struct service {
    json_t *sweep, *items, *state;
    struct space *space;
    struct search_spec spec;
    struct config *configs[TRIALS];
    struct observation seen[TRIALS];
    life lives[TRIALS];
    size_t rung[TRIALS]; /* the next one */
    struct trial_rung reached[TRIALS][RUNGS];
    size_t n;
    int64_t seq;
    struct rng r;
};

static void service_init(struct service *s, const char *method, size_t objectives)
{
    struct as_err err = {0};
    char text[1200];
    (void)snprintf(text, sizeof text, document, method,
                   objectives > 1 ? ",{\"name\":\"b\",\"goal\":\"minimize\"}" : "");
    *s = (struct service){.sweep = json_plain(text), .items = json_array()};
    rng_init(&s->r, 21, 0);
    ck_ok(space_parse(json_object_get(json_object_get(s->sweep, "document"), "parameters"),
                      "/parameters", &s->space, &err),
          err);
    s->spec = (struct search_spec){.space = s->space,
                                   .seed = 7,
                                   .n_objectives = objectives,
                                   .maximize = {true},
                                   .max_step = steps[RUNGS - 1]};
    ck_ok(search_method_parse(method, "/method", &s->spec.method, &err), err);
}

static void service_done(struct service *s)
{
    for (size_t i = 0; i < s->n; i++)
        config_free(s->configs[i]);
    json_decref(s->sweep);
    json_decref(s->items);
    json_decref(s->state);
    space_free(s->space);
}

static void set(json_t *o, const char *key, json_t *value)
{
    ck_assert_int_eq(json_object_set_new(o, key, value), 0);
}

static void forget_values(struct observation *o)
{
    for (size_t k = 0; k < SEARCH_MAX_OBJECTIVES; k++)
        o->values[k] = NAN;
}

static void suggest_one(struct service *s)
{
    struct as_err err = {0};
    struct suggestion next = {0};
    struct observation visible[TRIALS];
    size_t n = 0, t = s->n++;
    for (size_t i = 0; i < t; i++)
        if (s->lives[i] != CANCELLED)
            visible[n++] = s->seen[i];
    const struct history h = {visible, n};
    ck_ok(suggest(&s->spec, &h, s->state, t, t, NULL, &next, &err), err);
    json_decref(s->state);
    s->state = json_incref(next.state);
    s->configs[t] = next.config;
    next.config = NULL;
    s->seen[t] = (struct observation){
        .number = t, .config = s->configs[t], .state = OBSERVED_PENDING, .is_suggested = true};
    forget_values(&s->seen[t]);
    json_t *item =
        json_pack("{s:I, s:s, s:s, s:o, s:I, s:I, s:O, s:{}, s:[]}", "number", (json_int_t)t,
                  "state", "running", "origin", "suggested", "params",
                  config_to_json(s->space, s->configs[t]), "index", (json_int_t)t, "seen",
                  (json_int_t)s->seq, "suggestion", next.reason, "metrics", "rungs");
    ck_assert_int_eq(json_array_append_new(s->items, item), 0);
    suggestion_done(&next);
}

static json_t *item_of(const struct service *s, size_t t)
{
    return json_array_get(s->items, t);
}

/* The curve of a trial; one in nine diverges. */
static double value_at(const struct service *s, size_t t, size_t k, double step)
{
    double x = s->configs[t]->entries[0].value.real - 0.3, w = 1 / step;
    if (t % 9 == 4 && step > 1)
        return NAN;
    return k == 0 ? -x * x - w * (1 + 0.3 * sin((double)t)) : x + w;
}

static void end(struct service *s, size_t t, life how, const char *state)
{
    struct observation *o = &s->seen[t];
    json_t *item = item_of(s, t);
    s->lives[t] = how;
    set(item, "state", json_string(state));
    set(item, "finish_seq", json_integer(++s->seq));
    o->state = how == COMPLETED ? OBSERVED_COMPLETED
               : how == PRUNED  ? OBSERVED_PARTIAL
                                : OBSERVED_FAILED;
    for (size_t k = 0; how == COMPLETED && k < s->spec.n_objectives; k++) {
        o->values[k] = value_at(s, t, k, steps[RUNGS - 1]);
        set(json_object_get(item, "metrics"), k ? "b" : "a",
            isnan(o->values[k]) ? json_string("NaN") : json_real(o->values[k]));
    }
}

static void reach_rung(struct service *s, size_t t)
{
    static const char *const decisions[] = {"go_on", "pause", "prune"};
    struct observation *o = &s->seen[t];
    size_t rung = s->rung[t]++;
    int verdict = rung + 1 == RUNGS ? 0 : (int)rng_below(&s->r, 3);
    json_t *values = json_array();
    struct trial_rung *now = &s->reached[t][rung];
    now->step = steps[rung];
    for (size_t k = 0; k < SEARCH_MAX_OBJECTIVES; k++) {
        now->values[k] = k < s->spec.n_objectives ? value_at(s, t, k, now->step) : NAN;
        json_t *v = isnan(now->values[k]) ? json_null() : json_real(now->values[k]);
        if (k < s->spec.n_objectives)
            ck_assert_int_eq(json_array_append_new(values, v), 0);
        else
            json_decref(v);
    }
    o->rungs = s->reached[t];
    o->n_rungs = rung + 1;
    json_t *value = json_incref(json_array_get(values, 0));
    json_t *r = json_pack("{s:I, s:f, s:o, s:s, s:I}", "rung", (json_int_t)rung, "step", now->step,
                          "value", value, "decision", decisions[verdict], "seq", ++s->seq);
    if (s->spec.n_objectives > 1)
        set(r, "values", values);
    else
        json_decref(values);
    ck_assert_int_eq(json_array_append_new(json_object_get(item_of(s, t), "rungs"), r), 0);
    if (verdict == 0)
        return;
    o->state = OBSERVED_PARTIAL;
    s->lives[t] = PAUSED;
    set(item_of(s, t), "state", json_string("paused"));
    if (verdict == 2)
        end(s, t, PRUNED, "pruned");
}

static void promote(struct service *s, size_t t)
{
    json_t *rungs = json_object_get(item_of(s, t), "rungs");
    s->lives[t] = QUEUED;
    s->seen[t].state = OBSERVED_PENDING;
    set(item_of(s, t), "state", json_string("queued"));
    set(json_array_get(rungs, json_array_size(rungs) - 1), "promoted_seq", json_integer(++s->seq));
}

/* One event of a trial that is under way or waits. */
static void happen(struct service *s, size_t t)
{
    uint64_t chance = rng_below(&s->r, 20);
    if (s->lives[t] == PAUSED && chance < 12)
        promote(s, t);
    else if (s->lives[t] == PAUSED)
        end(s, t, chance < 15 ? CANCELLED : PRUNED, chance < 15 ? "cancelled" : "pruned");
    else if (chance == 0)
        end(s, t, CANCELLED, "cancelled");
    else if (chance == 1)
        end(s, t, FAILED, "failed");
    else if (s->rung[t] < RUNGS)
        reach_rung(s, t);
    else
        end(s, t, COMPLETED, "completed");
}

static size_t list_live(const struct service *s, size_t *ret)
{
    size_t n = 0;
    for (size_t t = 0; t < s->n; t++)
        if (s->lives[t] == QUEUED || s->lives[t] == PAUSED)
            ret[n++] = t;
    return n;
}

static void play(struct service *s)
{
    size_t live[TRIALS], n;
    while ((n = list_live(s, live)) > 0 || s->n < TRIALS) {
        if (s->n < TRIALS && n < SLOTS)
            suggest_one(s);
        else
            happen(s, live[rng_below(&s->r, n)]);
    }
    set(s->sweep, "counts", json_pack("{s:I}", "total", (json_int_t)s->n));
}

/* How many of the replayed suggestions are the same. */
static size_t count_same(const struct service *s)
{
    struct as_err err = {0};
    AS_AUTO(replay_freep) struct replay *r = NULL;
    struct replay_step step;
    size_t same = 0;
    as_status st;
    ck_ok(replay_create(s->sweep, s->items, &r, &err), err);
    ck_assert_uint_eq(replay_suggested(r), TRIALS);
    while ((st = replay_next(r, &step, &err)) == AS_OK)
        same += step.is_same;
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
    return same;
}

START_TEST(replays_bit_for_bit)
{
    struct service s;
    service_init(&s, methods[_i / 2], 1 + (size_t)_i % 2);
    play(&s);
    ck_assert_uint_eq(count_same(&s), TRIALS);
    service_done(&s);
}
END_TEST

/* What a trial had at a rung changes what comes after: each field of a rung result is read. */
START_TEST(notices_other_rungs)
{
    static const char *const fields[] = {"step", "value", "decision", "promoted_seq"};
    struct service s;
    service_init(&s, "gp", 1);
    play(&s);
    for (size_t k = 0; k < AS_ARRAY_LEN(fields); k++) {
        JSON_AUTO kept = json_deep_copy(s.items);
        for (size_t t = 0; t < TRIALS; t++) {
            json_t *rungs = json_object_get(item_of(&s, t), "rungs");
            for (size_t i = 0; i < json_array_size(rungs); i++) {
                json_t *r = json_array_get(rungs, i);
                if (k == 0)
                    set(r, "step", json_real(26 - json_number_value(json_object_get(r, "step"))));
                else if (k == 1)
                    set(r, "value", json_real(sin((double)(7 * t + i))));
                else if (k == 2)
                    set(r, "decision", json_string("go_on"));
                else
                    json_object_del(r, "promoted_seq");
            }
        }
        ck_assert_msg(count_same(&s) < TRIALS, "%s is not read", fields[k]);
        json_decref(s.items);
        s.items = json_incref(kept);
    }
    service_done(&s);
}
END_TEST

START_TEST(refuses_a_wrong_order)
{
    static const struct {
        const char *rungs, *says;
    } cases[] = {
        {"7", "expected a list or null"},
        {"[{\"step\":1,\"decision\":\"pause\"}]", "seq and promoted_seq in ascending order"},
        {"[{\"step\":1,\"seq\":4}]", "expected a decision"},
        {"[{\"step\":1,\"seq\":4,\"decision\":\"pause\",\"promoted_seq\":4}]", "promoted_seq"},
        {"[{\"step\":1,\"seq\":4,\"decision\":\"pause\"},{\"step\":3,\"seq\":4,\"decision\":"
         "\"go_on\"}]",
         "/rungs/1: "},
    };
    struct as_err err = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct trial_rung *list = NULL;
        size_t n = 3;
        JSON_AUTO rungs = json_loads(cases[i].rungs, JSON_DECODE_ANY, NULL);
        ck_assert_ptr_nonnull(rungs);
        ck_fails(trial_rungs_read(rungs, 1, 0, "/rungs", &list, &n, &err), AS_E_INVAL, err,
                 cases[i].says);
        ck_assert(!list && n == 0);
    }
}
END_TEST

/* A place of the order belongs to one event. */
START_TEST(refuses_a_place_taken_twice)
{
    struct as_err err = {0};
    struct replay *r = NULL;
    struct service s;
    service_init(&s, "random", 1);
    play(&s);
    for (size_t t = 0; t < TRIALS; t++) {
        json_t *rungs = json_object_get(item_of(&s, t), "rungs");
        if (json_array_size(rungs) == 1)
            set(json_array_get(rungs, 0), "seq", json_integer(5));
    }
    ck_fails(replay_create(s.sweep, s.items, &r, &err), AS_E_INVAL, err,
             "has the place 5 of the order, as another trial has");
    service_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("replay_rungs");
    TCase *t = tcase_create("rungs");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, replays_bit_for_bit, 0, 2 * AS_ARRAY_LEN(methods));
    tcase_add_test(t, notices_other_rungs);
    tcase_add_test(t, refuses_a_wrong_order);
    tcase_add_test(t, refuses_a_place_taken_twice);
    suite_add_tcase(s, t);
    return s;
}
