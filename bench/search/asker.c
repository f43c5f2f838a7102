/* The search as a program for problems that are written in Python (odd_results.py): one
 * request a line on stdin, one answer a line on stdout. A sweep is run as by the server: number,
 * index, state, pending trials, a cache.
 *
 *   {"op": "begin", "method", "parameters", "seed", "maximize", "exact", "outcomes": [[min, max]]}
 *   {"op": "ask"}                        -> {"number", "params", "reason"} or {"exhausted": true}
 *   {"op": "add", "params"}              -> {"number"}; a trial that a user enqueued
 *   {"op": "tell", "number", "value", "outcomes": [...]}   without a value: it failed
 *   {"op": "best"}                       -> the incumbent
 *   {"op": "end"}                        -> {}; the next sweep may begin
 * Values may be texts ("NaN", "-Infinity"). An error is {"error": text}. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/incumbent.h"
#include "search/suggest.h"

struct run {
    struct space *space;
    struct search_spec spec;
    struct search_cache *cache;
    json_t *state;
    struct observation *trials; /* configurations are owned */
    size_t n, cap;
    uint64_t index;
};

static void run_done(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        config_free((struct config *)r->trials[i].config);
    free(r->trials);
    json_decref(r->state);
    search_cache_free(r->cache);
    space_free(r->space);
    *r = (struct run){0};
}

static double number_of(const json_t *v)
{
    return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}

static as_status begin(struct run *r, const json_t *m, struct as_err *err)
{
    run_done(r);
    as_status st = space_parse(json_object_get(m, "parameters"), "/parameters", &r->space, err);
    if (st < 0)
        return st;
    r->spec = (struct search_spec){
        .space = r->space,
        .seed = (uint64_t)json_integer_value(json_object_get(m, "seed")),
        .n_objectives = 1,
        .maximize = {json_is_true(json_object_get(m, "maximize"))},
        .is_exact = json_is_true(json_object_get(m, "exact")),
    };
    const json_t *bounds = json_object_get(m, "outcomes");
    for (size_t k = 0; k < json_array_size(bounds) && k < SEARCH_MAX_OUTCOMES; k++) {
        const json_t *b = json_array_get(bounds, k);
        r->spec.outcomes[r->spec.n_outcomes++] = (struct outcome_bound){
            number_of(json_array_get(b, 0)), number_of(json_array_get(b, 1))};
    }
    r->cache = search_cache_create();
    return r->cache ? search_method_parse(json_string_value(json_object_get(m, "method")),
                                          "/method", &r->spec.method, err)
                    : as_fail_nomem(err);
}

/* Takes c. */
static as_status append(struct run *r, struct config *c, bool is_suggested, struct as_err *err)
{
    as_status st = as_reserve_one(&r->trials, r->n, &r->cap, sizeof *r->trials, err);
    if (st < 0) {
        config_free(c);
        return st;
    }
    r->trials[r->n] = (struct observation){
        .number = r->n, .config = c, .state = OBSERVED_PENDING, .is_suggested = is_suggested};
    r->n++;
    return AS_OK;
}

static as_status ask(struct run *r, json_t **ret, struct as_err *err)
{
    const struct history h = {r->trials, r->n};
    struct suggestion s = {0};
    as_status st = suggest(&r->spec, &h, r->state, r->n, r->index, r->cache, &s, err);
    if (st == AS_E_EXHAUSTED) {
        *ret = json_pack("{s:b}", "exhausted", true);
        return AS_OK;
    }
    if (st < 0 || (st = append(r, s.config, true, err)) < 0)
        return st;
    r->index++;
    json_decref(r->state);
    r->state = s.state;
    *ret = json_pack("{s:I, s:o, s:o}", "number", (json_int_t)r->n - 1, "params",
                     config_to_json(r->space, s.config), "reason", s.reason);
    return AS_OK;
}

static as_status add(struct run *r, const json_t *m, json_t **ret, struct as_err *err)
{
    struct config *c = NULL;
    as_status st = config_from_json(r->space, json_object_get(m, "params"), "/params", &c, err);
    if (st < 0 || (st = append(r, c, false, err)) < 0)
        return st;
    *ret = json_pack("{s:I}", "number", (json_int_t)r->n - 1);
    return AS_OK;
}

static as_status tell(struct run *r, const json_t *m, struct as_err *err)
{
    size_t i = (size_t)json_integer_value(json_object_get(m, "number"));
    const json_t *value = json_object_get(m, "value"), *outcomes = json_object_get(m, "outcomes");
    if (i >= r->n)
        return as_fail(err, AS_E_INVAL, "there is no trial %zu", i);
    r->trials[i].state = value ? OBSERVED_COMPLETED : OBSERVED_FAILED;
    r->trials[i].values[0] = value ? number_of(value) : 0;
    for (size_t k = 0; k < r->spec.n_outcomes; k++)
        r->trials[i].outcomes[k] = number_of(json_array_get(outcomes, k));
    return AS_OK;
}

static as_status best(const struct run *r, json_t **ret, struct as_err *err)
{
    const struct history h = {r->trials, r->n};
    struct incumbent b;
    as_status st = incumbent_find(&r->spec, &h, &b, err);
    if (st < 0)
        return st;
    *ret = json_pack("{s:b, s:I, s:o, s:b, s:o, s:o, s:o, s:I}", "known", b.is_known, "number",
                     (json_int_t)b.number, "value", json_number_new(b.value), "by_model",
                     b.is_by_model, "mean", json_number_new(b.mean), "deviation",
                     json_number_new(b.deviation), "noise", json_number_new(b.noise), "luckiest",
                     (json_int_t)b.luckiest);
    return AS_OK;
}

static as_status answer(struct run *r, const json_t *m, json_t **ret, struct as_err *err)
{
    const char *op = json_string_value(json_object_get(m, "op"));
    if (as_streq(op, "begin"))
        return begin(r, m, err);
    if (r->space && as_streq(op, "ask"))
        return ask(r, ret, err);
    if (r->space && as_streq(op, "add"))
        return add(r, m, ret, err);
    if (r->space && as_streq(op, "tell"))
        return tell(r, m, err);
    if (r->space && as_streq(op, "best"))
        return best(r, ret, err);
    if (!as_streq(op, "end"))
        return as_fail(err, AS_E_INVAL, "no sweep, or an unknown op");
    run_done(r);
    return AS_OK;
}

int main(void)
{
    AS_AUTO(run_done) struct run r = {0};
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        struct as_err err = {0};
        JSON_AUTO m = json_loads(line, 0, NULL);
        JSON_AUTO ret = NULL;
        as_status st = answer(&r, m, &ret, &err);
        if (st < 0)
            ret = json_pack("{s:s}", "error", err.msg);
        AS_AUTO(as_freep) char *text = ret ? json_dumps(ret, JSON_COMPACT) : NULL;
        (void)puts(text ? text : "{}");
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
