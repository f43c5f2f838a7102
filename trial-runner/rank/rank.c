/* What a rank tells the server and hears from it.
 *
 * Two threads, because a long poll must not delay what has to be told: between the death of a rank
 * and the new world at the survivors nothing waits but the network. The talker repeats what the
 * server could not take, the newest matter first: when the process has ended, nothing else counts.
 *
 * The failure of a rank of a fixed gang waits ECHO_MS: when one is killed, the others lose their
 * connections and fail too, and a failure that is heard first would end the trial (decision 7002).
 *
 * An accusation waits ACCUSE_MS: the runner of a rank that died tells the server its end at once,
 * and only who has lost a whole machine needs to accuse. */
#include "trial-runner/rank/rank.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/attempt/attempt.h"
#include "trial-runner/attempt/identity.h"
#include "trial-runner/rank/rank_env.h"
#include "trial-runner/rank/rendezvous.h"

#define WORLD_WAIT_MS 20000
#define WORLD_TIMEOUT_MS (WORLD_WAIT_MS + 15000)
#define TALK_TIMEOUT_MS 10000
#define PAUSE_FIRST_MS 100
#define PAUSE_MOST_MS 2000
#define STALE_WAIT_MS 3000
#define ECHO_MS 1000
#define HOSTFILE_NAME "hostfile"

static void lock(struct rank *r)
{
    (void)pthread_mutex_lock(&r->attempt->lock);
}

static void unlock(struct rank *r)
{
    (void)pthread_mutex_unlock(&r->attempt->lock);
}

/* Wait for `changed`, at most until then. Locked. */
static void wait_until_locked(struct rank *r, int64_t until_ns)
{
    (void)clock_cond_wait(&r->attempt->changed, &r->attempt->lock, until_ns);
}

static void rank_interrupt(struct rank *r)
{
    client_interrupt(r->talk);
    client_interrupt(r->watch);
}

static void rank_free(struct rank *r)
{
    if (r->has_talker || r->has_watcher) {
        rank_interrupt(r);
        lock(r);
        r->quitting = true;
        (void)pthread_cond_broadcast(&r->attempt->changed);
        unlock(r);
    }
    if (r->has_talker)
        (void)pthread_join(r->talker, NULL);
    if (r->has_watcher)
        (void)pthread_join(r->watcher, NULL);
    if (r->fd >= 0)
        (void)close(r->fd);
    client_free(r->talk);
    client_free(r->watch);
    rendezvous_free(r->rendezvous);
    rank_world_done(&r->world);
    json_decref(r->accusation.seats);
    control_lines_done(&r->in);
    str_done(&r->out);
    free(r->gpus);
    free(r);
}

/* ---- what happens ---- */

static void step_locked(struct rank *r, rank_happens happens)
{
    rank_state before = r->state;
    unsigned actions = rank_step(&r->state, happens);
    r->to_tell |= actions & (RANK_TELL | RANK_LEAVE);
    r->to_do |= actions & (RANK_MEET | RANK_FINISH);
    if (actions & (RANK_DROP | RANK_QUIT))
        attempt_ask_stop_locked(r->attempt, actions & RANK_DROP ? STOP_DROPPED : STOP_DRAIN);
    if (before == RANK_LEAVING && happens == RANK_NOT_IN)
        r->left_ns = clock_mono_ns();
    if (r->state != before)
        log_write(LOG_DEBUG, "a rank", "%s state=%s epoch=%lld", r->attempt->label,
                  rank_state_word(r->state), (long long)r->world.epoch);
    attempt_wake_locked(r->attempt);
}

void rank_notice(struct rank *r, rank_happens happens)
{
    lock(r);
    step_locked(r, happens);
    unlock(r);
}

/* An answer with a world. An old one, or one that says nothing new, changes nothing.
 * Takes the answer. Its only reference goes with the world, under the lock: another thread may drop
 * the world as soon as it is there. */
static void take_world(struct rank *r, json_t *answer)
{
    struct rank_world w = {0}, before;
    struct as_err err = {0};
    as_status st = rank_world_parse(answer, &w, &err);
    json_decref(answer);
    if (st < 0) {
        log_write(LOG_ERROR, "a world is not valid", "%s error=\"%s\"", r->attempt->label, err.msg);
        return;
    }
    lock(r);
    bool news = w.epoch > r->world.epoch ||
                (w.epoch == r->world.epoch && (w.state != r->world.state || !r->world.json));
    if (news && r->world.state != GANG_OVER) {
        before = r->world;
        r->world = w;
        w = before;
        step_locked(r, rank_meaning(&r->world, r->attempt->id.seat));
    }
    unlock(r);
    rank_world_done(&w);
}

/* Its attempt has ended (attempt->end): decide how the server hears of it. Whoever sets `end` wakes
 * the talker. */
static void rank_ended_locked(struct rank *r)
{
    const struct attempt *t = r->attempt;
    const struct trial_end *end = &t->end;
    int64_t rank = rank_world_rank(&r->world, t->id.seat);
    r->way = t->asked == STOP_DROPPED && end->outcome != OUTCOME_COMPLETED
                 ? RANK_WAY_NOTHING
                 : rank_way_of(r->gang.elastic, rank, r->world.n, r->state, end->outcome,
                               end->has_exit_code && end->exit_code < 0);
    if (end->outcome == OUTCOME_FAILED && !r->gang.elastic && r->world.n > 1)
        r->echo_ns = clock_mono_ns() + ECHO_MS * NS_PER_MS;
    r->ended = true;
    r->end_told = r->way != RANK_WAY_END;
    (void)rank_step(&r->state, RANK_ENDS);
}

/* The time of a step is told once, with the end of the attempt. */
static bool rank_add_progress_locked(const struct rank *r, bool is_last, json_t *ref)
{
    if (r->step == 0 && r->sent_bytes == 0)
        return true;
    if (is_last && r->step_ns > 0 &&
        json_object_set_new(ref, "step_seconds", json_real((double)r->step_ns / NS_PER_S)) != 0)
        return false;
    return json_object_set_new(ref, "step", json_integer((json_int_t)r->step)) == 0 &&
           json_object_set_new(ref, "sent_bytes", json_integer((json_int_t)r->sent_bytes)) == 0;
}

as_status rank_create(struct attempt *t, struct as_err *err)
{
    static const struct attempt_rank_fns fns = {.free = rank_free,
                                                .interrupt = rank_interrupt,
                                                .ended_locked = rank_ended_locked,
                                                .add_progress_locked = rank_add_progress_locked};
    struct rank *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    r->attempt = t;
    r->gang = t->claimed.gang;
    r->fd = -1;
    as_status st = identity_client(t->options, &r->talk, err);
    if (st == AS_OK)
        st = identity_client(t->options, &r->watch, err);
    if (st < 0) {
        rank_free(r);
        return st;
    }
    t->rank = r;
    t->rank_fns = &fns;
    return AS_OK;
}

/* ---- the talker ---- */

typedef enum matter {
    MATTER_NONE,
    MATTER_END,
    MATTER_LEAVE,
    MATTER_TELL,
    MATTER_ACCUSE,
    MATTER_JOINED
} matter;

/* One thing to tell: a request. */
struct message {
    matter what;
    const char *method;
    struct str path;
    json_t *body;  /* owned */
    int64_t epoch; /* that it is about */
};

static void message_done(struct message *m)
{
    str_done(&m->path);
    json_decref(m->body);
}

/* *ret_until_ns: when something may be due although nothing changes. */
static matter next_matter_locked(struct rank *r, int64_t *ret_until_ns)
{
    int64_t now = clock_mono_ns();
    if (r->ended && !r->end_told && r->echo_ns > now) {
        *ret_until_ns = r->echo_ns;
        return MATTER_NONE;
    }
    if (r->ended)
        return r->end_told ? MATTER_NONE : MATTER_END;
    if (r->state == RANK_OUT)
        return MATTER_NONE;
    if (r->to_tell & RANK_LEAVE)
        return MATTER_LEAVE;
    if (r->to_tell & RANK_TELL)
        return MATTER_TELL;
    if (r->accusation.epoch == r->world.epoch && r->accusation.epoch > 0) {
        if (r->accusation.due_ns <= now)
            return MATTER_ACCUSE;
        *ret_until_ns = r->accusation.due_ns;
    }
    return r->joined_epoch == r->world.epoch && r->joined_epoch > 0 ? MATTER_JOINED : MATTER_NONE;
}

static json_t *end_body_locked(const struct rank *r)
{
    const struct trial_end *end = &r->attempt->end;
    json_t *j =
        json_pack("{s:s,s:s*}", "outcome", outcome_name(end->outcome), "reason", end->reason);
    bool ok = j != NULL;
    if (ok && end->has_exit_code)
        ok = json_object_set_new(j, end->exit_code < 0 ? "signal" : "exit_code",
                                 json_integer(llabs(end->exit_code))) == 0;
    if (ok && end->has_ran)
        ok = json_object_set_new(j, "ran_ms", json_integer(end->ran_ms)) == 0;
    ok = ok && rank_add_progress_locked(r, false, j);
    if (ok && r->last_joined > 0)
        ok = json_object_set_new(j, "epoch", json_integer((json_int_t)r->last_joined)) == 0;
    if (ok)
        return j;
    json_decref(j);
    return NULL;
}

/* A request for the next world: without these. */
static json_t *change_body_locked(const struct rank *r, const json_t *lost, bool leave)
{
    json_int_t seat = (json_int_t)r->attempt->id.seat;
    json_t *left = leave ? json_pack("[I]", seat) : json_array();
    return json_pack("{s:I,s:I,s:o,s:o,s:I}", "epoch", (json_int_t)r->world.epoch, "seat", seat,
                     "lost", lost ? json_deep_copy(lost) : json_array(), "left", left, "step",
                     (json_int_t)r->step);
}

static void write_message_locked(struct rank *r, matter what, struct message *m)
{
    const struct attempt_id *id = &r->attempt->id;
    *m = (struct message){.what = what, .method = "POST", .epoch = r->world.epoch};
    attempt_id_url(id, &m->path);
    switch (what) {
    case MATTER_END:
        m->body = end_body_locked(r);
        str_printf(&m->path, "/seats/%lld/end", (long long)id->seat);
        break;
    case MATTER_TELL:
        m->method = "PUT";
        m->body = json_pack("{s:s,s:s,s:I}", "endpoint", r->endpoint, "address", r->address, "port",
                            (json_int_t)r->port);
        str_printf(&m->path, "/seats/%lld", (long long)id->seat);
        break;
    case MATTER_JOINED:
        m->body = json_pack("{s:I,s:I}", "epoch", (json_int_t)r->joined_epoch, "step",
                            (json_int_t)r->joined_step);
        str_printf(&m->path, "/seats/%lld/joined", (long long)id->seat);
        break;
    case MATTER_LEAVE:
    case MATTER_ACCUSE:
        m->body = change_body_locked(r, what == MATTER_ACCUSE ? r->accusation.seats : NULL,
                                     what == MATTER_LEAVE);
        str_puts(&m->path, "/world");
        break;
    case MATTER_NONE:
        break;
    }
}

/* The server has taken it, or never will: it is told. */
static void settle(struct rank *r, const struct message *m)
{
    lock(r);
    switch (m->what) {
    case MATTER_END:
        r->end_told = true;
        break;
    case MATTER_TELL:
        r->told = true;
        r->to_tell &= ~(unsigned)RANK_TELL;
        break;
    case MATTER_LEAVE: /* a world that came meanwhile asks again */
        if (m->epoch == r->world.epoch || r->state != RANK_LEAVING)
            r->to_tell &= ~(unsigned)RANK_LEAVE;
        break;
    case MATTER_ACCUSE:
        if (r->accusation.epoch <= m->epoch)
            r->accusation.epoch = 0;
        break;
    case MATTER_JOINED:
        if (r->joined_epoch <= m->epoch)
            r->joined_epoch = 0;
        break;
    case MATTER_NONE:
        break;
    }
    attempt_wake_locked(r->attempt);
    unlock(r);
}

/* Should the request be repeated as it is? */
static bool is_passing(as_status st)
{
    return st == AS_E_UNAVAILABLE || st == AS_E_DENIED || st == AS_E_NOMEM || st == AS_E_INTERNAL;
}

/* Send it once. Returns whether it has to be sent again. */
static bool send_message(struct rank *r, const struct message *m)
{
    static const struct client_opts once = {.timeout_ms = TALK_TIMEOUT_MS};
    static const char *const names[] = {"", "end", "leave", "listen", "lost", "joined"};
    JSON_AUTO answer = NULL;
    struct as_err err = {0};
    as_status st = m->body && !m->path.failed ? client_call(r->talk, m->method, m->path.s, NULL,
                                                            m->body, &once, &answer, NULL, &err)
                                              : as_fail_nomem(&err);
    bool not_ours = st == AS_E_DENIED && as_streq(client_problem_code(r->talk), "not_holder");
    if (is_passing(st) && !not_ours) {
        if (st != AS_E_UNAVAILABLE)
            log_write(LOG_ERROR, "the server failed", "%s what=%s error=\"%s\"", r->attempt->label,
                      names[m->what], err.msg);
        return true;
    }
    log_write(LOG_DEBUG, "told the server about a rank", "%s what=%s epoch=%lld error=\"%s\"",
              r->attempt->label, names[m->what], (long long)m->epoch, st < 0 ? err.msg : "");
    if (st == AS_OK &&
        (m->what == MATTER_TELL || m->what == MATTER_LEAVE || m->what == MATTER_ACCUSE))
        take_world(r, as_steal(answer));
    if (st < 0 && m->what == MATTER_TELL) { /* the seat is not ours any more */
        log_write(LOG_WARN, "the server refuses a rank", "%s error=\"%s\"", r->attempt->label,
                  err.msg);
        rank_notice(r, RANK_IS_OVER);
    }
    settle(r, m);
    return false;
}

static void *talker_main(void *arg)
{
    struct rank *r = arg;
    int64_t pause_ms = 0;
    for (;;) {
        struct message m = {0};
        int64_t until_ns = clock_mono_ns() + WORLD_WAIT_MS * NS_PER_MS;
        lock(r);
        matter what = r->quitting ? MATTER_NONE : next_matter_locked(r, &until_ns);
        if (what == MATTER_NONE && !r->quitting)
            wait_until_locked(r, until_ns);
        else if (what != MATTER_NONE)
            write_message_locked(r, what, &m);
        bool end = r->quitting || client_interrupted(r->talk);
        unlock(r);
        if (end) {
            message_done(&m);
            return NULL;
        }
        bool again = what != MATTER_NONE && send_message(r, &m);
        message_done(&m);
        pause_ms = !again ? 0 : pause_ms ? pause_ms * 2 : PAUSE_FIRST_MS;
        if (pause_ms > PAUSE_MOST_MS)
            pause_ms = PAUSE_MOST_MS;
        if (again)
            (void)client_wait(r->talk, pause_ms);
    }
}

/* ---- the watcher ---- */

/* Wait until there is a world to wait for. Returns false when the thread has to end. */
static bool next_epoch(struct rank *r, int64_t *ret_after)
{
    lock(r);
    while (!r->told && !r->quitting)
        wait_until_locked(r, clock_mono_ns() + WORLD_WAIT_MS * NS_PER_MS);
    bool go = !r->quitting && r->state != RANK_OUT && r->world.state != GANG_OVER;
    *ret_after = r->world.epoch;
    unlock(r);
    return go && !client_interrupted(r->watch);
}

static void *watcher_main(void *arg)
{
    static const struct client_opts once = {.timeout_ms = WORLD_TIMEOUT_MS};
    struct rank *r = arg;
    AS_AUTO(str_done) struct str path = {0};
    int64_t after = 0, pause_ms = PAUSE_FIRST_MS;
    attempt_id_url(&r->attempt->id, &path);
    str_puts(&path, "/world");
    while (!path.failed && next_epoch(r, &after)) {
        JSON_AUTO answer = NULL;
        AS_AUTO(str_done) struct str query = {0};
        struct as_err err = {0};
        client_query_add_i64(&query, "after", after);
        client_query_add_i64(&query, "wait_ms", WORLD_WAIT_MS);
        as_status st = query.failed ? AS_E_NOMEM
                                    : client_call(r->watch, "GET", path.s, query.s, NULL, &once,
                                                  &answer, NULL, &err);
        if (st == AS_OK) {
            take_world(r, as_steal(answer));
            pause_ms = PAUSE_FIRST_MS;
            continue;
        }
        bool gone = st == AS_E_NOT_FOUND || st == AS_E_STALE ||
                    (st == AS_E_DENIED && as_streq(client_problem_code(r->watch), "not_holder"));
        if (gone)
            rank_notice(r, RANK_IS_OVER);
        else if (!client_wait(r->watch, pause_ms))
            break;
        pause_ms = pause_ms * 2 < PAUSE_MOST_MS ? pause_ms * 2 : PAUSE_MOST_MS;
    }
    return NULL;
}

as_status rank_start(struct rank *r, struct as_err *err)
{
    r->has_talker = pthread_create(&r->talker, NULL, talker_main, r) == 0;
    r->has_watcher = r->has_talker && pthread_create(&r->watcher, NULL, watcher_main, r) == 0;
    return r->has_watcher ? AS_OK : as_fail(err, AS_E_NOMEM, "no threads for a rank");
}

/* ---- for the delivery thread ---- */

as_status rank_own_address(const struct rank *r, char ret[RANK_ADDRESS_MAX], struct as_err *err)
{
    const struct options *o = r->attempt->options;
    if (!o->rank_address)
        return rank_address_find(o->server, ret, err);
    (void)snprintf(ret, RANK_ADDRESS_MAX, "%s", o->rank_address);
    return AS_OK;
}

/* Tell the server where a rank of a fixed gang will listen. The endpoint is for people, and says
 * where the rendezvous would be, because nobody knows yet who will be rank 0. A launcher brings its
 * own. */
static as_status announce(struct rank *r, struct as_err *err)
{
    char address[RANK_ADDRESS_MAX], meet[40] = "";
    int64_t port = 0, meet_port = 0;
    as_status st = rank_own_address(r, address, err);
    if (st < 0 || (st = rank_address_free_port(address, &port, err)) < 0)
        return st;
    if (!r->gang.first) {
        if ((st = rendezvous_open(address, &r->rendezvous, &meet_port, err)) < 0)
            return st;
        (void)snprintf(meet, sizeof meet, " " RANK_ENV_MEET "%lld", (long long)meet_port);
    }
    bool six = strchr(address, ':') != NULL;
    lock(r);
    (void)snprintf(r->address, sizeof r->address, "%s", address);
    (void)snprintf(r->endpoint, sizeof r->endpoint, "%s%s%s:%lld%s", six ? "[" : "", address,
                   six ? "]" : "", (long long)port, meet);
    r->port = port;
    step_locked(r, RANK_LISTENS);
    unlock(r);
    return AS_OK;
}

/* What the process sees of the world. */
static as_status describe_world_locked(struct rank *r, const char *path, struct str *hostfile,
                                       struct as_err *err)
{
    struct attempt *t = r->attempt;
    r->held = r->gang.first && rank_world_rank(&r->world, t->id.seat) != 0;
    rank_env_hostfile(&r->world, hostfile);
    as_status st = str_check(hostfile, err);
    return st < 0 ? st
                  : rank_env_set(&t->launch.spec.env, &r->world, &t->id, path, r->gang.first, err);
}

as_status rank_gather(struct rank *r, struct as_err *err)
{
    struct attempt *t = r->attempt;
    AS_AUTO(str_done) struct str hostfile = {0};
    AS_AUTO(as_freep) char *path = file_join(t->dir, HOSTFILE_NAME);
    if (!path)
        return as_fail_nomem(err);
    as_status st = announce(r, err);
    if (st < 0)
        return st;
    lock(r);
    while (t->asked == STOP_NONE && r->state == RANK_ANNOUNCED)
        wait_until_locked(r, clock_mono_ns() + WORLD_WAIT_MS * NS_PER_MS);
    bool begins = t->asked == STOP_NONE && (r->state == RANK_MEMBER || r->state == RANK_ALONE);
    st = begins ? describe_world_locked(r, path, &hostfile, err)
                : as_fail(err, AS_E_UNAVAILABLE, "the gang did not begin");
    bool leads = st == AS_OK && rank_world_rank(&r->world, t->id.seat) == 0;
    unlock(r);
    if (leads && r->rendezvous) {
        st = rendezvous_serve(r->rendezvous, err);
    } else {
        rendezvous_free(r->rendezvous);
        r->rendezvous = NULL;
    }
    return st < 0 ? st : file_replace(path, hostfile.s, hostfile.len, 0600, err);
}

static bool leads_locked(const struct rank *r)
{
    return r->state != RANK_OUT && r->world.state != GANG_OVER && r->world.epoch > 0 &&
           rank_world_rank(&r->world, r->attempt->id.seat) == 0;
}

bool rank_leads(struct rank *r, int64_t *ret_epoch)
{
    lock(r);
    bool leads = leads_locked(r);
    *ret_epoch = r->world.epoch;
    unlock(r);
    return leads;
}

bool rank_await_world(struct rank *r, int64_t epoch)
{
    int64_t end_ns = clock_mono_ns() + STALE_WAIT_MS * NS_PER_MS;
    lock(r);
    while (r->world.epoch <= epoch && leads_locked(r) && clock_mono_ns() < end_ns &&
           !client_interrupted(r->talk))
        wait_until_locked(r, end_ns);
    bool leads = leads_locked(r) && r->world.epoch > epoch;
    unlock(r);
    return leads;
}

void rank_await_echo(struct rank *r)
{
    lock(r);
    while (clock_mono_ns() < r->echo_ns && r->attempt->asked != STOP_DROPPED &&
           r->state != RANK_OUT && !client_interrupted(r->talk))
        wait_until_locked(r, r->echo_ns);
    unlock(r);
}

bool rank_await_end(struct rank *r)
{
    lock(r);
    while (!r->end_told && r->state != RANK_OUT && !client_interrupted(r->talk))
        wait_until_locked(r, clock_mono_ns() + NS_PER_S);
    bool told = r->end_told || r->state == RANK_OUT;
    unlock(r);
    return told;
}
