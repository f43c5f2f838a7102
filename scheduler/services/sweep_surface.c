/* Surfaces are computed from the history of a sweep, on the request's thread with a history of its
 * own, and kept as text in the result cache, as importance is. A subject of the cache is a number,
 * here made of the request: the text says which request it answers, so two requests with one number
 * are told apart. */
#include "scheduler/services/sweep_surface.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/services/sweep_objective_priv.h"
#include "scheduler/suggester/sweep_history.h"
#include "search/importance/surface.h"

/* A request, with what was found out about it. */
struct question {
    const struct surface_request *req;
    struct sweep_objective_place place;
    size_t x, y;      /* indices of parameters; SURFACE_NONE */
    const char *text; /* what tells this request from others of the sweep */
    size_t subject;
};

static as_status find_param(const struct space *space, const char *field, const char *name,
                            size_t *ret, struct as_err *err)
{
    *ret = SURFACE_NONE;
    if (!name)
        return AS_OK;
    int64_t i = space_find(space, name);
    if (i < 0)
        return as_fail(err, AS_E_INVAL,
                       "parameter %s is '%.63s', expected a parameter of the sweep", field, name);
    *ret = (size_t)i;
    return AS_OK;
}

/* Above the subjects of importance and of the bound of regret. */
static size_t subject_of(const char *text)
{
    return (size_t)(fnv64(FNV64_BASIS, text, strlen(text)) | UINT64_C(1) << 63);
}

static as_status complete_question(struct arena *a, const struct sweep_doc *doc, struct question *q,
                                   struct as_err *err)
{
    if (!q->req->x && q->req->y)
        return as_fail(err, AS_E_INVAL, "parameter y stands without x");
    as_status st = find_param(doc->space, "x", q->req->x, &q->x, err);
    if (st == AS_OK)
        st = find_param(doc->space, "y", q->req->y, &q->y, err);
    if (st != AS_OK)
        return st;
    /* no name of a parameter has a colon */
    q->text = arena_printf(a, "%zu:%lld:%s:%s", q->place.objective, (long long)q->req->places,
                           q->req->x ? q->req->x : "", q->req->y ? q->req->y : "");
    if (!q->text)
        return as_fail_nomem(err);
    q->subject = subject_of(q->text);
    return AS_OK;
}

/* ---- write ---- */

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *write_numbers(const double *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, number_or_null(v[i])) < 0)
            return NULL;
    return as_steal(list);
}

static json_t *write_axis(const struct space *space, const struct surface_axis *axis)
{
    if (axis->param == SURFACE_NONE)
        return json_null();
    return json_pack("{s:s, s:O}", "name", space->params[axis->param].name, "values", axis->values);
}

static json_t *write_surface(const struct space *space, const struct surface *s)
{
    JSON_AUTO o =
        json_pack("{s:o, s:o}", "x", write_axis(space, &s->x), "y", write_axis(space, &s->y));
    size_t n = s->x.n * s->y.n;
    int bad = o ? 0 : -1;
    if (s->mean) {
        bad |= json_object_set_new(o, "base", config_to_json(space, s->base));
        bad |= json_object_set_new(o, "base_trial", json_integer((json_int_t)s->base_number));
        bad |= json_object_set_new(o, "mean", write_numbers(s->mean, n));
        bad |= json_object_set_new(o, "deviation", write_numbers(s->deviation, n));
        bad |= json_object_set_new(o, "reason", json_null());
    } else if (o) {
        bad |= json_object_set_new(o, "base", json_null());
        bad |= json_object_set_new(o, "base_trial", json_null());
        bad |= json_object_set_new(o, "mean", json_array());
        bad |= json_object_set_new(o, "deviation", json_array());
        bad |= json_object_set_new(o, "reason", json_string(s->reason));
    }
    return bad ? NULL : as_steal(o);
}

static as_status add_surface(const struct objective_model *m, size_t x, size_t y, size_t places,
                             json_t *list, struct as_err *err)
{
    AS_AUTO(surface_freep) struct surface *s = NULL;
    as_status st = surface_compute(m, x, y, places, &s, err);
    if (st == AS_OK && json_array_append_new(list, write_surface(m->s->enc->space, s)) < 0)
        st = as_fail_nomem(err);
    return st;
}

/* Each parameter that can vary, while the cells of all fit; a categorical one of very many values
 * may be left out. */
static as_status add_each(const struct objective_model *m, size_t places, json_t *list,
                          struct as_err *err)
{
    size_t left = SURFACE_MAX_CELLS;
    as_status st = AS_OK;
    for (size_t i = 0; i < m->s->enc->n && st == AS_OK; i++) {
        size_t n = surface_axis_length(m, i, places);
        if (!surface_has_axis(m, i) || n > left)
            continue;
        left -= n;
        st = add_surface(m, i, SURFACE_NONE, places, list, err);
    }
    return st;
}

static as_status write_note(const struct question *q, const struct objective_model *m, char **ret,
                            struct as_err *err)
{
    JSON_AUTO list = json_array();
    size_t places = (size_t)q->req->places;
    as_status st = list ? AS_OK : as_fail_nomem(err);
    if (st == AS_OK && m->model)
        st = q->x == SURFACE_NONE ? add_each(m, places, list, err)
                                  : add_surface(m, q->x, q->y, places, list, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO note =
        json_pack("{s:s, s:I, s:o, s:s, s:O}", "question", q->text, "trials", (json_int_t)m->n_all,
                  "r2", number_or_null(m->r2), "reason", m->reason, "surfaces", list);
    *ret = note ? json_dumps(note, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* Compute the text; owned by the caller. *ret_seq: the last finish_seq that it knows. */
static as_status compute_note(struct store *db, const struct question *q, char **ret,
                              int64_t *ret_seq, struct as_err *err)
{
    AS_AUTO(sweep_history_freep) struct sweep_history *h = sweep_history_create(q->place.key);
    AS_AUTO(objective_model_freep) struct objective_model *m = NULL;
    if (!h)
        return as_fail_nomem(err);
    int64_t every = 1; /* as many as importance takes; the answer has no place for it */
    as_status st = sweep_history_sample(db, h, OBJECTIVE_TRIALS_MAX, &every, err);
    if (st != AS_OK)
        return st;
    struct history view = sweep_history_view(h);
    st = objective_model_create(sweep_history_spec(h), &view, q->place.objective, &m, err);
    if (st == AS_OK)
        st = write_note(q, m, ret, err);
    if (st == AS_OK)
        *ret_seq = sweep_history_place(h)->finish_seq;
    return st;
}

/* ---- read ---- */

static as_status read_note(struct arena *a, const json_t *note, const struct question *q,
                           struct surface_row *ret, struct as_err *err)
{
    const json_t *r2 = json_object_get(note, "r2");
    const char *reason = json_string_value(json_object_get(note, "reason"));
    AS_AUTO(as_freep)
    char *surfaces =
        json_dumps(json_object_get(note, "surfaces"), JSON_COMPACT | JSON_REAL_PRECISION(9));
    struct surface_row row = {.metric = q->place.metric,
                              .trials = json_integer_value(json_object_get(note, "trials")),
                              .r2 = json_is_real(r2) ? json_real_value(r2) : NAN,
                              .reason = reason && *reason ? arena_strdup(a, reason) : NULL,
                              .surfaces = surfaces ? arena_strdup(a, surfaces) : NULL};
    if (!row.surfaces || (reason && *reason && !row.reason))
        return as_fail_nomem(err);
    *ret = row;
    return AS_OK;
}

/* The kept text, if it is that of this request. */
static as_status read_kept(const char *text, const struct question *q, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO note = NULL;
    as_status st = text ? json_parse(text, strlen(text), &note, err) : AS_OK;
    if (st == AS_OK && note &&
        as_streq(json_string_value(json_object_get(note, "question")), q->text))
        *ret = as_steal(note);
    return st;
}

static as_status answer(struct store *db, struct result_cache *cache, struct arena *a,
                        const struct question *q, struct surface_row *ret, struct as_err *err)
{
    JSON_AUTO note = NULL;
    AS_AUTO(as_freep) char *fresh = NULL;
    const char *text = NULL;
    bool is_mine = true, is_stale = false;
    as_status st = AS_OK;
    const struct result_wanted wanted = {q->place.key, q->subject, q->place.finish_seq,
                                         q->req->max_age_ms * NS_PER_MS};
    if (cache)
        st = result_cache_get(cache, a, &wanted, clock_mono_ns(), &text, &is_mine, &is_stale, err);
    if (st == AS_OK && !is_mine)
        st = read_kept(text, q, &note, err);
    if (st != AS_OK)
        return st;
    if (!note) {
        int64_t seq = q->place.finish_seq;
        is_stale = false;
        st = compute_note(db, q, &fresh, &seq, err);
        if (cache && is_mine) /* NULL if it failed: then another request computes it */
            result_cache_put(cache, &wanted, seq, clock_mono_ns(), fresh);
        if (st == AS_OK)
            st = read_kept(fresh, q, &note, err);
    }
    if (st == AS_OK)
        st = read_note(a, note, q, ret, err);
    if (st == AS_OK)
        ret->is_stale = is_stale;
    return st;
}

as_status sweep_surface(struct store *db, struct result_cache *cache, struct arena *a,
                        const struct surface_request *req, struct surface_row *ret,
                        struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    struct question q = {.req = req};
    as_status st = sweep_objective_find(db, a, req->sweep, req->metric, &doc, &q.place, err);
    if (st == AS_OK)
        st = complete_question(a, doc, &q, err);
    return st == AS_OK ? answer(db, cache, a, &q, ret, err) : st;
}
