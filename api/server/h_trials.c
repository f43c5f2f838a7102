/* Handlers of trials, their measurements, logs, files and known results. A body of h_trial_add() is
 * one trial or a list; a list is added as a whole or not at all, so that a repeat with the same
 * keys is safe (decision 6004). */
#include "api/server/handlers.h"

#include <string.h>

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "base/json.h"
#include "base/metric_name.h"
#include "scheduler/services/trial_retry.h"
#include "scheduler/services/trial_tags.h"
#include "scheduler/services/trials.h"
#include "scheduler/services/user_attrs.h"

#define MAX_GROUP_ID 128

/* A field of the trial, or metric:NAME or param:NAME. */
static as_status read_sort(const char *text, struct trial_query *ret, struct as_err *err)
{
    const char *name = text ? strchr(text, ':') : NULL;
    size_t len = name ? (size_t)(name - text) : text ? strlen(text) : 0;
    if (!text)
        return AS_OK;
    for (int i = 0; trial_sort_words[i]; i++) {
        bool is_named = i == TRIAL_BY_METRIC || i == TRIAL_BY_PARAM;
        if (strlen(trial_sort_words[i]) != len || memcmp(trial_sort_words[i], text, len) != 0 ||
            is_named != (name != NULL))
            continue;
        if (i == TRIAL_BY_METRIC && !metric_name_valid(name + 1))
            return as_fail(
                err, AS_E_INVAL,
                "?sort=metric: found \"%.80s\", expected the name of a metric: " METRIC_NAME_RULE,
                name + 1);
        ret->sort = (trial_sort)i;
        ret->name = name ? name + 1 : NULL;
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL,
                   "?sort: found \"%.80s\", expected number, value, started_at, finished_at, "
                   "duration, created_at, state, metric:NAME or param:NAME",
                   text);
}

static as_status read_query(const struct call *c, struct trial_query *ret, trial_state *ret_state,
                            struct as_err *err)
{
    static const char *const orders[] = {"asc", "desc", NULL};
    struct trial_query q = {.sort = TRIAL_BY_NUMBER};
    const char *word = call_query(c, "state");
    int order = 0;
    as_status st = call_page(c, &q.page, err);
    if (st < 0)
        return st;
    if (word)
        st = trial_state_parse(word, ret_state, err);
    if (st < 0)
        return st;
    st = read_sort(call_query(c, "sort"), &q, err);
    if (st < 0)
        return st;
    st = call_query_word(c, "order", orders, &order, err);
    if (st < 0)
        return st;
    q.state = word ? ret_state : NULL;
    q.group = call_query(c, "group");
    size_t group_len = q.group ? strlen(q.group) : 1;
    if (group_len < 1 || group_len > MAX_GROUP_ID)
        return as_fail(err, AS_E_INVAL, "?group is %zu bytes long, expected 1 to %d", group_len,
                       MAX_GROUP_ID);
    q.descending = order == 1;
    *ret = q;
    return AS_OK;
}

as_status h_trial_list(struct call *c, struct as_err *err)
{
    static const char *const includes[] = {"user_attrs", NULL};
    struct trial_query q;
    trial_state state = TRIAL_QUEUED;
    struct trial_page rows;
    int include = -1;
    as_status st = read_query(c, &q, &state, err);
    if (st < 0)
        return st;
    st = call_query_word(c, "include", includes, &include, err);
    if (st == AS_OK)
        st = trial_list(c->db, c->orders, c->arena, call_param(c, "sweep"), &q, &rows, err);
    if (st == AS_OK && include == 0)
        st = user_attrs_of_page(c->db, c->arena, call_param(c, "sweep"), &rows, err);
    return st < 0 ? st : call_ok(c, trial_page_encode(&rows), err);
}

as_status h_trial_get(struct call *c, struct as_err *err)
{
    int64_t number = 0;
    struct trial_detail row;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st < 0)
        return st;
    const char *attrs = NULL;
    st = trial_get(c->db, c->arena, call_param(c, "sweep"), number, &row, err);
    if (st == AS_OK)
        st = user_attrs_get(c->db, c->arena, call_param(c, "sweep"), number, &attrs, err);
    return st < 0 ? st : call_ok(c, with_user_attrs(trial_detail_encode(&row), attrs), err);
}

as_status h_trial_attrs(struct call *c, struct as_err *err)
{
    const char *attrs = NULL;
    int64_t number = 0;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st == AS_OK)
        st = user_attrs_change(c->db, c->arena, call_param(c, "sweep"), number, c->body, &attrs,
                               err);
    return st < 0 ? st : call_ok(c, with_user_attrs(json_object(), attrs), err);
}

as_status h_trial_cancel(struct call *c, struct as_err *err)
{
    int64_t number = 0;
    struct trial_row row;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st < 0)
        return st;
    st = trial_cancel(c->db, c->arena, call_param(c, "sweep"), number, &row, err);
    return st < 0 ? st : call_ok(c, trial_encode(&row), err);
}

as_status h_trial_retry(struct call *c, struct as_err *err)
{
    int64_t number = 0;
    struct trial_row row;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st < 0)
        return st;
    st = trial_retry(c->db, c->arena, call_param(c, "sweep"), number, c->who.id, &row, err);
    return st < 0 ? st : call_ok(c, trial_encode(&row), err);
}

as_status h_trial_series(struct call *c, struct as_err *err)
{
    int64_t number = 0;
    struct series_list list;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st < 0)
        return st;
    st = trial_series(c->db, c->arena, call_param(c, "sweep"), number, call_query(c, "metric"),
                      call_query(c, "cursor"), &list, err);
    return st < 0 ? st : call_ok(c, series_encode(&list), err);
}

/* The trial of the path and the attempt that is asked for; 0: the latest. */
static as_status trial_and_attempt(struct call *c, int64_t *ret_number, int64_t *ret_attempt,
                                   struct as_err *err)
{
    as_status st = call_param_i64(c, "number", 0, ret_number, err);
    return st < 0 ? st : call_query_i64(c, "attempt", 1, INT32_MAX, ret_attempt, err);
}

as_status h_trial_log(struct call *c, struct as_err *err)
{
    int64_t number = 0, attempt = 0;
    struct log_row row;
    as_status st = trial_and_attempt(c, &number, &attempt, err);
    if (st < 0)
        return st;
    st = trial_log(c->db, c->arena, call_param(c, "sweep"), number, attempt, &row, err);
    return st < 0 ? st : call_ok(c, log_encode(&row), err);
}

as_status h_trial_usage(struct call *c, struct as_err *err)
{
    int64_t number = 0, attempt = 0;
    struct usage_list list;
    as_status st = trial_and_attempt(c, &number, &attempt, err);
    if (st < 0)
        return st;
    st = trial_usage(c->db, c->arena, call_param(c, "sweep"), number, attempt, &list, err);
    return st < 0 ? st : call_ok(c, usage_encode(&list), err);
}

as_status h_trial_artifacts(struct call *c, struct as_err *err)
{
    int64_t number = 0;
    static const char *const kinds[] = {"artifact", "checkpoint", "log", NULL};
    struct file_list list;
    int kind = 0;
    as_status st = call_param_i64(c, "number", 0, &number, err);
    if (st == AS_OK)
        st = call_query_word(c, "kind", kinds, &kind, err);
    if (st < 0)
        return st;
    st = trial_files(c->db, c->arena, call_param(c, "sweep"), number, kinds[kind], &list, err);
    return st < 0 ? st : call_ok(c, file_list_encode(&list), err);
}

/* A list of trials. Keys of rows belong to the sweep: several programs add one result once,
 * whatever their tokens. */
static as_status add_list(struct call *c, const char *sweep, struct as_err *err)
{
    struct trials_added added;
    const char *scope = arena_printf(c->arena, "POST /v1/sweeps/%s/trials rows", sweep);
    if (!scope)
        return as_fail_nomem(err);
    as_status st = trials_add(c->db, c->arena, sweep, c->body, c->idem, scope, &added, err);
    return st < 0 ? st : call_created(c, trials_added_encode(&added), NULL, err);
}

as_status h_trial_add(struct call *c, struct as_err *err)
{
    struct trial_row row;
    struct json_fields body; /* only checks for an object; trial_add checks its fields */
    const char *sweep = call_param(c, "sweep");
    if (json_is_array(c->body))
        return add_list(c, sweep, err);
    as_status st = json_fields_init(&body, c->body, "", err);
    if (st < 0)
        return st;
    st = trial_add(c->db, c->arena, sweep, c->body, c->idem, &row, err);
    if (st < 0)
        return st;
    return call_created(
        c, trial_encode(&row),
        arena_printf(c->arena, "/v1/sweeps/%s/trials/%lld", row.sweep, (long long)row.number), err);
}

as_status h_trial_tag(struct call *c, struct as_err *err)
{
    struct tags_request q;
    int64_t changed = 0;
    as_status st = tags_request_parse(c->body, c->arena, &q, err);
    if (st < 0 || (st = trials_tag(c->db, call_param(c, "sweep"), &q, &changed, err)) < 0)
        return st;
    return call_ok(c, tagged_encode(changed), err);
}
