/* Ask and tell: the requests of clients, and the suggestions that they get.
 *
 * A client may report only the outcomes that it can know: completed, failed, released, and what
 * early stopping asks for. The functions that read the measurements of runners (codec_attempt.c)
 * also read those of clients, and the answers to both are the same. */
#include <string.h>

#include "api/codec/wire.h"
#include "api/codec/wire_priv.h"
#include "base/json.h"

#define WAIT_DEFAULT_MS 30000
#define WAIT_MAX_MS 60000

/* The name of the client. */
static as_status read_client(struct json_fields *f, const char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, "client", JSON_REQUIRED, &s, err);
    if (st < 0 || (st = ask_check_client(s, err)) < 0)
        return st;
    *ret = s;
    return AS_OK;
}

static as_status read_lease(struct json_fields *f, int64_t *ret, struct as_err *err)
{
    return json_fields_i64(f, "lease_ms", JSON_OPTIONAL, ASK_LEASE_MIN_MS, ASK_LEASE_MAX_MS, ret,
                           err);
}

/* The fields that every tell has: the client and the attempt. */
static as_status read_holder(struct json_fields *f, const json_t *doc, struct ask_ref *ret,
                             struct as_err *err)
{
    as_status st = json_fields_init(f, doc, "", err);
    if (st < 0 || (st = read_client(f, &ret->client, err)) < 0 ||
        (st = json_fields_i64(f, "attempt", JSON_OPTIONAL, 1, INT32_MAX, &ret->attempt, err)) < 0)
        return st;
    return AS_OK;
}

as_status ask_decode(const json_t *doc, struct ask_request *ret, int64_t *ret_wait_ms,
                     struct as_err *err)
{
    struct json_fields f;
    struct ask_request r = {.count = 1, .lease_ms = ASK_LEASE_DEFAULT_MS};
    int64_t wait_ms = WAIT_DEFAULT_MS;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = read_client(&f, &r.client, err)) < 0 ||
        (st = json_fields_object(&f, "params", JSON_OPTIONAL, &r.params, err)) < 0 ||
        (st = json_fields_i64(&f, "count", JSON_OPTIONAL, 1, ASK_MAX_COUNT, &r.count, err)) < 0 ||
        (st = read_lease(&f, &r.lease_ms, err)) < 0 ||
        (st = json_fields_i64(&f, "wait_ms", JSON_OPTIONAL, 0, WAIT_MAX_MS, &wait_ms, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (r.params && r.count != 1)
        return as_fail_at(err, AS_E_INVAL, "/count", "/count: found %lld, expected 1 with params",
                          (long long)r.count);
    *ret = r;
    *ret_wait_ms = wait_ms;
    return AS_OK;
}

as_status tell_measurements_decode(const json_t *doc, struct arena *a, struct ask_ref *ret_ref,
                                   struct measurement_list *ret, struct as_err *err)
{
    struct json_fields f;
    struct ask_ref ref = *ret_ref;
    struct measurement_list list = {0};
    as_status st = read_holder(&f, doc, &ref, err);
    if (st < 0 || (st = measurement_items_read(&f, a, &list, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret_ref = ref;
    *ret = list;
    return AS_OK;
}

as_status tell_heartbeat_decode(const json_t *doc, struct ask_ref *ret_ref, int64_t *ret_lease_ms,
                                struct as_err *err)
{
    struct json_fields f;
    struct ask_ref ref = *ret_ref;
    int64_t lease_ms = 0;
    as_status st = read_holder(&f, doc, &ref, err);
    if (st < 0 || (st = read_lease(&f, &lease_ms, err)) < 0 || (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret_ref = ref;
    *ret_lease_ms = lease_ms;
    return AS_OK;
}

/* The outcomes that a client may report, in the order of api/openapi.yaml. */
static const char *const outcome_words[] = {"completed", "failed", "released",
                                            "paused",    "pruned", NULL};
static const attempt_outcome outcomes[] = {OUTCOME_COMPLETED, OUTCOME_FAILED, OUTCOME_RELEASED,
                                           OUTCOME_PAUSED, OUTCOME_PRUNED};

as_status tell_complete_decode(const json_t *doc, struct arena *a, struct ask_ref *ret_ref,
                               struct completion *ret, struct as_err *err)
{
    struct json_fields f;
    struct ask_ref ref = *ret_ref;
    struct completion c = {0};
    int outcome = 0;
    as_status st = read_holder(&f, doc, &ref, err);
    if (st < 0 ||
        (st = json_fields_word(&f, "outcome", JSON_OPTIONAL, outcome_words, &outcome, err)) < 0 ||
        (st = final_metrics_read(&f, a, &c, err)) < 0 ||
        (st = json_fields_text(&f, "reason", JSON_OPTIONAL, 0, REASON_MAX, &c.reason, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    c.outcome = outcomes[outcome];
    *ret_ref = ref;
    *ret = c;
    return AS_OK;
}

static json_t *suggestion_encode(const char *sweep, const struct suggestion_row *r)
{
    struct out o = out_begin();
    json_t *inactive = json_array();
    for (size_t i = 0; i < r->n_inactive; i++)
        inactive = list_add(inactive, json_string(r->inactive[i]));
    out_str(&o, "sweep", sweep);
    out_i64(&o, "number", r->number);
    out_i64(&o, "attempt", r->attempt);
    out_json(&o, "params", r->params);
    out_child(&o, "inactive", inactive);
    out_decimal(&o, "seed", r->seed);
    out_str(&o, "origin", trial_origin_words[r->origin]);
    out_json(&o, "reason", r->reason);
    out_time(&o, "lease_until", r->lease_until_ms);
    return out_end(&o);
}

json_t *suggestions_encode(const char *sweep, const struct suggestion_list *l)
{
    struct out o = out_begin();
    json_t *items = json_array();
    for (size_t i = 0; i < l->n; i++)
        items = list_add(items, suggestion_encode(sweep, &l->rows[i]));
    out_child(&o, "items", items);
    out_str(&o, "state", sweep_state_format(l->state));
    out_bool(&o, "done", l->done);
    return out_end(&o);
}

json_t *tell_lease_encode(int64_t lease_until_ms)
{
    struct out o = out_begin();
    out_time(&o, "lease_until", lease_until_ms);
    return out_end(&o);
}
