/* Importance of parameters: computed from the history of a sweep, and kept as text in a result
 * cache, one text for each objective.
 *
 * The computation fits a model and may take seconds. It runs on the request's thread with a history
 * of its own, so that suggestions never wait for it. The text is bound to the number of trials that
 * had ended. If a newer one is being computed, or the request takes an older one, it gets that and
 * is_stale. */
#include "scheduler/services/sweep_importance.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/services/sweep_objective_priv.h"
#include "scheduler/suggester/sweep_history.h"
#include "search/importance/importance.h"

/* The fields of a parameter, in the order of the cached text. */
static const size_t fields[] = {
    offsetof(struct importance_param, first),      offsetof(struct importance_param, first_low),
    offsetof(struct importance_param, first_high), offsetof(struct importance_param, total),
    offsetof(struct importance_param, total_low),  offsetof(struct importance_param, total_high),
    offsetof(struct importance_param, top)};

static double *field_of(struct importance_param *p, size_t i)
{
    return (double *)(void *)((char *)p + fields[i]);
}

static struct importance_param param_of(const struct importance_parameter *p)
{
    return (struct importance_param){.name = p->name,
                                     .is_conditional = p->is_conditional,
                                     .first = p->first,
                                     .first_low = p->first_low,
                                     .first_high = p->first_high,
                                     .total = p->total,
                                     .total_low = p->total_low,
                                     .total_high = p->total_high,
                                     .top = p->top};
}

static json_t *write_param(const struct importance_parameter *p)
{
    struct importance_param x = param_of(p);
    JSON_AUTO j = json_pack("[s, b]", x.name, (int)x.is_conditional);
    int bad = j ? 0 : -1;
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
        bad |= json_array_append_new(j, json_real(*field_of(&x, i)));
    return bad ? NULL : as_steal(j);
}

/* Owned by the caller; NULL when memory is out. */
static char *write_note(const struct importance *x, int64_t every)
{
    JSON_AUTO params = json_array();
    JSON_AUTO note = NULL;
    int bad = params ? 0 : -1;
    for (size_t i = 0; i < x->n; i++)
        bad |= json_array_append_new(params, write_param(&x->parameters[i]));
    if (!bad)
        note = json_pack("{s:s, s:I, s:I, s:s, s:O}", "method", x->method, "trials",
                         (json_int_t)x->trials, "every", (json_int_t)every, "reason", x->reason,
                         "params", params);
    if (note && isfinite(x->r2))
        bad |= json_object_set_new(note, "r2", json_real(x->r2));
    return note && !bad ? json_format(note) : NULL;
}

static as_status read_param(struct arena *a, const json_t *j, struct importance_param *ret,
                            struct as_err *err)
{
    ret->name = arena_strdup(a, json_string_value(json_array_get(j, 0)));
    ret->is_conditional = json_is_true(json_array_get(j, 1));
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
        *field_of(ret, i) = json_number_value(json_array_get(j, i + 2));
    return ret->name ? AS_OK : as_fail_nomem(err);
}

/* The most important first; equal ones in the order of the space. */
static void sort_params(struct importance_param *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct importance_param x = p[i];
        size_t k = i;
        for (; k > 0 && p[k - 1].total < x.total; k--)
            p[k] = p[k - 1];
        p[k] = x;
    }
}

static as_status read_note(struct arena *a, const char *text, const char *metric,
                           struct importance_row *ret, struct as_err *err)
{
    JSON_AUTO note = NULL;
    as_status st = json_parse(text, strlen(text), &note, err);
    if (st != AS_OK)
        return st;
    const json_t *params = json_object_get(note, "params"), *r2 = json_object_get(note, "r2");
    const char *reason = json_string_value(json_object_get(note, "reason"));
    struct importance_row row = {
        .metric = metric,
        .trials = json_integer_value(json_object_get(note, "trials")),
        .every = json_integer_value(json_object_get(note, "every")),
        .method = arena_strdup(a, json_string_value(json_object_get(note, "method"))),
        .r2 = r2 ? json_number_value(r2) : NAN,
        .n = json_array_size(params),
        .reason = reason && *reason ? arena_strdup(a, reason) : NULL};
    row.params = arena_alloc(a, row.n + 1, sizeof *row.params);
    if (!row.method || !row.params || (reason && *reason && !row.reason))
        return as_fail_nomem(err);
    for (size_t i = 0; i < row.n; i++) {
        st = read_param(a, json_array_get(params, i), &row.params[i], err);
        if (st != AS_OK)
            return st;
    }
    sort_params(row.params, row.n);
    *ret = row;
    return AS_OK;
}

/* Compute the text; owned by the caller. *ret_seq: the last finish_seq that it knows. */
static as_status compute_importance(struct store *db, const struct sweep_objective_place *q,
                                    char **ret, int64_t *ret_seq, struct as_err *err)
{
    AS_AUTO(sweep_history_freep) struct sweep_history *h = sweep_history_create(q->key);
    AS_AUTO(importance_freep) struct importance *x = NULL;
    if (!h)
        return as_fail_nomem(err);
    int64_t every = 1;
    as_status st = sweep_history_sample(db, h, OBJECTIVE_TRIALS_MAX, &every, err);
    if (st != AS_OK)
        return st;
    struct history view = sweep_history_view(h);
    st = importance_compute(sweep_history_spec(h), &view, q->objective, &x, err);
    if (st != AS_OK)
        return st;
    *ret = write_note(x, every);
    *ret_seq = sweep_history_place(h)->finish_seq;
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status sweep_importance(struct store *db, struct result_cache *cache, struct arena *a,
                           const char *id, const char *metric, int64_t max_age_ms,
                           struct importance_row *ret, struct as_err *err)
{
    struct sweep_objective_place q = {0};
    AS_AUTO(as_freep) char *fresh = NULL;
    const char *text = NULL;
    bool is_mine = true, is_stale = false;
    as_status st = sweep_objective_find(db, a, id, metric, NULL, &q, err);
    if (st != AS_OK)
        return st;
    const struct result_wanted wanted = {q.key, q.objective, q.finish_seq, max_age_ms * NS_PER_MS};
    if (cache)
        st = result_cache_get(cache, a, &wanted, clock_mono_ns(), &text, &is_mine, &is_stale, err);
    if (st != AS_OK)
        return st;
    if (is_mine) {
        int64_t seq = q.finish_seq;
        st = compute_importance(db, &q, &fresh, &seq, err);
        if (cache) /* NULL if it failed: then another request computes it */
            result_cache_put(cache, &wanted, seq, clock_mono_ns(), fresh);
        text = fresh;
    }
    if (st != AS_OK)
        return st;
    st = read_note(a, text, q.metric, ret, err);
    if (st != AS_OK)
        return st;
    ret->is_stale = is_stale;
    return AS_OK;
}
