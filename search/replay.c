/* Replaying a recorded sweep (replay.h).
 *
 * Reading comes first: the sweep, then every trial, then a check that the trials form one complete
 * history. A gap or a wrong order would make a difference that has nothing to do with the search,
 * so it is an error. Each step then builds the history that the suggestion saw, calls suggest()
 * with the state of the previous suggestion, and compares parameters and reason with the stored
 * ones. The cache is kept between the steps, as a server does; suggestions do not depend on it. */
#include "search/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/prior/warm_start.h"
#include "search/space/config.h"
#include "search/suggest.h"
#include "search/trial_past.h"
#include "search/trial_rungs.h"

typedef enum trial_end { END_NONE, END_COMPLETED, END_FAILED, END_PRUNED, END_CANCELLED } trial_end;

/* One trial as it was recorded. */
struct record {
    struct config *config;     /* owned */
    const json_t *params;      /* borrowed */
    const json_t *reason;      /* borrowed; NULL: it was not stored */
    struct observation result; /* as it is after the trial has ended */
    trial_end end;
    bool is_suggested, is_forked;
    int64_t index, seen, finish_seq; /* finish_seq 0: it has not ended */
    struct past_end *past;           /* owned: its earlier ends */
    size_t n_past;
    struct trial_rung *rungs; /* owned */
    size_t n_rungs;
};

struct replay {
    struct search_spec spec;
    struct space *space; /* owned, as all below */
    struct search_prepared *prepared;
    struct warm_start *earlier;
    struct record *records;
    size_t n;
    size_t n_suggested, n_forked;
    size_t next;                      /* the record that replay_next() looks at first */
    struct observation *observations; /* room for n */
    struct search_cache *cache;
    json_t *state; /* left by the previous suggestion */
    struct suggestion latest;
    json_t *again;
    struct as_err why;
    const char *objectives[SEARCH_MAX_OBJECTIVES]; /* views of the sweep */
    const char *outcomes[SEARCH_MAX_OUTCOMES];
    size_t metric; /* the objective that early stopping compares first */
};

void replay_free(struct replay *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++) {
        config_free(r->records[i].config);
        free(r->records[i].past);
        free(r->records[i].rungs);
    }
    free(r->records);
    free(r->observations);
    search_cache_free(r->cache);
    suggestion_done(&r->latest);
    json_decref(r->state);
    json_decref(r->again);
    search_prepared_free(r->spec.method, r->prepared); /* before its space */
    warm_start_free(r->earlier);
    space_free(r->space);
    free(r);
}

static as_status no_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a replay");
}

/* ---- the sweep ---- */

static as_status read_objectives(struct replay *r, const json_t *metrics, struct as_err *err)
{
    size_t i;
    json_t *item;
    size_t n = json_array_size(metrics);
    if (n < 1 || n > SEARCH_MAX_OBJECTIVES)
        return as_fail_at(err, AS_E_INVAL, "/sweep/metrics",
                          "/sweep/metrics: expected 1 to %d objectives, found %zu",
                          SEARCH_MAX_OBJECTIVES, n);
    json_array_foreach((json_t *)metrics, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        const char *goal = json_string_value(json_object_get(item, "goal"));
        if (!name || !goal)
            return as_fail_at(err, AS_E_INVAL, "/sweep/metrics",
                              "/sweep/metrics: expected a name and a goal of each");
        r->objectives[i] = name;
        r->spec.maximize[i] = as_streq(goal, "maximize");
    }
    r->spec.n_objectives = n;
    return AS_OK;
}

/* Does the document say that the values of its one objective have no noise? */
static bool says_exact(const json_t *document)
{
    const json_t *noise = json_object_get(json_object_get(document, "metric"), "noise");
    return as_streq(json_string_value(noise), "none");
}

static double bound_of(const json_t *constraint, const char *field, double absent)
{
    double v;
    return json_number_get(json_object_get(constraint, field), &v) ? v : absent;
}

static as_status read_outcomes(struct replay *r, const json_t *constraints, struct as_err *err)
{
    size_t i;
    json_t *item;
    if (json_array_size(constraints) > SEARCH_MAX_OUTCOMES)
        return as_fail_at(err, AS_E_INVAL, "/sweep/constraints",
                          "/sweep/constraints: expected at most %d, found %zu", SEARCH_MAX_OUTCOMES,
                          json_array_size(constraints));
    json_array_foreach((json_t *)constraints, i, item)
    {
        r->outcomes[i] = json_string_value(json_object_get(item, "metric"));
        if (!r->outcomes[i])
            return as_fail_at(err, AS_E_INVAL, "/sweep/constraints",
                              "/sweep/constraints: expected the metric of each");
        r->spec.outcomes[i] = (struct outcome_bound){.min = bound_of(item, "min", -INFINITY),
                                                     .max = bound_of(item, "max", INFINITY)};
    }
    r->spec.n_outcomes = i;
    return AS_OK;
}

static as_status read_seed(const json_t *sweep, uint64_t *ret, struct as_err *err)
{
    const char *text = json_string_value(json_object_get(sweep, "seed"));
    int64_t seed;
    if (!text || as_parse_i64(text, &seed, NULL) < 0)
        return as_fail_at(err, AS_E_INVAL, "/sweep/seed",
                          "/sweep/seed: expected a whole number as text");
    *ret = (uint64_t)seed;
    return AS_OK;
}

static as_status read_space(struct replay *r, const json_t *document, struct as_err *err)
{
    as_status st = space_parse(json_object_get(document, "parameters"),
                               "/sweep/document/parameters", &r->space, err);
    if (st < 0)
        return st;
    st = space_parse_constraints(r->space, json_object_get(document, "parameter_constraints"),
                                 "/sweep/document/parameter_constraints", err);
    if (st < 0)
        return st;
    st = space_parse_forbidden(r->space, json_object_get(document, "forbidden"),
                               "/sweep/document/forbidden", err);
    if (st < 0)
        return st;
    uint64_t total;
    return search_prepare(r->spec.method, r->space, "/sweep/document/parameters", &r->prepared,
                          &total, err);
}

static as_status read_earlier(struct replay *r, const json_t *search, struct as_err *err)
{
    struct json_fields f;
    if (!json_is_object(search))
        return AS_OK;
    as_status st = json_fields_init(&f, search, "/sweep/document/search", err);
    return st < 0 ? st : warm_start_parse(&f, r->space, &r->earlier, err);
}

/* The last step, and the metric, of early stopping. */
static as_status read_stopping(struct replay *r, const json_t *early, struct as_err *err)
{
    const char *metric = json_string_value(json_object_get(early, "metric"));
    if (!early || json_is_null(early))
        return AS_OK;
    r->spec.max_step = json_number_value(json_object_get(early, "max_steps"));
    if (!(r->spec.max_step >= 1))
        return as_fail_at(err, AS_E_INVAL, "/sweep/document/early_stopping/max_steps",
                          "/sweep/document/early_stopping/max_steps: expected at least 1");
    for (size_t k = 0; metric && k < r->spec.n_objectives; k++)
        if (as_streq(metric, r->objectives[k]))
            r->metric = k;
    return AS_OK;
}

static as_status read_sweep(struct replay *r, const json_t *sweep, struct as_err *err)
{
    const json_t *document = json_object_get(sweep, "document");
    const json_t *search = json_object_get(document, "search");
    const char *method = json_string_value(json_object_get(sweep, "method"));
    as_status st = read_objectives(r, json_object_get(sweep, "metrics"), err);
    if (st < 0)
        return st;
    st = read_outcomes(r, json_object_get(sweep, "constraints"), err);
    if (st < 0)
        return st;
    st = read_seed(sweep, &r->spec.seed, err);
    if (st < 0)
        return st;
    st = search_method_parse(method ? method : "", "/sweep/method", &r->spec.method, err);
    if (st < 0)
        return st;
    st = read_space(r, document, err);
    if (st < 0)
        return st;
    st = read_earlier(r, search, err);
    if (st < 0)
        return st;
    st = read_stopping(r, json_object_get(document, "early_stopping"), err);
    if (st < 0)
        return st;
    r->spec.is_exact = r->spec.n_objectives == 1 && says_exact(document);
    r->spec.space = r->space;
    r->spec.earlier = r->earlier;
    r->spec.prepared = r->prepared;
    r->spec.initial_trials =
        (uint64_t)json_integer_value(json_object_get(search, "initial_trials"));
    return AS_OK;
}

/* ---- the trials ---- */

static trial_end end_of(const char *state)
{
    if (as_streq(state, "completed"))
        return END_COMPLETED;
    if (as_streq(state, "failed"))
        return END_FAILED;
    if (as_streq(state, "pruned"))
        return END_PRUNED;
    return as_streq(state, "cancelled") ? END_CANCELLED : END_NONE;
}

/* The values that the search sees of a completed trial. */
static void read_result(const struct replay *r, const json_t *metrics, struct observation *o)
{
    for (size_t i = 0; i < r->spec.n_objectives; i++)
        if (!json_number_get(json_object_get(metrics, r->objectives[i]), &o->values[i]))
            o->values[i] = NAN;
    for (size_t i = 0; i < r->spec.n_outcomes; i++)
        if (!json_number_get(json_object_get(metrics, r->outcomes[i]), &o->outcomes[i]))
            o->outcomes[i] = NAN;
}

static void clear_result(struct observation *o)
{
    for (size_t i = 0; i < SEARCH_MAX_OBJECTIVES; i++)
        o->values[i] = NAN;
    for (size_t i = 0; i < SEARCH_MAX_OUTCOMES; i++)
        o->outcomes[i] = NAN;
}

static as_status check_order(const struct record *rec, int64_t number, const char *pointer,
                             struct as_err *err)
{
    if (rec->is_suggested && (rec->index < 0 || rec->index > number))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: expected the index of the suggestion, 0 to %lld, found %lld",
                          pointer, (long long)number, (long long)rec->index);
    if (rec->end != END_NONE && rec->finish_seq < 1)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: expected the finish_seq of a trial that has ended", pointer);
    return AS_OK;
}

static as_status read_record(const struct replay *r, const json_t *trial, int64_t number,
                             const char *pointer, struct record *ret, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    const json_t *index = json_object_get(trial, "index");
    struct record rec = {
        .params = json_object_get(trial, "params"),
        .reason = json_object_get(trial, "suggestion"),
        .end = end_of(json_string_value(json_object_get(trial, "state"))),
        .is_suggested = as_streq(json_string_value(json_object_get(trial, "origin")), "suggested"),
        .is_forked = as_streq(json_string_value(json_object_get(trial, "origin")), "forked"),
        .index = json_is_integer(index) ? json_integer_value(index) : -1,
        .seen = json_integer_value(json_object_get(trial, "seen")),
        .finish_seq = json_integer_value(json_object_get(trial, "finish_seq")),
    };
    as_status st = check_order(&rec, number, pointer, err);
    if (st < 0)
        return st;
    json_pointer_child(pointer, "params", at);
    st = config_from_json(r->space, rec.params, at, &rec.config, err);
    if (st < 0)
        return st;
    json_pointer_child(pointer, "retries", at);
    st = trial_past_read(json_object_get(trial, "retries"), at, &rec.past, &rec.n_past, err);
    json_pointer_child(pointer, "rungs", at);
    if (st == AS_OK)
        st = trial_rungs_read(json_object_get(trial, "rungs"), r->spec.n_objectives, r->metric, at,
                              &rec.rungs, &rec.n_rungs, err);
    if (st < 0) {
        config_free(rec.config);
        free(rec.past);
        return st;
    }
    rec.result = (struct observation){
        .number = (uint64_t)number, .config = rec.config, .is_suggested = rec.is_suggested};
    clear_result(&rec.result);
    if (rec.end == END_COMPLETED)
        read_result(r, json_object_get(trial, "metrics"), &rec.result);
    rec.result.state = rec.end == END_COMPLETED ? OBSERVED_COMPLETED
                       : rec.end == END_PRUNED  ? OBSERVED_PARTIAL
                                                : OBSERVED_FAILED;
    *ret = rec;
    return AS_OK;
}

static as_status read_trials(struct replay *r, const json_t *items, struct as_err *err)
{
    size_t i, n = json_array_size(items);
    json_t *trial;
    char pointer[AS_ERR_POINTER_MAX];
    json_array_foreach((json_t *)items, i, trial)
    {
        const json_t *number = json_object_get(trial, "number");
        int64_t at = json_is_integer(number) ? json_integer_value(number) : -1;
        json_pointer_index("/items", i, pointer);
        if (at < 0 || (size_t)at >= n || r->records[at].config)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: the numbers of the %zu trials are not 0 to %zu, each once: the "
                              "history is not whole",
                              pointer, n, n - 1);
        as_status st = read_record(r, trial, at, pointer, &r->records[at], err);
        if (st < 0)
            return st;
        r->n_suggested += r->records[at].is_suggested;
        r->n_forked += r->records[at].is_forked;
    }
    return AS_OK;
}

/* The order of ends, retries, rung results and promotions. */
struct order {
    bool *taken; /* borrowed; taken[i]: some trial has the number i + 1 */
    size_t n;
};

/* Take a number of the order for a trial. */
static as_status take_place(struct order *o, int64_t seq, size_t number, struct as_err *err)
{
    if (seq > (int64_t)o->n)
        return AS_OK; /* the sweep went on while its trials were listed */
    if (o->taken[seq - 1])
        return as_fail_at(err, AS_E_INVAL, "/items",
                          "/items: trial %zu has the place %lld of the order, as another trial has",
                          number, (long long)seq);
    o->taken[seq - 1] = true;
    return AS_OK;
}

/* Check one trial against the trials before it. */
static as_status check_place(const struct replay *r, size_t number, size_t n_suggested,
                             struct order *o, struct as_err *err)
{
    const struct record *rec = &r->records[number];
    int64_t first = rec->n_past > 0 ? rec->past[0].finish_seq : rec->finish_seq;
    as_status st = AS_OK;
    if (rec->is_suggested && rec->index != (int64_t)n_suggested)
        return as_fail_at(err, AS_E_INVAL, "/items",
                          "/items: trial %zu has index %lld, expected %zu, the number of "
                          "suggestions before it",
                          number, (long long)rec->index, n_suggested);
    if (first > 0 && rec->seen >= first)
        return as_fail_at(err, AS_E_INVAL, "/items",
                          "/items: trial %zu saw the results up to %lld, and ended as number %lld",
                          number, (long long)rec->seen, (long long)first);
    for (size_t i = 0; i < rec->n_past && st == AS_OK; i++) {
        st = take_place(o, rec->past[i].finish_seq, number, err);
        if (st == AS_OK)
            st = take_place(o, rec->past[i].retry_seq, number, err);
    }
    for (size_t i = 0; i < rec->n_rungs && st == AS_OK; i++) {
        st = take_place(o, rec->rungs[i].seq, number, err);
        if (st == AS_OK && rec->rungs[i].promoted_seq > 0)
            st = take_place(o, rec->rungs[i].promoted_seq, number, err);
    }
    if (st == AS_OK && rec->end != END_NONE)
        st = take_place(o, rec->finish_seq, number, err);
    return st;
}

/* Check that the trials form one complete history. */
static as_status check_whole(const struct replay *r, const json_t *sweep, struct as_err *err)
{
    const json_t *total = json_object_get(json_object_get(sweep, "counts"), "total");
    if (json_integer_value(total) > (json_int_t)r->n)
        return as_fail_at(err, AS_E_INVAL, "/items",
                          "/items: found %zu trials, expected %" JSON_INTEGER_FORMAT
                          ": the history is not whole",
                          r->n, json_integer_value(total));
    struct order order = {.n = r->n};
    size_t n_suggested = 0;
    for (size_t i = 0; i < r->n; i++)
        order.n += 2 * (r->records[i].n_past + r->records[i].n_rungs);
    AS_AUTO(as_freep) bool *taken = as_calloc(order.n ? order.n : 1, sizeof *taken);
    if (!taken)
        return no_memory(err);
    order.taken = taken;
    for (size_t i = 0; i < r->n; i++) {
        as_status st = check_place(r, i, n_suggested, &order, err);
        if (st < 0)
            return st;
        n_suggested += r->records[i].is_suggested;
    }
    return AS_OK;
}

as_status replay_create(const json_t *sweep, const json_t *items, struct replay **ret,
                        struct as_err *err)
{
    size_t n = json_array_size(items);
    if (!json_is_object(sweep) || !json_is_array(items))
        return as_fail(err, AS_E_INVAL, "expected a sweep and the list of its trials");
    AS_AUTO(replay_freep) struct replay *r = as_calloc(1, sizeof *r);
    if (!r)
        return no_memory(err);
    r->records = as_calloc(n ? n : 1, sizeof *r->records);
    r->observations = as_calloc(n ? n : 1, sizeof *r->observations);
    r->cache = search_cache_create();
    if (!r->records || !r->observations || !r->cache)
        return no_memory(err);
    r->n = n;
    as_status st = read_sweep(r, sweep, err);
    if (st < 0)
        return st;
    st = read_trials(r, items, err);
    if (st < 0)
        return st;
    st = check_whole(r, sweep, err);
    if (st < 0)
        return st;
    *ret = as_steal(r);
    return AS_OK;
}

size_t replay_suggested(const struct replay *r)
{
    return r->n_suggested;
}

size_t replay_added(const struct replay *r)
{
    return r->n - r->n_suggested - r->n_forked;
}

size_t replay_forked(const struct replay *r)
{
    return r->n_forked;
}

/* ---- one step ---- */

/* The history of the trials before `number`, as it was when the results up to `seen` were known. */
static struct history history_at(const struct replay *r, size_t number, int64_t seen)
{
    size_t n = 0;
    for (size_t i = 0; i < number; i++) {
        const struct record *rec = &r->records[i];
        trial_view view = trial_past_view(rec->past, rec->n_past,
                                          rec->end == END_NONE ? 0 : rec->finish_seq, seen);
        if (view == TRIAL_SEEN_CANCELLED || (view == TRIAL_SEEN_ENDED && rec->end == END_CANCELLED))
            continue;
        r->observations[n] = rec->result;
        if (view != TRIAL_SEEN_ENDED) {
            r->observations[n].state =
                view == TRIAL_SEEN_FAILED ? OBSERVED_FAILED : OBSERVED_PENDING;
            clear_result(&r->observations[n]);
        }
        trial_rungs_view(rec->rungs, rec->n_rungs, seen, &r->observations[n]);
        n++;
    }
    return (struct history){.trials = r->observations, .n = n};
}

static as_status suggest_again(struct replay *r, size_t number, struct as_err *err)
{
    const struct record *rec = &r->records[number];
    struct history history = history_at(r, number, rec->seen);
    suggestion_done(&r->latest);
    json_decref(r->again);
    r->again = NULL;
    r->why = (struct as_err){0};
    as_status st = suggest(&r->spec, &history, r->state, number, (uint64_t)rec->index, r->cache,
                           &r->latest, &r->why);
    if (st == AS_E_NOMEM)
        return no_memory(err);
    if (st < 0)
        return AS_OK; /* a difference, with its reason */
    json_decref(r->state);
    r->state = json_incref(r->latest.state);
    r->again = config_to_json(r->space, r->latest.config);
    return r->again ? AS_OK : no_memory(err);
}

/* The first field of the reason that differs now; NULL: none. */
static const char *other_reason(const struct record *rec, json_t *again)
{
    const char *key;
    json_t *value;
    if (!rec->reason)
        return NULL;
    json_object_foreach(
        again, key, value) if (!json_equal(json_object_get(rec->reason, key), value)) return key;
    return NULL;
}

/* Compare the stored suggestion with the new one. */
static bool compare_suggestion(struct replay *r, const struct record *rec)
{
    if (!config_equal(r->space, rec->config, r->latest.config))
        return false;
    const char *key = other_reason(rec, r->latest.reason);
    if (key)
        (void)as_fail(&r->why, AS_E_CONFLICT, "the same parameters, with another '%s'", key);
    return !key;
}

as_status replay_next(struct replay *r, struct replay_step *ret, struct as_err *err)
{
    while (r->next < r->n && !r->records[r->next].is_suggested)
        r->next++;
    if (r->next == r->n)
        return AS_E_EXHAUSTED;
    size_t number = r->next;
    as_status st = suggest_again(r, number, err);
    if (st < 0)
        return st;
    r->next++;
    const struct record *rec = &r->records[number];
    bool is_same = r->again && compare_suggestion(r, rec);
    *ret = (struct replay_step){
        .number = number,
        .is_same = is_same,
        .stored = rec->params,
        .again = r->again,
        .why = r->why.msg[0] != '\0' ? r->why.msg : NULL,
    };
    return AS_OK;
}

as_status replay_bound(struct replay *r, int64_t seq, size_t *ret_completed,
                       struct regret_bound *ret, struct incumbent *ret_best, struct as_err *err)
{
    struct history history = history_at(r, r->n, seq);
    size_t n = 0;
    for (size_t i = 0; i < history.n; i++)
        n += history.trials[i].state == OBSERVED_COMPLETED;
    *ret_completed = n;
    as_status st = regret_bound_compute(&r->spec, &history, ret, err);
    return st < 0 ? st : incumbent_find(&r->spec, &history, ret_best, err);
}
