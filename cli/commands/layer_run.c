/* A layer is what `assay run` and `trials add` would do: the sweep is created paused, its trials
 * are queued, and then it runs, so that no runner gets a trial that the search suggests. */
#include "cli/commands/layer_run.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/layer_sweep.h"
#include "cli/session/interrupt.h"

#define POLL_MS 200
#define RETRY_MS 30000

static as_status post(const struct session *s, const struct trial_ref *ref, const char *rest,
                      const json_t *body, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    request_path(&path, ref, rest);
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    return st < 0 ? st : client_call(s->client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
}

static bool is_pending(const json_t *ensemble)
{
    return as_streq(json_string_value(json_object_get(ensemble, "state")), "pending");
}

/* The mean of the best n trials, for its members. */
static as_status best_trials(const struct session *s, const struct trial_ref *ref, size_t n,
                             json_t **ret, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s, s:I}", "method", "average", "size", (json_int_t)n);
    JSON_AUTO asked = NULL;
    char rest[48];
    as_status st = post(s, ref, "ensembles", body, &asked, err);
    if (st < 0)
        return st;
    (void)snprintf(rest, sizeof rest, "ensembles/%lld",
                   (long long)json_integer_value(json_object_get(asked, "number")));
    while (is_pending(json_object_get(asked, "ensemble"))) {
        if (!interrupt_sleep_ms(POLL_MS))
            return as_fail(err, AS_E_CONFLICT, "interrupted");
        json_decref(as_steal(asked));
        st = request_get_within(s->client, ref, rest, RETRY_MS, &asked, err);
        if (st < 0)
            return st;
    }
    *ret = json_incref(json_object_get(asked, "ensemble"));
    return AS_OK;
}

/* The sweep's own ensemble says which trials are good together. */
static as_status choose(const struct session *s, const struct trial_ref *ref, size_t n,
                        json_t **ret, struct as_err *err)
{
    JSON_AUTO own = NULL;
    JSON_AUTO best = NULL;
    as_status st = request_get_within(s->client, ref, "ensemble", RETRY_MS, &own, err);
    if (st == AS_OK && is_pending(own))
        return as_fail(err, AS_E_NOT_FOUND,
                       "%s has no ensemble yet; it is made when the sweep has ended", ref->sweep);
    if (st == AS_OK)
        st = best_trials(s, ref, n, &best, err);
    return st < 0 ? st : layer_choose(own, best, n, ret, err);
}

static as_status create(const struct session *s, const json_t *doc, const json_t *trials,
                        struct trial_ref *ret, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    JSON_AUTO answer = NULL;
    JSON_AUTO state = json_pack("{s:s}", "state", "running");
    JSON_AUTO now = NULL;
    JSON_AUTO first = layer_first_trials(trials);
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    as_status st =
        client_call(s->client, "POST", "/v1/sweeps", "paused=true", doc, &opts, &sweep, NULL, err);
    if (st < 0)
        return st;
    const char *id = json_string_value(json_object_get(sweep, "id"));
    st = id ? request_parse_sweep(id, ret, err)
            : as_fail(err, AS_E_INTERNAL, "the server returned a sweep without an id");
    if (st == AS_OK)
        st = post(s, ret, "trials", first, &answer, err);
    return st < 0 ? st : request_patch(s->client, ret, state, &now, err);
}

as_status layer_start(const struct session *s, const struct trial_ref *below, size_t trials,
                      int64_t time_ms, struct trial_ref *ret, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    JSON_AUTO chosen = NULL;
    JSON_AUTO doc = NULL;
    as_status st = request_get_within(s->client, below, NULL, RETRY_MS, &sweep, err);
    if (st == AS_OK)
        st = choose(s, below, trials, &chosen, err);
    if (st == AS_OK)
        st = layer_document(sweep, chosen, time_ms, &doc, err);
    return st < 0 ? st : create(s, doc, chosen, ret, err);
}
