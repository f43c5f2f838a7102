#include "cli/commands/ensemble_ask.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/session/interrupt.h"

#define POLL_MS 200      /* at most: most ensembles take less */
#define FIRST_POLL_MS 10 /* each wait is twice the one before */
#define RETRY_MS 30000

bool ensemble_is_pending(const json_t *ensemble)
{
    return as_streq(json_string_value(json_object_get(ensemble, "state")), "pending");
}

/* Get `rest` of the sweep again until the ensemble in it is made. field: where it stands in the
 * answer; NULL: it is the answer. The last answer takes the place of *answer. */
static as_status wait_made(const struct session *s, const struct trial_ref *sweep, const char *rest,
                           const char *field, int64_t until_ns, json_t **answer, struct as_err *err)
{
    as_status st = AS_OK;
    int poll_ms = FIRST_POLL_MS;
    while (st == AS_OK && clock_mono_ns() <= until_ns &&
           ensemble_is_pending(field ? json_object_get(*answer, field) : *answer)) {
        bool slept = interrupt_sleep_ms(poll_ms);
        poll_ms = 2 * poll_ms < POLL_MS ? 2 * poll_ms : POLL_MS;
        if (!slept)
            return as_fail(err, AS_E_CONFLICT, "interrupted");
        json_decref(as_steal(*answer));
        st = request_get_within(s->client, sweep, rest, RETRY_MS, answer, err);
    }
    return st;
}

as_status ensemble_ask(const struct session *s, const struct trial_ref *sweep, const json_t *body,
                       int64_t until_ns, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO asked = NULL;
    char rest[48];
    /* Asked twice, the server finds the one that it has: no key is needed. */
    const struct client_opts opts = {.retry_ms = RETRY_MS};
    request_path(&path, sweep, "ensembles");
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = client_call(s->client, "POST", path.s, NULL, body, &opts, &asked, NULL, err);
    if (st < 0)
        return st;
    (void)snprintf(rest, sizeof rest, "ensembles/%lld",
                   (long long)json_integer_value(json_object_get(asked, "number")));
    st = wait_made(s, sweep, rest, "ensemble", until_ns, &asked, err);
    if (st == AS_OK)
        *ret = as_steal(asked);
    return st;
}

as_status ensemble_wait_own(const struct session *s, const struct trial_ref *sweep,
                            int64_t until_ns, json_t **ret, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    as_status st = request_get_within(s->client, sweep, "ensemble", RETRY_MS, &answer, err);
    if (st == AS_OK)
        st = wait_made(s, sweep, "ensemble", NULL, until_ns, &answer, err);
    if (st == AS_OK)
        *ret = as_steal(answer);
    return st;
}
