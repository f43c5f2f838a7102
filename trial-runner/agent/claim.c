/* The claim thread: claims trials while slots are free, or about to be (ahead.c). Each trial gets a
 * delivery thread.
 *
 * A claim is one request to the server that is repeated with the same claim_id until
 * the server answers. So an answer that is lost on the way is not lost for the runner: the server
 * returns the same trials again.
 *
 * A claim asks for trials for free slots (a long poll), for one member for a group that members
 * have left (`fit`), or ahead, which is answered at once, because a slot may come free meanwhile. A
 * group comes first, because its process runs and its places are empty. While the server still
 * computes a group's next members (`pending`), it takes turns with free slots, so that a waiting
 * group does not keep them empty. Waits are short where something else can become possible
 * meanwhile. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "trial-runner/agent/agent.h"

#define CLAIM_WAIT_MS 20000
#define CLAIM_TIMEOUT_MS (CLAIM_WAIT_MS + 15000)
#define CLAIM_MAX_TRIALS 64
#define CLAIM_GROUP_MAX 96
#define BESIDE_GROUPS_WAIT_MS 500 /* short, so that free places in groups are soon asked for */
#define REFILL_WAIT_MS 100        /* short: the slot is idle if the last member ends meanwhile */
#define PAUSE_FIRST_MS 200
#define PAUSE_MOST_MS 5000
#define ROOM_PAUSE_MS 2000

/* One claim, which is repeated with the same id until it is answered. */
struct claim_request {
    char id[CLIENT_KEY_SIZE];
    int64_t epoch, max_trials, gpus, gpu_bytes;
    char group[CLAIM_GROUP_MAX]; /* an open group to fill; "": any trials for free slots */
    int wait_ms;
    int64_t members; /* places in that group, or most members of a new one */
    bool ahead;      /* for slots whose processes are about to end */
    bool open;       /* not answered yet */
    bool asked;      /* sent at least once: a lost answer may have held trials */
    bool was_vain;   /* the claim before it found nothing for a group, which waits (`pending`) */
    int64_t pause_ms;
};

/* Free slots that no attempt waits for. */
static int64_t slots_to_fill_locked(const struct agent *a)
{
    return agent_slots_free_locked(a) - ahead_waiting_locked(a);
}

static bool has_room_locked(const struct agent *a)
{
    return slots_to_fill_locked(a) > 0 || agent_group_to_fill_locked(a) ||
           ahead_wanted_locked(a) > 0;
}

/* Make the next claim: for a group with free places, else for free slots, or else ahead. After a
 * claim for a group in vain, free slots have their turn. */
static void new_claim_locked(struct agent *a, struct claim_request *q)
{
    const struct group_process *g = agent_group_to_fill_locked(a);
    int64_t free_slots = slots_to_fill_locked(a);
    bool in_turn = g && q->was_vain && free_slots > 0;
    if (in_turn)
        g = NULL;
    *q = (struct claim_request){.epoch = a->epoch, .open = true, .pause_ms = PAUSE_FIRST_MS};
    if (g) {
        (void)snprintf(q->group, sizeof q->group, "%s", g->id);
        q->members = (int64_t)(g->most_held - g->held);
        q->max_trials = 1;
        q->wait_ms = g->held ? REFILL_WAIT_MS
                             : 0; /* no member trains: a new group costs less than waiting */
    } else if (free_slots <= 0) {
        q->ahead = true;
        int64_t n = as_min_i64(ahead_wanted_locked(a), CLAIM_MAX_TRIALS);
        q->max_trials = n > 1 ? n : 1; /* some may have run too long since has_room_locked() */
        q->members = 1;
    } else {
        q->wait_ms = in_turn ? REFILL_WAIT_MS : a->n_groups ? BESIDE_GROUPS_WAIT_MS : CLAIM_WAIT_MS;
        q->members = a->options->group;
        q->max_trials = as_min_i64(free_slots, CLAIM_MAX_TRIALS);
        q->gpus = agent_gpus_free_locked(a, &q->gpu_bytes);
    }
    client_key_new(q->id);
}

/* Is it to be repeated? It may hold trials. */
static bool is_open_locked(const struct agent *a, const struct claim_request *q)
{
    return q->open && q->epoch == a->epoch;
}

/* Wait until there is something to claim. Returns false when the thread must end. */
static bool next_claim(struct agent *a, struct claim_request *q)
{
    pthread_mutex_lock(&a->lock);
    while (!a->quitting && !a->draining && a->fatal.code == AS_OK &&
           (a->epoch == 0 || a->register_needed || a->refused.code != AS_OK ||
            (!is_open_locked(a, q) && !has_room_locked(a))))
        pthread_cond_wait(&a->room, &a->lock);
    bool go = !a->quitting && !a->draining && a->fatal.code == AS_OK;
    if (go && !is_open_locked(a, q))
        new_claim_locked(a, q);
    pthread_mutex_unlock(&a->lock);
    return go;
}

/* Complete an attempt that this runner cannot hold. */
static void refuse_trial(struct agent *a, const struct claimed *c, const char *verdict,
                         const char *reason)
{
    struct as_err err = {0};
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO body = json_pack("{s:s,s:s}", "outcome", verdict, "reason", reason);
    struct client_opts opts = {.retry_ms = 30000};
    if (c->attempt < 1 || !body)
        return;
    struct attempt_id id = claimed_id(c);
    attempt_id_url(&id, &path);
    if (id.seat == ATTEMPT_NO_SEAT)
        str_puts(&path, "/complete");
    else
        str_printf(&path, "/seats/%lld/end", (long long)id.seat);
    if (path.failed ||
        client_call(a->claim_client, "POST", path.s, NULL, body, &opts, NULL, NULL, &err) < 0)
        log_write(LOG_WARN, "a trial cannot be returned to the server",
                  "trial=%s/%lld error=\"%s\"", c->sweep, (long long)c->number, err.msg);
}

static void take_trial(struct agent *a, json_t *j, hold_kind kind)
{
    AS_AUTO(claimed_done) struct claimed c = {0};
    struct as_err err = {0};
    as_status st = claimed_parse(j, &c, &err);
    if (st < 0) {
        log_write(LOG_ERROR, "a claimed trial is not valid", "error=\"%s\"", err.msg);
        refuse_trial(a, &c, "failed", err.msg);
        return;
    }
    long long number = c.number, attempt = c.attempt;
    char sweep[96];
    snprintf(sweep, sizeof sweep, "%s", c.sweep); /* agent_hold empties c */
    st = agent_hold(a, &c, kind, &err);
    if (st == AS_OK) {
        log_write(LOG_INFO, "trial claimed", "trial=%s/%lld attempt=%lld%s", sweep, number, attempt,
                  kind == HOLD_AHEAD ? " ahead=yes" : "");
    } else if (st != AS_E_CONFLICT) {
        log_write(LOG_WARN, "a trial cannot be held", "trial=%s/%lld error=\"%s\"", sweep, number,
                  err.msg);
        if (c.json)
            refuse_trial(a, &c, "released", err.msg);
    }
}

/* Returns a new reference, or NULL if memory is out. */
static json_t *claim_body(struct agent *a, const struct claim_request *q)
{
    bool fills = q->group[0] != '\0';
    json_t *body =
        json_pack("{s:I,s:s,s:I,s:I,s:i,s:I,s:I}", "epoch", (json_int_t)q->epoch, "claim_id", q->id,
                  "max_trials", (json_int_t)q->max_trials, "gpus", (json_int_t)q->gpus, "wait_ms",
                  q->wait_ms, "members", fills ? (json_int_t)1 : (json_int_t)q->members, "seats",
                  fills ? (json_int_t)0 : (json_int_t)q->max_trials);
    JSON_AUTO ending = agent_ending_refs(a, q->ahead);
    bool ok = body && ending;
    if (ok && json_array_size(ending) > 0)
        ok = json_object_set(body, "ending", ending) == 0;
    if (ok && q->ahead)
        ok = json_object_set_new(body, "ahead", json_true()) == 0;
    if (ok && fills)
        ok = json_object_set_new(
                 body, "fit",
                 json_pack("{s:s,s:I}", "group", q->group, "members", (json_int_t)q->members)) == 0;
    if (ok && !fills && q->members > 1) {
        int64_t bytes = a->options->group_memory;
        pthread_mutex_lock(&a->lock);
        json_t *measured = group_sizes_json(&a->sizes);
        pthread_mutex_unlock(&a->lock);
        ok = json_object_set_new(body, "measured", measured) == 0 &&
             (bytes == 0 ||
              json_object_set_new(body, "memory_bytes", json_integer((json_int_t)bytes)) == 0) &&
             (q->gpu_bytes == 0 ||
              json_object_set_new(body, "gpu_memory_bytes", json_integer(q->gpu_bytes)) == 0);
    }
    if (!ok) {
        json_decref(body);
        body = NULL;
    }
    return body;
}

static as_status send_claim(struct agent *a, const struct claim_request *q, json_t **ret,
                            struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    struct client_opts opts = {.timeout_ms = CLAIM_TIMEOUT_MS};
    JSON_AUTO body = claim_body(a, q);
    str_puts(&path, "/v1/runners");
    client_path_add(&path, a->options->name);
    str_puts(&path, "/claim");
    if (!body || path.failed)
        return as_fail_nomem(err);
    return client_call(a->claim_client, "POST", path.s, NULL, body, &opts, ret, NULL, err);
}

/* Nothing came for a group. Returns whether the group stays open: the server is still computing
 * (is_pending) and members train. Else the group is closed and ends with the members that it
 * has. */
static bool await_members(struct agent *a, const char *id, bool is_pending)
{
    pthread_mutex_lock(&a->lock);
    struct group_process *g = agent_group_find_locked(a, id);
    bool waits = g && !g->closed && is_pending && g->held > 0;
    if (g && !waits)
        g->closed = true;
    pthread_mutex_unlock(&a->lock);
    if (!waits)
        agent_wake(a);
    return waits;
}

/* Nothing came ahead: a slot is to be free before it is this sweep's turn, or few trials are
 * left. */
static void rest_from_ahead(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    pace_forget(&a->pace);
    pthread_mutex_unlock(&a->lock);
}

static void take_answer(struct agent *a, struct claim_request *q, const json_t *answer)
{
    const json_t *trials = json_object_get(answer, "trials");
    bool fills = q->group[0] != '\0', is_empty = json_array_size(trials) == 0;
    hold_kind kind = fills ? HOLD_IN_GROUP : q->ahead ? HOLD_AHEAD : HOLD_IN_SLOT;
    size_t i;
    json_t *j;
    q->open = false;
    json_array_foreach(trials, i, j) take_trial(a, j, kind);
    if (fills && is_empty)
        q->was_vain = await_members(a, q->group, json_is_true(json_object_get(answer, "pending")));
    if (q->ahead && is_empty)
        rest_from_ahead(a);
}

static void claim_once(struct agent *a, struct claim_request *q)
{
    struct as_err err = {0};
    JSON_AUTO answer = NULL;
    as_status st = send_claim(a, q, &answer, &err);
    if (st == AS_OK) {
        take_answer(a, q, answer);
        return;
    }
    if (client_interrupted(a->claim_client))
        return;
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND) {
        pthread_mutex_lock(&a->lock);
        a->register_needed |= a->epoch == q->epoch;
        agent_changed_locked(a);
        pthread_mutex_unlock(&a->lock);
        return;
    }
    if (st != AS_E_UNAVAILABLE) {
        log_write(LOG_ERROR, "a claim failed", "error=\"%s\"", err.msg);
        q->pause_ms = PAUSE_MOST_MS;
        if (q->ahead) { /* an older server has taken the place of the one that gave this sweep */
            q->open = false;
            rest_from_ahead(a);
            return;
        }
    }
    client_wait(a->claim_client, q->pause_ms);
    q->pause_ms = q->pause_ms * 2 < PAUSE_MOST_MS ? q->pause_ms * 2 : PAUSE_MOST_MS;
}

/* Wait until the disk has room. On a full disk the runner would take one trial after the other and
 * fail them all. */
static void wait_for_room(struct agent *a)
{
    for (bool logged = false; !result_journal_has_room(a->options->work); logged = true) {
        if (!logged)
            log_write(LOG_WARN, "the disk is full: not asking for trials", "work=%s",
                      a->options->work);
        if (!client_wait(a->claim_client, ROOM_PAUSE_MS))
            return;
    }
}

void *claim_main(void *arg)
{
    struct agent *a = arg;
    struct claim_request q = {0};
    while (next_claim(a, &q)) {
        if (!q.asked) /* a repeated claim may already hold trials, so it does not wait */
            wait_for_room(a);
        q.asked = true;
        claim_once(a, &q);
    }
    return NULL;
}
