/* The heartbeat thread: registers the runner, extends the leases of its attempts, and passes on the
 * directives in the answers. With each attempt it says once that its process is prepared or has
 * begun, and again and again that it has ended, until the result is delivered: the server must not
 * count the time of an outage, or of a long delivery, as time of the trial.
 *
 * A runner that the server does not know any more (stale epoch) registers again with a list of what
 * it holds, and the answer says what to drop. A runner that cannot reach the server keeps its
 * trials and goes on trying: a result that arrives late still counts if the attempt is current
 * (decision 7001).
 *
 * A token that was refused for longer than a lease was revoked: the server has counted all trials
 * as lost, so the runner stops them and leaves. Until then heartbeats alone ask whether it is valid
 * again, so that a runner is not what uses up the bad tokens that its address may send.
 *
 * Heartbeats have 10 % jitter, so that the runners of a cluster that start together do not send
 * them together. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/agent/agent.h"

#define REGISTER_PAUSE_MS 1000
#define REGISTER_PAUSE_MOST_MS 10000
#define LEAVE_RETRY_MS 5000

static as_status runner_path(const struct agent *a, const char *verb, struct str *path,
                             struct as_err *err)
{
    str_puts(path, "/v1/runners");
    if (verb) {
        client_path_add(path, a->options->name);
        str_putc(path, '/');
        str_puts(path, verb);
    }
    return str_check(path, err);
}

/* What trials may use of the machine. False: memory is out. */
static bool add_machine(json_t *body, const struct options *o)
{
    const struct machine *m = &o->machine;
    int bad = json_object_set_new(body, "cpus", json_integer((json_int_t)m->cpus));
    if (m->memory_bytes > 0)
        bad |= json_object_set_new(body, "memory_bytes", json_integer((json_int_t)m->memory_bytes));
    if (m->id[0])
        bad |= json_object_set_new(body, "machine", json_string(m->id)) |
               json_object_set_new(body, "shares_machine", json_boolean(o->shares_machine));
    return bad == 0;
}

/* The job and the fleet that the runner belongs to. False: memory is out. */
static bool add_job(json_t *body, const struct options *o)
{
    int bad = 0;
    if (o->job)
        bad |= json_object_set_new(body, "job", json_string(o->job));
    if (o->fleet)
        bad |= json_object_set_new(body, "fleet", json_string(o->fleet));
    return bad == 0;
}

/* What stands around its trials. False: memory is out. */
static bool add_walls(json_t *body, const struct options *o)
{
    AS_AUTO(str_done) struct str words = {0};
    json_t *list = json_array();
    confinement_words(o->confinement, &words);
    int bad = list == NULL || words.failed;
    for (char *rest = words.s, *word; !bad && (word = strsep(&rest, " "));)
        bad |= json_array_append_new(list, json_string(word));
    bad |= json_object_set_new(body, "walls", list);
    return bad == 0;
}

static json_t *registration_body(struct agent *a)
{
    char host[HOST_NAME_MAX + 1] = "";
    const struct options *o = a->options;
    agent_say_again(a); /* this may be another server, over another database */
    json_t *gpus = json_array(), *resume = agent_refs(a), *faults = agent_faults_json(a);
    bool ok = gpus && resume && faults;
    gethostname(host, sizeof host - 1);
    for (size_t i = 0; ok && i < o->gpus.n; i++)
        ok = json_array_append_new(gpus, json_string(o->gpus.v[i].id)) == 0;
    json_t *body = ok ? json_pack("{s:s,s:I,s:O,s:O,s:s,s:s,s:O}", "name", o->name, "slots",
                                  (json_int_t)o->slots, "gpus", gpus, "gpu_faults", faults, "host",
                                  as_utf8_valid(host, strlen(host)) ? host : "", "version",
                                  ASSAY_VERSION, "resume", resume)
                      : NULL;
    json_decref(gpus);
    json_decref(faults);
    json_decref(resume);
    if (body && !(add_machine(body, o) && add_job(body, o) && add_walls(body, o))) {
        json_decref(body);
        body = NULL;
    }
    return body;
}

static unsigned faults_of(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    unsigned n = a->faults;
    pthread_mutex_unlock(&a->lock);
    return n;
}

static as_status register_once(struct agent *a, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    unsigned faults = faults_of(a); /* read before the body, so that a later one is sent again */
    JSON_AUTO body = registration_body(a);
    JSON_AUTO answer = NULL;
    struct json_fields f;
    /* Leases count from `sent`, not from the answer, so that they never seem too long. */
    int64_t epoch = 0, lease_ms = 60000, heartbeat_ms = 10000, sent = clock_mono_ns();
    as_status st = runner_path(a, NULL, &path, err);
    if (st < 0)
        return st;
    if (!body)
        return as_fail_nomem(err);
    st = client_call(a->beat_client, "POST", path.s, NULL, body, NULL, &answer, NULL, err);
    if (st < 0 || (st = json_fields_init(&f, answer, "", err)) < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT64_MAX, &epoch, err)) < 0 ||
        (st = json_fields_i64(&f, "lease_ms", JSON_REQUIRED, 1, INT32_MAX, &lease_ms, err)) < 0 ||
        (st = json_fields_i64(&f, "heartbeat_ms", JSON_REQUIRED, 1, INT32_MAX, &heartbeat_ms,
                              err)) < 0)
        return st;
    pthread_mutex_lock(&a->lock);
    a->epoch = epoch;
    a->lease_ms = lease_ms;
    a->heartbeat_ms = heartbeat_ms;
    a->acknowledged_ns = sent;
    a->faults_sent = faults;
    a->register_needed = false;
    agent_changed_locked(a);
    pthread_mutex_unlock(&a->lock);
    log_write(LOG_INFO, "registered", "runner=%s epoch=%lld server=%s", a->options->name,
              (long long)epoch, a->options->server);
    agent_refs_heard(a, json_object_get(body, "resume"));
    agent_direct(a, json_object_get(answer, "directives"));
    return AS_OK;
}

/* Note what the answer st to a request of the time `sent` says of the token. Any failure after a
 * refusal counts: an address that sends too many bad tokens is not heard for a while. */
static void note_token(struct agent *a, as_status st, const struct as_err *why, int64_t sent)
{
    pthread_mutex_lock(&a->lock);
    if (st == AS_OK)
        a->refused = (struct as_err){0};
    else if (st == AS_E_DENIED)
        a->refused = *why;
    bool leaves = a->refused.code != AS_OK && a->epoch != 0 &&
                  sent - a->acknowledged_ns > a->lease_ms * NS_PER_MS;
    agent_changed_locked(a);
    pthread_mutex_unlock(&a->lock);
    if (leaves)
        agent_tell_to_leave(a);
}

/* Try to register, with a growing pause after a failure. A refusal of the first registration is
 * final, unless the name is taken: a runner whose folder was lost waits for the end of its own
 * lease. Later ones are repeated, because running trials are worth more than the wait. */
static void register_patiently(struct agent *a, bool first, int64_t *pause_ms)
{
    struct as_err err = {0};
    int64_t sent = clock_mono_ns();
    as_status st = register_once(a, &err);
    note_token(a, st, &err, sent);
    if (st == AS_OK || client_interrupted(a->beat_client)) {
        *pause_ms = REGISTER_PAUSE_MS;
        return;
    }
    if (first && st != AS_E_UNAVAILABLE && st != AS_E_CONFLICT && st != AS_E_NOMEM &&
        st != AS_E_INTERNAL) {
        agent_fail(a, &err);
        return;
    }
    log_write(LOG_WARN, "cannot register, trying again", "server=%s error=\"%s\"",
              a->options->server, err.msg);
    pthread_mutex_lock(&a->lock);
    if (!a->quitting)
        agent_wait_locked(a, *pause_ms);
    pthread_mutex_unlock(&a->lock);
    *pause_ms = *pause_ms * 2 < REGISTER_PAUSE_MOST_MS ? *pause_ms * 2 : REGISTER_PAUSE_MOST_MS;
}

/* With the GPUs that are set aside, if the server does not know all of them. */
static json_t *heartbeat_body(struct agent *a, int64_t epoch, unsigned faults)
{
    JSON_AUTO refs = agent_refs(a);
    if (!refs)
        return NULL;
    if (faults == a->faults_sent) /* only this thread changes it */
        return json_pack("{s:I,s:O}", "epoch", (json_int_t)epoch, "attempts", refs);
    return json_pack("{s:I,s:O,s:o}", "epoch", (json_int_t)epoch, "attempts", refs, "gpu_faults",
                     agent_faults_json(a));
}

static void send_heartbeat(struct agent *a, int64_t epoch, bool *lost)
{
    AS_AUTO(str_done) struct str path = {0};
    struct as_err err = {0};
    JSON_AUTO answer = NULL;
    unsigned faults = faults_of(a);
    JSON_AUTO body = heartbeat_body(a, epoch, faults);
    int64_t sent = clock_mono_ns();
    as_status st = runner_path(a, "heartbeat", &path, &err);
    if (st == AS_OK)
        st = body ? client_call(a->beat_client, "POST", path.s, NULL, body, NULL, &answer, NULL,
                                &err)
                  : as_fail_nomem(&err);
    pthread_mutex_lock(&a->lock);
    if (st == AS_OK) {
        a->acknowledged_ns = sent;
        a->faults_sent = faults;
    }
    bool past_lease = sent - a->acknowledged_ns > a->lease_ms * NS_PER_MS;
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND)
        a->register_needed = true;
    pthread_mutex_unlock(&a->lock);
    note_token(a, st, &err, sent);
    if (st == AS_OK) {
        agent_refs_heard(a, json_object_get(body, "attempts"));
        if (*lost)
            log_write(LOG_INFO, "the server answers again", "server=%s", a->options->server);
        *lost = false;
        agent_direct(a, json_object_get(answer, "directives"));
        if (json_is_true(json_object_get(answer, "drain")))
            agent_tell_to_leave(a);
    } else if (st != AS_E_STALE && st != AS_E_NOT_FOUND && !client_interrupted(a->beat_client)) {
        if (!*lost || st != AS_E_UNAVAILABLE)
            log_write(LOG_WARN, "a heartbeat failed", "past_lease=%s error=\"%s\"",
                      past_lease ? "yes" : "no", err.msg);
        *lost = true;
    }
}

/* Wait until the next heartbeat is due. After a failed one it is due sooner, unless the token was
 * refused. Locked. */
static void pause_locked(struct agent *a, bool lost)
{
    uint32_t r;
    random_bytes(&r, sizeof r);
    int64_t ms = a->heartbeat_ms * (int64_t)(90 + r % 21) / 100;
    if (lost && a->refused.code == AS_OK && ms > REGISTER_PAUSE_MS)
        ms = REGISTER_PAUSE_MS;
    int64_t end = clock_mono_ns() + ms * NS_PER_MS;
    while (!a->quitting && !a->register_needed && a->fatal.code == AS_OK &&
           (lost || a->faults == a->faults_sent)) {
        int64_t left = (end - clock_mono_ns()) / NS_PER_MS;
        if (left <= 0 || !agent_wait_locked(a, left))
            break;
    }
}

void *heartbeat_main(void *arg)
{
    struct agent *a = arg;
    bool lost = false;
    int64_t pause_ms = REGISTER_PAUSE_MS;
    for (;;) {
        pthread_mutex_lock(&a->lock);
        if (a->epoch && !a->register_needed)
            pause_locked(a, lost);
        bool end = a->quitting || a->fatal.code != AS_OK;
        int64_t epoch = a->epoch;
        bool to_register = epoch == 0 || a->register_needed;
        pthread_mutex_unlock(&a->lock);
        if (end)
            return NULL;
        if (to_register)
            register_patiently(a, epoch == 0, &pause_ms);
        else
            send_heartbeat(a, epoch, &lost);
    }
}

void heartbeat_leave(struct agent *a)
{
    AS_AUTO(str_done) struct str path = {0};
    struct as_err err = {0};
    struct client_opts opts = {.timeout_ms = LEAVE_RETRY_MS, .retry_ms = LEAVE_RETRY_MS};
    if (a->epoch == 0)
        return;
    JSON_AUTO body = json_pack("{s:I}", "epoch", (json_int_t)a->epoch);
    as_status st = runner_path(a, "leave", &path, &err);
    if (st == AS_OK && body)
        st = client_call(a->beat_client, "POST", path.s, NULL, body, &opts, NULL, NULL, &err);
    if (st < 0)
        log_write(LOG_WARN, "cannot send leave", "error=\"%s\"", err.msg);
}
