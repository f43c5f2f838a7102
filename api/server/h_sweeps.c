/* Handlers of sweeps. Each decodes, makes one call of a service, and encodes; a field that is wrong
 * has its pointer from the service. Lists have no documents unless the request asks for them,
 * because a document may have 1 MiB (decision 6003). */
#include "api/server/handlers.h"

#include <string.h>

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "scheduler/services/sweep_change.h"
#include "scheduler/services/sweep_importance.h"
#include "scheduler/services/regret_checks.h"
#include "scheduler/services/sweep_regret.h"
#include "scheduler/services/sweep_pareto.h"
#include "scheduler/services/sweep_surface.h"
#include "scheduler/services/sweep_preview.h"
#include "scheduler/services/sweeps.h"
#include "scheduler/services/trial_retry.h"
#include "scheduler/services/trials.h"
#include "scheduler/services/user_attrs.h"

#define MAX_TAG 128 /* bytes, as in a sweep document */
#define MAX_AGE_S 3600

as_status h_sweep_create(struct call *c, struct as_err *err)
{
    struct sweep_row row;
    bool paused = false, unique = false;
    as_status st = call_query_bool(c, "paused", &paused, err);
    if (st < 0 || (st = call_query_bool(c, "unique", &unique, err)) < 0)
        return st;
    const struct sweep_request q = {.doc = c->body,
                                    .idem = c->idem,
                                    .is_paused = paused,
                                    .is_unique = unique,
                                    .faults = &c->faults};
    st = sweep_request_create(c->db, c->arena, &q, &row, err);
    if (st < 0)
        return st;
    return call_created(c, sweep_encode(&row), arena_printf(c->arena, "/v1/sweeps/%s", row.id),
                        err);
}

as_status h_sweep_preview(struct call *c, struct as_err *err)
{
    int64_t n = 8;
    struct preview_row row;
    as_status st = call_query_i64(c, "suggestions", 0, PREVIEW_MAX_SUGGESTIONS, &n, err);
    if (st < 0)
        return st;
    st = sweep_preview(c->db, c->arena, c->body, (size_t)n, &c->faults, &row, err);
    return st < 0 ? st : call_ok(c, preview_encode(&row, &c->faults), err);
}

as_status h_sweep_list(struct call *c, struct as_err *err)
{
    static const char *const includes[] = {"document", NULL};
    struct sweep_query q = {0};
    struct sweep_page rows;
    sweep_state state = SWEEP_RUNNING;
    const char *word = call_query(c, "state");
    int include = -1;
    as_status st = call_page(c, &q.page, err);
    if (st < 0)
        return st;
    if (word)
        st = sweep_state_parse(word, &state, err);
    if (st < 0)
        return st;
    q.tag = call_query(c, "tag");
    size_t tag_len = q.tag ? strlen(q.tag) : 1;
    if (tag_len < 1 || tag_len > MAX_TAG)
        return as_fail(err, AS_E_INVAL, "?tag is %zu bytes long, expected 1 to %d", tag_len,
                       MAX_TAG);
    q.dataset = call_query(c, "dataset");
    if (q.dataset && !as_slug_valid(q.dataset))
        return as_fail(err, AS_E_INVAL, "?dataset is '%.80s', expected the name of a data set",
                       q.dataset);
    st = call_query_word(c, "include", includes, &include, err);
    if (st < 0)
        return st;
    q.state = word ? &state : NULL;
    q.with_documents = include == 0;
    st = sweep_list(c->db, c->arena, &q, &rows, err);
    return st < 0 ? st : call_ok(c, sweep_page_encode(&rows), err);
}

as_status h_sweep_get(struct call *c, struct as_err *err)
{
    const char *id = call_param(c, "sweep");
    struct stopping_report stopping;
    struct sweep_row row;
    as_status st = sweep_get(c->db, c->arena, id, &row, err);
    if (st == AS_OK)
        st = sweep_stopping(c->db, c->arena, id, &stopping, err);
    const char *attrs = NULL, *learned = NULL;
    if (st == AS_OK)
        st = user_attrs_get(c->db, c->arena, id, -1, &attrs, err);
    if (st == AS_OK)
        st = sweep_learned(c->db, c->arena, &row, &learned, err);
    if (st < 0)
        return st;
    return call_ok(c, with_user_attrs(sweep_detail_encode(&row, &stopping, learned), attrs), err);
}

as_status h_sweep_attrs(struct call *c, struct as_err *err)
{
    const char *attrs = NULL;
    as_status st =
        user_attrs_change(c->db, c->arena, call_param(c, "sweep"), -1, c->body, &attrs, err);
    return st < 0 ? st : call_ok(c, with_user_attrs(json_object(), attrs), err);
}

as_status h_sweep_change(struct call *c, struct as_err *err)
{
    struct sweep_patch patch;
    struct sweep_changed changed;
    sweep_state only = SWEEP_RUNNING;
    const char *word = call_query(c, "if_state");
    as_status st = sweep_patch_parse(c->body, &patch, err);
    if (st == AS_OK && word)
        st = sweep_state_parse(word, &only, err);
    if (st < 0)
        return st;
    patch.if_state = word ? &only : NULL;
    if ((st = call_query_i64(c, "if_max_trials", 1, SWEEP_MAX_TRIALS, &patch.if_max_trials, err)) <
        0)
        return st;
    st = sweep_change(c->db, c->arena, call_param(c, "sweep"), &patch, c->who.id, &changed, err);
    return st < 0 ? st : call_ok(c, sweep_changed_encode(&changed), err);
}

as_status h_sweep_changes(struct call *c, struct as_err *err)
{
    struct sweep_change_list list;
    as_status st = sweep_changes(c->db, c->arena, call_param(c, "sweep"), &list, err);
    return st < 0 ? st : call_ok(c, sweep_changes_encode(&list), err);
}

as_status h_sweep_retry(struct call *c, struct as_err *err)
{
    struct retry_request req;
    struct retried done;
    as_status st = retry_request_decode(c->body, &req, err);
    if (st < 0)
        return st;
    st = trials_retry(c->db, c->arena, call_param(c, "sweep"), &req, c->who.id, &done, err);
    return st < 0 ? st : call_ok(c, retried_encode(&done), err);
}

as_status h_sweep_delete(struct call *c, struct as_err *err)
{
    as_status st = sweep_delete(c->db, call_param(c, "sweep"), err);
    return st < 0 ? st : call_done(c);
}

as_status h_sweep_best(struct call *c, struct as_err *err)
{
    int64_t top = 10;
    struct trial_page rows;
    as_status st = call_query_i64(c, "top", 1, 1000, &top, err);
    if (st < 0)
        return st;
    st = trial_best(c->db, c->arena, call_param(c, "sweep"), top, call_query(c, "cursor"), &rows,
                    err);
    return st < 0 ? st : call_ok(c, best_page_encode(&rows), err);
}

as_status h_sweep_pareto(struct call *c, struct as_err *err)
{
    struct pareto_row row;
    as_status st = sweep_pareto(c->db, c->fronts, c->arena, call_param(c, "sweep"),
                                call_query(c, "cursor"), &row, err);
    return st < 0 ? st : call_ok(c, pareto_encode(&row), err);
}

as_status h_sweep_regret(struct call *c, struct as_err *err)
{
    struct regret_row row;
    as_status st = sweep_regret(c->db, c->results, c->arena, call_param(c, "sweep"), &row, err);
    return st < 0 ? st : call_ok(c, regret_encode(&row), err);
}

as_status h_sweep_regret_checks(struct call *c, struct as_err *err)
{
    struct regret_check_list list;
    as_status st = regret_checks_list(c->db, c->arena, call_param(c, "sweep"), &list, err);
    return st < 0 ? st : call_ok(c, regret_checks_encode(&list), err);
}

/* For how long an older answer will do. */
static as_status read_max_age(const struct call *c, int64_t *ret_ms, struct as_err *err)
{
    int64_t seconds = 0;
    as_status st = call_query_i64(c, "max_age", 0, MAX_AGE_S, &seconds, err);
    *ret_ms = seconds * 1000;
    return st;
}

as_status h_sweep_importance(struct call *c, struct as_err *err)
{
    struct importance_row row;
    int64_t max_age_ms = 0;
    as_status st = read_max_age(c, &max_age_ms, err);
    if (st == AS_OK)
        st = sweep_importance(c->db, c->results, c->arena, call_param(c, "sweep"),
                              call_query(c, "metric"), max_age_ms, &row, err);
    return st < 0 ? st : call_ok(c, importance_encode(&row), err);
}

as_status h_sweep_surface(struct call *c, struct as_err *err)
{
    struct surface_request q = {.sweep = call_param(c, "sweep"),
                                .metric = call_query(c, "metric"),
                                .x = call_query(c, "x"),
                                .y = call_query(c, "y"),
                                .places = SURFACE_PLACES};
    struct surface_row row;
    as_status st = call_query_i64(c, "n", SURFACE_MIN_PLACES, SURFACE_MAX_PLACES, &q.places, err);
    if (st == AS_OK)
        st = read_max_age(c, &q.max_age_ms, err);
    if (st == AS_OK)
        st = sweep_surface(c->db, c->results, c->arena, &q, &row, err);
    return st < 0 ? st : call_ok(c, surface_encode(&row), err);
}
