/* Reads the stored order out of the rungs, ends and retries of the trials, and the forks of pbt. */
#include "search/stop_replay.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "search/space/config.h"
#include "search/space/space.h"
#include "search/trial_past.h"

#define STOPPING_AT "/sweep/document/early_stopping"

struct stop_replay {
    struct stop_spec spec;
    struct space *space;       /* owned; NULL: nothing is forked */
    struct config **configs;   /* owned, n_trials: those of forks and their parents; else NULL */
    struct stored_fork *forks; /* owned, n_trials: by the trial that was replaced */
    bool *is_replaced;         /* owned, n_trials */
    size_t n_trials;
    struct stored_event *events; /* owned */
    size_t n, cap;
    struct decision_replay *decisions; /* owned */
};

void stop_replay_free(struct stop_replay *r)
{
    if (!r)
        return;
    decision_replay_free(r->decisions);
    free(r->events);
    for (size_t i = 0; i < r->n_trials; i++)
        config_free(r->configs[i]);
    free(r->configs);
    free(r->forks);
    free(r->is_replaced);
    space_free(r->space);
    free(r);
}

struct decision_replay *stop_replay_decisions(struct stop_replay *r)
{
    return r->decisions;
}

/* ---- the sweep ---- */

/* The first rung of min_steps: auto depends on the trainer; the sweep says it. */
static int64_t first_step_of(const json_t *sweep)
{
    const json_t *rungs = json_object_get(json_object_get(sweep, "early_stopping"), "rungs");
    json_int_t step = json_integer_value(json_object_get(json_array_get(rungs, 0), "step"));
    return step > 0 ? step : 1;
}

static as_status read_context(const json_t *sweep, struct stop_context *ret, struct as_err *err)
{
    const json_t *metrics = json_object_get(sweep, "metrics");
    const char *seed = json_string_value(json_object_get(sweep, "seed"));
    int64_t number = 0;
    size_t n = json_array_size(metrics);
    struct stop_context c = {
        .n_objectives = n, .can_pause = true, .first_step = first_step_of(sweep)};
    if (n < 1 || n > SEARCH_MAX_OBJECTIVES)
        return as_fail_at(err, AS_E_INVAL, "/sweep/metrics",
                          "/sweep/metrics: expected 1 to %d objectives, found %zu",
                          SEARCH_MAX_OBJECTIVES, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *m = json_array_get(metrics, i);
        c.metrics[i] = json_string_value(json_object_get(m, "name"));
        c.maximize[i] = as_streq(json_string_value(json_object_get(m, "goal")), "maximize");
        if (!c.metrics[i])
            return as_fail_at(err, AS_E_INVAL, "/sweep/metrics",
                              "/sweep/metrics: expected the name of each");
    }
    if (!seed || as_parse_i64(seed, &number, NULL) < 0)
        return as_fail_at(err, AS_E_INVAL, "/sweep/seed",
                          "/sweep/seed: expected a whole number as text");
    c.seed = (uint64_t)number;
    *ret = c;
    return AS_OK;
}

/* Of pbt, whose forks have other parameters than their parents. */
static as_status read_space(struct stop_replay *r, const json_t *sweep, const json_t *section,
                            struct as_err *err)
{
    const json_t *document = json_object_get(sweep, "document");
    if (!as_streq(json_string_value(json_object_get(section, "method")),
                  stop_method_name(STOP_PBT)))
        return AS_OK;
    as_status st = space_parse(json_object_get(document, "parameters"),
                               "/sweep/document/parameters", &r->space, err);
    if (st == AS_OK)
        st = space_parse_constraints(r->space, json_object_get(document, "parameter_constraints"),
                                     "/sweep/document/parameter_constraints", err);
    return st == AS_OK ? space_parse_forbidden(r->space, json_object_get(document, "forbidden"),
                                               "/sweep/document/forbidden", err)
                       : st;
}

static as_status read_spec(struct stop_replay *r, const json_t *sweep, const json_t *section,
                           struct as_err *err)
{
    struct json_fields f;
    struct stop_context c;
    as_status st = read_context(sweep, &c, err);
    c.space = r->space;
    if (st == AS_OK)
        st = json_fields_init(&f, section, STOPPING_AT, err);
    return st == AS_OK ? stop_spec_parse(&f, &c, &r->spec, err) : st;
}

/* ---- the trials ---- */

static as_status add_event(struct stop_replay *r, const struct stored_event *e, struct as_err *err)
{
    as_status st = as_reserve_one(&r->events, r->n, &r->cap, sizeof *r->events, err);
    if (st == AS_OK)
        r->events[r->n++] = *e;
    return st;
}

static bool read_verdict(const json_t *word, stop_verdict *ret)
{
    for (size_t i = 0; stop_verdict_words[i]; i++) {
        if (!as_streq(json_string_value(word), stop_verdict_words[i]))
            continue;
        *ret = (stop_verdict)i;
        return true;
    }
    return false;
}

/* A field of a whole number from 0. */
static bool read_count(const json_t *j, const char *name, uint64_t *ret)
{
    const json_t *v = json_object_get(j, name);
    *ret = (uint64_t)json_integer_value(v);
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static as_status read_result(const struct stop_replay *r, const json_t *j, const char *at,
                             struct stored_event *e, struct as_err *err)
{
    const json_t *values = json_object_get(j, "values");
    uint64_t rung = 0, step = 0;
    e->reason = json_string_value(json_object_get(j, "reason"));
    e->result.feasible = json_is_true(json_object_get(j, "feasible"));
    if (!read_verdict(json_object_get(j, "decision"), &e->result.decision) || !e->reason ||
        !read_count(j, "seq", &e->result.seq) || !read_count(j, "rung", &rung) ||
        !read_count(j, "step", &step) || !read_count(j, "rank", &e->rank) ||
        !read_count(j, "of", &e->of) || rung >= r->spec.n_rungs || !json_is_array(values))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected a result at one of the %zu rungs, with step, values, "
                          "decision, rank, of, reason and seq",
                          at, r->spec.n_rungs);
    e->result.rung = (uint32_t)rung;
    e->result.step = (int64_t)step;
    for (size_t i = 0; i < SEARCH_MAX_OBJECTIVES; i++)
        if (!json_number_get(json_array_get(values, i), &e->result.values[i]))
            e->result.values[i] = NAN;
    return AS_OK;
}

/* ---- forks ---- */

/* The configuration of a trial; it is read once. */
static as_status read_config(struct stop_replay *r, const json_t *items, uint64_t number,
                             struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
    if (r->configs[number])
        return AS_OK;
    json_pointer_index("/items", (size_t)number, pointer);
    json_pointer_child(pointer, "params", at);
    return config_from_json(r->space,
                            json_object_get(json_array_get(items, (size_t)number), "params"), at,
                            &r->configs[number], err);
}

/* The trial at this place of the list is a fork. */
static as_status read_fork(struct stop_replay *r, const json_t *items, size_t place,
                           const char *pointer, struct as_err *err)
{
    const json_t *trial = json_array_get(items, place);
    const json_t *how = json_object_get(trial, "suggestion");
    uint64_t parent = 0, step = 0, replaced = 0;
    if (!read_count(trial, "parent", &parent) || !read_count(trial, "fork_step", &step) ||
        !read_count(how, "replaces", &replaced) || parent >= place || replaced >= place)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: expected a fork with its parent, fork_step, and the trial that it "
                          "replaces in suggestion.replaces, both before it",
                          pointer);
    as_status st = read_config(r, items, place, err);
    if (st == AS_OK)
        st = read_config(r, items, parent, err);
    if (st != AS_OK)
        return st;
    r->is_replaced[replaced] = true;
    r->forks[replaced] = (struct stored_fork){.number = place,
                                              .parent = parent,
                                              .step = (int64_t)step,
                                              .config = r->configs[place],
                                              .parent_config = r->configs[parent]};
    return AS_OK;
}

/* The list is in the order of the numbers, without gaps, as a replay of suggestions asks too. */
static as_status read_forks(struct stop_replay *r, const json_t *items, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    size_t i, n = json_array_size(items);
    json_t *trial;
    r->configs = as_calloc(n + 1, sizeof(struct config *));
    r->forks = as_calloc(n + 1, sizeof *r->forks);
    r->is_replaced = as_calloc(n + 1, sizeof *r->is_replaced);
    if (!r->configs || !r->forks || !r->is_replaced)
        return as_fail_nomem(err);
    r->n_trials = n;
    json_array_foreach((json_t *)items, i, trial)
    {
        if (!as_streq(json_string_value(json_object_get(trial, "origin")), "forked"))
            continue;
        json_pointer_index("/items", i, pointer);
        if (!r->space || json_integer_value(json_object_get(trial, "number")) != (json_int_t)i)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: expected a fork in a sweep with pbt, at the place of its number",
                              pointer);
        as_status st = read_fork(r, items, i, pointer, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- rungs and ends ---- */

/* The last result of a trial that was replaced is the one that a fork followed. */
static const struct stored_fork *fork_of(const struct stop_replay *r, const struct stored_event *e)
{
    bool follows = e->result.decision == STOP_PRUNE && r->is_replaced[e->result.number];
    return follows ? &r->forks[e->result.number] : NULL;
}

static as_status read_rungs(struct stop_replay *r, const json_t *rungs, uint64_t number,
                            const char *pointer, struct as_err *err)
{
    size_t i;
    json_t *j;
    char at[AS_ERR_POINTER_MAX];
    json_array_foreach((json_t *)rungs, i, j)
    {
        struct stored_event e = {.kind = STORED_RESULT, .result = {.number = number}};
        uint64_t promoted = 0;
        json_pointer_index(pointer, i, at);
        as_status st = read_result(r, j, at, &e, err);
        e.fork = st == AS_OK ? fork_of(r, &e) : NULL;
        if (st == AS_OK)
            st = add_event(r, &e, err);
        if (st == AS_OK && read_count(j, "promoted_seq", &promoted) && promoted > 0)
            st = add_event(r,
                           &(struct stored_event){
                               .kind = STORED_PROMOTION,
                               .result = {.number = number, .rung = e.result.rung, .seq = promoted},
                               .reason = json_string_value(json_object_get(j, "promoted_reason"))},
                           err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status add_end(struct stop_replay *r, stored_kind kind, uint64_t number, int64_t seq,
                         struct as_err *err)
{
    const struct stored_event e = {.kind = kind,
                                   .result = {.number = number, .seq = (uint64_t)seq}};
    return seq > 0 ? add_event(r, &e, err) : AS_OK;
}

static as_status read_trial(struct stop_replay *r, const json_t *trial, size_t n_trials,
                            const char *pointer, struct as_err *err)
{
    AS_AUTO(as_freep) struct past_end *past = NULL;
    size_t n_past = 0;
    uint64_t number = 0;
    char at[AS_ERR_POINTER_MAX];
    bool is_done = as_streq(json_string_value(json_object_get(trial, "state")), "completed") &&
                   !as_streq(json_string_value(json_object_get(trial, "origin")), "known");
    if (!read_count(trial, "number", &number) || number >= n_trials)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected a number below %zu", pointer,
                          n_trials);
    json_pointer_child(pointer, "retries", at);
    as_status st = trial_past_read(json_object_get(trial, "retries"), at, &past, &n_past, err);
    for (size_t i = 0; i < n_past && st == AS_OK; i++) {
        st = add_end(r, STORED_END, number, past[i].finish_seq, err);
        if (st == AS_OK)
            st = add_end(r, STORED_END, number, past[i].retry_seq, err);
    }
    json_pointer_child(pointer, "rungs", at);
    if (st == AS_OK)
        st = read_rungs(r, json_object_get(trial, "rungs"), number, at, err);
    return st == AS_OK ? add_end(r, is_done ? STORED_DONE : STORED_END, number,
                                 json_integer_value(json_object_get(trial, "finish_seq")), err)
                       : st;
}

as_status stop_replay_create(const json_t *sweep, const json_t *items, struct stop_replay **ret,
                             struct as_err *err)
{
    const json_t *section = json_object_get(json_object_get(sweep, "document"), "early_stopping");
    size_t i, n = json_array_size(items);
    json_t *trial;
    char pointer[AS_ERR_POINTER_MAX];
    *ret = NULL;
    if (!section || json_is_null(section))
        return AS_OK;
    AS_AUTO(stop_replay_freep) struct stop_replay *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    as_status st = read_space(r, sweep, section, err);
    if (st == AS_OK)
        st = read_spec(r, sweep, section, err);
    if (st == AS_OK)
        st = read_forks(r, items, err);
    json_array_foreach((json_t *)items, i, trial)
    {
        json_pointer_index("/items", i, pointer);
        if (st == AS_OK)
            st = read_trial(r, trial, n, pointer, err);
    }
    if (st == AS_OK)
        st = decision_replay_create(&r->spec, r->space, r->events, r->n, &r->decisions, err);
    if (st == AS_OK)
        *ret = as_steal(r);
    return st;
}
