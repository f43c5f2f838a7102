/* Requests of one attempt.
 *
 * Every request can be repeated: measurements are keyed by step, files by digest, the log and the
 * set of files are replaced whole, and a completion counts once. So a lost answer needs no special
 * case.
 *
 * Three kinds of refusal are handled differently. A refused token is tried again for ever, because
 * the result is worth more than the wait; an internal error of the server is tried again a few
 * times. Stale or unknown attempts set `gone`, and nothing more is written. Refused content is
 * noted in the trial's log and skipped, so that one bad item costs only itself. */
#include "trial-runner/delivery/outbox_priv.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "trial-runner/delivery/sender.h"
#include "trial-runner/rank/rank.h"

#define MAX_WARNINGS 20
#define DENIED_PAUSE_MS 5000
#define INTERNAL_PAUSE_MS 1000
#define INTERNAL_TRIES 4

const struct outbox_request outbox_replace_files = {.method = "PUT", .verb = "files"};

void outbox_warn(struct outbox *o, const char *what, const char *why)
{
    if (o->warnings < MAX_WARNINGS)
        attempt_note(o->attempt, "warning: %s: %s%s", what, why,
                     o->warnings + 1 == MAX_WARNINGS ? " (further warnings are not shown)" : "");
    o->warnings++;
}

as_status outbox_send_alone(struct outbox *o, const struct outbox_request *q, int64_t world,
                            const json_t *body, json_t **ret, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    AS_AUTO(str_done) struct str path = {0};
    char seat[48], epoch[48];
    const char *const headers[] = {seat, epoch, NULL};
    struct client_opts opts = {.retry_ms = CLIENT_RETRY_FOREVER};
    if (o->brief_until_ns) {
        int64_t left_ms = (o->brief_until_ns - clock_mono_ns()) / NS_PER_MS;
        if (left_ms <= 0)
            return as_fail(err, AS_E_UNAVAILABLE, "the server did not take the result at once");
        opts = (struct client_opts){.timeout_ms = left_ms};
    }
    if (a->id.seat != ATTEMPT_NO_SEAT) {
        (void)snprintf(seat, sizeof seat, "Assay-Seat: %lld", (long long)a->id.seat);
        (void)snprintf(epoch, sizeof epoch, "Assay-World-Epoch: %lld", (long long)world);
        opts.headers = headers;
    }
    attempt_id_url(&a->id, &path);
    str_printf(&path, "/%s", q->verb);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = client_call(a->send, q->method, path.s, NULL, body, &opts, ret, NULL, err);
    (void)snprintf(o->code, sizeof o->code, "%s", client_problem_code(a->send));
    return st;
}

/* Send a request together with those of other attempts. *ret_alone: it has to be sent alone. */
static as_status call_shared(struct outbox *o, const struct outbox_request *q, int64_t world,
                             const json_t *body, json_t **ret, bool *ret_alone, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    struct sender_answer answer;
    const struct sender_part part = {.kind = q->kind,
                                     .id = &a->id,
                                     .world_epoch = world,
                                     .body = body,
                                     .until_ns = o->brief_until_ns,
                                     .owner = a->send};
    as_status st = sender_send(a->sender, &part, &answer, err);
    (void)snprintf(o->code, sizeof o->code, "%s", answer.code);
    *ret_alone = answer.alone;
    if (ret)
        *ret = answer.body;
    else
        json_decref(answer.body);
    return st;
}

static as_status call_once(struct outbox *o, const struct outbox_request *q, const json_t *body,
                           json_t **ret, int64_t *ret_world, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    bool is_alone = !q->is_shared;
    as_status st = AS_OK;
    o->code[0] = '\0';
    *ret_world = a->recovered ? a->end.world : 0; /* the world of a result found on disk */
    if (a->rank && !rank_leads(a->rank, ret_world))
        return as_fail(err, AS_E_STALE, "this rank does not lead its gang");
    if (!is_alone)
        st = call_shared(o, q, *ret_world, body, ret, &is_alone, err);
    return is_alone ? outbox_send_alone(o, q, *ret_world, body, ret, err) : st;
}

/* Has the request to be repeated, because there is a newer world and this rank leads it too? Where
 * the server says that there is one, it may come late. */
static bool repeat_in_newer_world(struct outbox *o, int64_t world)
{
    int64_t now = 0;
    struct rank *r = o->attempt->rank;
    bool exists = as_streq(o->code, "stale_world");
    return r && rank_leads(r, &now) &&
           (rank_await_world(r, world) || (exists && rank_leads(r, &now)));
}

/* A refused token is tried again, because the result is worth more
 * than the wait and an operator may restore the token. */
as_status outbox_send(struct outbox *o, const struct outbox_request *q, const json_t *body,
                      json_t **ret, struct as_err *err)
{
    struct attempt *a = o->attempt;
    as_status st;
    int64_t world = 0;
    for (int failures = 0;;) {
        st = call_once(o, q, body, ret, &world, err);
        if (st == AS_E_STALE && repeat_in_newer_world(o, world))
            continue;
        if (st == AS_E_DENIED && as_streq(o->code, "not_holder"))
            st = err->code = AS_E_STALE; /* the work folder has lost the secret of this attempt */
        if (o->brief_until_ns && (st == AS_E_DENIED || st == AS_E_INTERNAL))
            return err->code = AS_E_UNAVAILABLE; /* patience decides */
        if (st != AS_E_DENIED && (st != AS_E_INTERNAL || ++failures > INTERNAL_TRIES))
            break;
        log_write(LOG_ERROR,
                  st == AS_E_DENIED ? "the server refuses this runner's token"
                                    : "the server failed",
                  "%s error=\"%s\"", a->label, err->msg);
        if (!client_wait(a->send, st == AS_E_DENIED ? DENIED_PAUSE_MS : INTERNAL_PAUSE_MS))
            return AS_E_UNAVAILABLE;
    }
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND)
        o->gone = true;
    return st;
}

bool outbox_is_refused(as_status st)
{
    return st == AS_E_INVAL || st == AS_E_TOO_LARGE || st == AS_E_CONFLICT ||
           st == AS_E_UNSUPPORTED || st == AS_E_INTERNAL;
}

int64_t outbox_known_world(struct attempt *a)
{
    if (!a->rank)
        return 0;
    pthread_mutex_lock(&a->lock);
    int64_t epoch = a->rank->world.epoch;
    pthread_mutex_unlock(&a->lock);
    return epoch > 0 ? epoch : 1;
}
