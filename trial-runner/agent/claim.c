/* The claim thread: asks for trials while slots are free, and hands what it gets to couriers. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "trial-runner/agent/agent.h"

#define CLAIM_WAIT_MS 20000
#define CLAIM_TIMEOUT_MS (CLAIM_WAIT_MS + 15000)
#define CLAIM_MAX_TRIALS 64
#define PAUSE_FIRST_MS 200
#define PAUSE_MOST_MS 5000
#define ROOM_PAUSE_MS 2000

/* One question to the server, which is repeated unchanged until it is answered. */
struct question {
    char id[CLIENT_KEY_SIZE];
    int64_t epoch, max_trials, gpus;
    bool open;  /* made, not answered */
    bool asked; /* once at least: the answer may hold trials that were lost on the way */
    int64_t pause_ms;
};

/* Wait until there is something to ask. False: the thread ends. */
static bool next_question(struct agent *a, struct question *q)
{
    pthread_mutex_lock(&a->lock);
    while (!a->quitting && !a->draining && a->fatal.code == AS_OK &&
           (a->epoch == 0 || a->register_needed || a->n >= (size_t)a->options->slots))
        pthread_cond_wait(&a->changed, &a->lock);
    bool go = !a->quitting && !a->draining && a->fatal.code == AS_OK;
    if (go && (!q->open || q->epoch != a->epoch)) {
        int64_t free_slots = a->options->slots - (int64_t)a->n;
        q->max_trials = free_slots < CLAIM_MAX_TRIALS ? free_slots : CLAIM_MAX_TRIALS;
        q->epoch = a->epoch;
        q->gpus = 0;
        for (size_t i = 0; i < a->options->n_gpus; i++)
            q->gpus += !a->gpu_busy[i];
        client_key_new(q->id);
        q->open = true;
        q->asked = false;
        q->pause_ms = PAUSE_FIRST_MS;
    }
    pthread_mutex_unlock(&a->lock);
    return go;
}

/* End an attempt that cannot even be held. */
static void refuse(struct agent *a, const struct claimed *c, const char *verdict,
                   const char *reason)
{
    struct as_err err = {0};
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO body = json_pack("{s:s,s:s}", "outcome", verdict, "reason", reason);
    struct client_opts opts = {.retry_ms = 30000};
    if (c->attempt < 1 || !body)
        return;
    str_puts(&path, "/v1/sweeps");
    client_path_add(&path, c->sweep);
    str_printf(&path, "/trials/%lld/attempts/%lld/complete", (long long)c->number,
               (long long)c->attempt);
    if (path.failed ||
        client_call(a->claim_client, "POST", path.s, NULL, body, &opts, NULL, NULL, &err) < 0)
        log_write(LOG_WARN, "a trial could not be handed back", "trial=%s/%lld error=\"%s\"",
                  c->sweep, (long long)c->number, err.msg);
}

static void take_trial(struct agent *a, json_t *j)
{
    AS_AUTO(claimed_done) struct claimed c = {0};
    struct as_err err = {0};
    as_status st = claimed_parse(j, &c, &err);
    if (st < 0) {
        log_write(LOG_ERROR, "a claim breaks the contract", "error=\"%s\"", err.msg);
        refuse(a, &c, "failed", err.msg);
        return;
    }
    long long number = c.number, attempt = c.attempt;
    char sweep[96];
    snprintf(sweep, sizeof sweep, "%s", c.sweep); /* c is emptied when it is held */
    st = agent_hold(a, &c, &err);
    if (st == AS_OK) {
        log_write(LOG_INFO, "trial claimed", "trial=%s/%lld attempt=%lld", sweep, number, attempt);
    } else if (st != AS_E_CONFLICT) {
        log_write(LOG_WARN, "a trial cannot be held", "trial=%s/%lld error=\"%s\"", sweep, number,
                  err.msg);
        if (c.json)
            refuse(a, &c, "released", err.msg);
    }
}

static as_status ask(struct agent *a, const struct question *q, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    struct client_opts opts = {.timeout_ms = CLAIM_TIMEOUT_MS};
    JSON_AUTO body = json_pack("{s:I,s:s,s:I,s:I,s:i}", "epoch", (json_int_t)q->epoch, "claim_id",
                               q->id, "max_trials", (json_int_t)q->max_trials, "gpus",
                               (json_int_t)q->gpus, "wait_ms", CLAIM_WAIT_MS);
    str_puts(&path, "/v1/runners");
    client_path_add(&path, a->options->name);
    str_puts(&path, "/claim");
    if (!body || path.failed)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return client_call(a->claim_client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
}

static void ask_once(struct agent *a, struct question *q)
{
    struct as_err err = {0};
    JSON_AUTO answer = NULL;
    size_t i;
    json_t *j;
    as_status st = ask(a, q, &answer, &err);
    if (st == AS_OK) {
        q->open = false;
        json_array_foreach(json_object_get(answer, "trials"), i, j) take_trial(a, j);
        return;
    }
    if (client_interrupted(a->claim_client))
        return;
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND) {
        pthread_mutex_lock(&a->lock);
        a->register_needed |= a->epoch == q->epoch;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
        return;
    }
    if (st != AS_E_UNAVAILABLE) {
        log_write(LOG_ERROR, "a claim failed", "error=\"%s\"", err.msg);
        q->pause_ms = PAUSE_MOST_MS;
    }
    client_wait(a->claim_client, q->pause_ms);
    q->pause_ms = q->pause_ms * 2 < PAUSE_MOST_MS ? q->pause_ms * 2 : PAUSE_MOST_MS;
}

/* Wait for room on the disk: a machine without it would take one trial after the other and fail
 * them all. */
static void wait_for_room(struct agent *a)
{
    for (bool told = false; !spool_has_room(a->options->work); told = true) {
        if (!told)
            log_write(LOG_WARN, "the disk is full: not asking for trials", "work=%s",
                      a->options->work);
        if (!client_wait(a->claim_client, ROOM_PAUSE_MS))
            return;
    }
}

void *claim_main(void *arg)
{
    struct agent *a = arg;
    struct question q = {0};
    while (next_question(a, &q)) {
        if (!q.asked)
            wait_for_room(a);
        q.asked = true;
        ask_once(a, &q);
    }
    return NULL;
}
