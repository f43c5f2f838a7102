/* The bound is computed from the history of a sweep, on the request's thread with a history of its
 * own, and kept as text in the result cache, as importance is. The text is bound to the number of
 * trials that had ended; while a newer one is computed, a request gets the older text. */
#include "scheduler/services/sweep_regret.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/services/sweep_objective_priv.h"
#include "scheduler/store/history_store.h"
#include "scheduler/suggester/sweep_history.h"
#include "search/regret_bound.h"

#define SUBJECT SEARCH_MAX_OBJECTIVES /* of the cache: after the importances of the objectives */

/* Owned by the caller; NULL when memory is out. */
static char *write_note(const char *metric, int64_t seq, const struct regret_bound *b)
{
    bool has_share = b->is_known && isfinite(b->relative);
    JSON_AUTO note =
        json_pack("{s:s, s:I, s:b, s:o*, s:o*}", "metric", metric, "seq", (json_int_t)seq, "enough",
                  (int)b->is_enough, "bound", b->is_known ? json_real(b->bound) : NULL, "relative",
                  has_share ? json_real(b->relative) : NULL);
    return note ? json_format(note) : NULL;
}

static double number_or_nan(const json_t *v)
{
    return v ? json_number_value(v) : NAN;
}

static as_status read_note(struct arena *a, const char *text, struct regret_row *ret,
                           struct as_err *err)
{
    JSON_AUTO note = NULL;
    as_status st = json_parse(text, strlen(text), &note, err);
    if (st != AS_OK)
        return st;
    struct regret_row row = {
        .metric = arena_strdup(a, json_string_value(json_object_get(note, "metric"))),
        .finish_seq = json_integer_value(json_object_get(note, "seq")),
        .is_enough = json_is_true(json_object_get(note, "enough")),
        .bound = number_or_nan(json_object_get(note, "bound")),
        .relative = number_or_nan(json_object_get(note, "relative"))};
    if (!row.metric)
        return as_fail_nomem(err);
    *ret = row;
    return AS_OK;
}

/* Compute the text; owned by the caller. *ret_seq: the last finish_seq that it knows. */
static as_status compute_bound(struct store *db, int64_t key, char **ret, int64_t *ret_seq,
                               struct as_err *err)
{
    AS_AUTO(sweep_history_freep) struct sweep_history *h = sweep_history_create(key);
    struct regret_bound bound;
    if (!h)
        return as_fail_nomem(err);
    as_status st = sweep_history_load(db, h, err);
    if (st != AS_OK)
        return st;
    struct history view = sweep_history_view(h);
    st = regret_bound_compute(sweep_history_spec(h), &view, &bound, err);
    if (st != AS_OK)
        return st;
    *ret_seq = sweep_history_place(h)->finish_seq;
    *ret = write_note(sweep_history_metric(h), *ret_seq, &bound);
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status sweep_regret(struct store *db, struct result_cache *cache, struct arena *a,
                       const char *id, struct regret_row *ret, struct as_err *err)
{
    int64_t key = 0;
    struct history_head head = {0};
    AS_AUTO(as_freep) char *fresh = NULL;
    const char *text = NULL;
    bool is_mine = true, is_stale = false;
    as_status st = sweep_head_find(db, a, id, &key, &head, err);
    if (st != AS_OK)
        return st;
    const struct result_wanted wanted = {key, SUBJECT, head.finish_seq, 0};
    if (cache)
        st = result_cache_get(cache, a, &wanted, clock_mono_ns(), &text, &is_mine, &is_stale, err);
    if (st != AS_OK)
        return st;
    if (is_mine) {
        int64_t seq = head.finish_seq;
        st = compute_bound(db, key, &fresh, &seq, err);
        if (cache) /* NULL if it failed: then another request computes it */
            result_cache_put(cache, &wanted, seq, clock_mono_ns(), fresh);
        text = fresh;
    }
    if (st != AS_OK)
        return st;
    st = read_note(a, text, ret, err);
    if (st == AS_OK)
        ret->is_stale = is_stale;
    return st;
}
