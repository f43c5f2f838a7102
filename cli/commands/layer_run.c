/* A layer is what `assay run` and `trials add` would do: the sweep is created paused, its trials
 * are queued, and then it runs, so that no runner gets a trial that the search suggests. */
#include "cli/commands/layer_run.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/commands/ensemble_ask.h"
#include "cli/commands/layer_sweep.h"

#define RETRY_MS 30000
#define TOGETHER 16 /* members of an ensemble of two sweeps */

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

/* An ensemble of the sweep, and of `also` if there is one. */
static as_status ask(const struct session *s, const struct trial_ref *ref, const char *also,
                     const char *method, size_t size, json_t **ret, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s, s:I}", "method", method, "size", (json_int_t)size);
    JSON_AUTO asked = NULL;
    if (also && json_object_set_new(body, "sweeps", json_pack("[s]", also)) != 0)
        return as_fail_nomem(err);
    as_status st = ensemble_ask(s, ref, body, ENSEMBLE_NO_END, &asked, err);
    if (st == AS_OK)
        *ret = json_incref(json_object_get(asked, "ensemble"));
    return st;
}

/* The sweep's own ensemble, which is made when it has ended. */
static as_status own_ensemble(const struct session *s, const struct trial_ref *ref, bool ended,
                              json_t **ret, struct as_err *err)
{
    int64_t until_ns = ended ? ENSEMBLE_NO_END : 0;
    as_status st = ensemble_wait_own(s, ref, until_ns, ret, err);
    if (st == AS_OK && ensemble_is_pending(*ret))
        return as_fail(err, AS_E_NOT_FOUND,
                       "%s has no ensemble yet; it is made when the sweep has ended", ref->sweep);
    return st;
}

/* An ensemble says which trials are good together; the mean of the best ones, which are good alone.
 */
static as_status choose(const struct session *s, const struct trial_ref *ref, const char *also,
                        bool ended, size_t n, json_t **ret, struct as_err *err)
{
    JSON_AUTO together = NULL;
    JSON_AUTO best = NULL;
    as_status st = also ? ask(s, ref, also, "greedy", TOGETHER, &together, err)
                        : own_ensemble(s, ref, ended, &together, err);
    if (st == AS_OK)
        st = ask(s, ref, also, "average", n, &best, err);
    return st < 0 ? st : layer_choose(together, best, n, ret, err);
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

static bool has_ended(const json_t *sweep)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    return as_streq(state, "completed") || as_streq(state, "failed") ||
           as_streq(state, "cancelled");
}

as_status layer_start(const struct session *s, const struct trial_ref *below, const char *also,
                      size_t trials, int64_t time_ms, struct trial_ref *ret, struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    JSON_AUTO chosen = NULL;
    JSON_AUTO doc = NULL;
    as_status st = request_get_within(s->client, below, NULL, RETRY_MS, &sweep, err);
    if (st == AS_OK)
        st = choose(s, below, also, has_ended(sweep), trials, &chosen, err);
    if (st == AS_OK)
        st = layer_document(sweep, chosen, time_ms, &doc, err);
    return st < 0 ? st : create(s, doc, chosen, ret, err);
}
