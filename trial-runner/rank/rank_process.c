/* Starts the process of a rank and exchanges lines with it.
 *
 * The socket does not block: a line that does not fit is kept in `out`, and written when poll()
 * says so. Worlds are written as they come; the process itself ignores all but the newest. */
#include "trial-runner/rank/rank_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc_stat.h"
#include "base/str.h"
#include "trial-runner/attempt/attempt_start.h"
#include "trial-runner/rank/rank.h"
#include "trial-runner/protocol/ranks.h"

/* ACCUSE_MS and LINGER_MS are of decision 7007: from `kill -9` of a rank to the next world at the
 * survivors it takes about 0.1 s, so the certain news is there before the accusation is due. */
#define READ_BYTES 4096
#define ACCUSE_MS 150  /* for the runner of a rank that has died to say it first */
#define LINGER_MS 1000 /* after it has left: the others may still connect to it in a world before */
#define MEET_AGAIN_MS 3000 /* without a new world, although a rank says that it waits for one */

static bool same_gang(const struct attempt *a, const struct attempt *b)
{
    struct attempt_id id = b->id;
    id.seat = a->id.seat;
    return a->rank && attempt_id_same(&a->id, &id);
}

/* ---- start ---- */

/* The GPUs of all ranks of this gang here, in the order of their seats: the order of LOCAL_RANK. */
static as_status find_gpus(const struct attempt *t, struct attempt *const *all, size_t n,
                           struct str *list, struct as_err *err)
{
    for (int64_t after = -1;;) {
        const struct attempt *next = NULL;
        for (size_t i = 0; i < n; i++)
            if (same_gang(all[i], t) && all[i]->id.seat > after &&
                (!next || all[i]->id.seat < next->id.seat))
                next = all[i];
        if (!next)
            break;
        after = next->id.seat;
        if (*next->gpus)
            str_printf(list, "%s%s", list->len ? "," : "", next->gpus);
    }
    return str_check(list, err);
}

/* Write the list to all of them when the first begins. A rank that has ended is not in `all` any
 * more, and the list of one that begins later would lack its GPUs. */
static as_status share_gpus(const struct attempt *t, struct attempt *const *all, size_t n,
                            struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    as_status st = find_gpus(t, all, n, &list, err);
    for (size_t i = 0; st == AS_OK && i < n; i++) {
        if (!same_gang(all[i], t))
            continue;
        free(all[i]->rank->gpus);
        all[i]->rank->gpus = as_strdup(str_cstr(&list));
        if (!all[i]->rank->gpus)
            st = as_fail_nomem(err);
    }
    return st;
}

as_status rank_process_start(struct attempt *t, struct attempt *const *all, size_t n,
                             struct as_err *err)
{
    struct rank *r = t->rank;
    if (r->gang.elastic)
        return child_spawn_on_socket(&t->launch.spec, &t->process.pid, &t->process.out_fd, &r->fd,
                                     err);
    if (r->held)
        return AS_OK;
    as_status st = r->gpus ? AS_OK : share_gpus(t, all, n, err);
    if (st == AS_OK)
        st = child_env_set(&t->launch.spec.env, "CUDA_VISIBLE_DEVICES", r->gpus, err);
    return st < 0 ? st : attempt_start(t, r->gpus, err);
}

/* ---- from the process ---- */

static void on_listening(struct rank *r, const struct rank_event *e)
{
    struct as_err err = {0};
    const char *colon = strstr(e->endpoint, " ");
    size_t len = colon ? (size_t)(colon - e->endpoint) : strlen(e->endpoint);
    char place[RANK_ADDRESS_MAX + 8];
    (void)snprintf(place, sizeof place, "%.*s", (int)len, e->endpoint); /* ADDRESS:PORT */
    char *port = strrchr(place, ':');
    int64_t number = 0;
    if (!port || as_parse_i64(port + 1, &number, &err) < 0)
        return;
    *port = '\0';
    bool six = place[0] == '[' && port > place && port[-1] == ']';
    if (six)
        port[-1] = '\0';
    (void)pthread_mutex_lock(&r->attempt->lock);
    (void)snprintf(r->endpoint, sizeof r->endpoint, "%s", e->endpoint);
    (void)snprintf(r->address, sizeof r->address, "%s", place + six);
    r->port = number;
    (void)pthread_mutex_unlock(&r->attempt->lock);
    rank_notice(r, RANK_LISTENS);
}

/* Does a rank of the same gang run on this runner, and was not stopped? Then it is not lost. */
static bool lives_here(const struct attempt *t, int64_t seat, struct attempt *const *all, size_t n)
{
    char path[40], text[PROC_STAT_MAX] = "";
    struct proc_stat stat;
    for (size_t i = 0; i < n; i++) {
        if (!same_gang(all[i], t) || all[i]->id.seat != seat || !all[i]->process.pid)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)all[i]->process.pid);
        AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        return len > 0 && proc_stat_parse(text, &stat) && !strchr("TtZX", stat.state);
    }
    return false;
}

static as_status add_lost(const struct rank *r, json_t *seats, int64_t rank,
                          struct attempt *const *all, size_t n)
{
    if (rank < 0 || (size_t)rank >= r->world.n)
        return AS_OK;
    int64_t seat = r->world.members[rank].seat;
    if (seat == r->attempt->id.seat || lives_here(r->attempt, seat, all, n))
        return AS_OK;
    return json_array_append_new(seats, json_integer((json_int_t)seat)) < 0 ? AS_E_NOMEM : AS_OK;
}

/* Whom a rank misses. It asks for a world without them, unless a newer one comes first. */
static void on_lost(struct rank *r, const struct rank_event *e, struct attempt *const *all,
                    size_t n)
{
    JSON_AUTO seats = json_array();
    const json_t *others = json_object_get(e->doc, "others");
    int64_t wait_ms = e->rank < 0 ? MEET_AGAIN_MS : ACCUSE_MS;
    as_status st = seats ? AS_OK : AS_E_NOMEM;
    (void)pthread_mutex_lock(&r->attempt->lock);
    if (st == AS_OK)
        st = add_lost(r, seats, e->rank, all, n);
    for (size_t i = 0; st == AS_OK && i < json_array_size(others); i++)
        st = add_lost(r, seats, json_integer_value(json_array_get(others, i)), all, n);
    bool known = r->accusation.epoch == e->epoch && r->accusation.epoch > 0 &&
                 json_array_size(r->accusation.seats) >= json_array_size(seats);
    if (st == AS_OK && e->epoch == r->world.epoch && !known) {
        json_decref(r->accusation.seats);
        r->accusation = (struct accusation){.epoch = e->epoch,
                                            .due_ns = clock_mono_ns() + wait_ms * NS_PER_MS,
                                            .seats = as_steal(seats)};
        attempt_wake_locked(r->attempt);
    }
    (void)pthread_mutex_unlock(&r->attempt->lock);
}

static void take_event(struct attempt *t, const struct rank_event *e, struct attempt *const *all,
                       size_t n)
{
    struct rank *r = t->rank;
    if (e->kind == RANK_LISTENING)
        on_listening(r, e);
    if (e->kind == RANK_LOST)
        on_lost(r, e, all, n);
    if (e->kind != RANK_JOINED && e->kind != RANK_PROGRESS)
        return;
    (void)pthread_mutex_lock(&t->lock);
    r->step = e->step > r->step ? e->step : r->step;
    if (e->kind == RANK_PROGRESS) {
        r->sent_bytes = e->sent_bytes;
        r->step_ns = e->step_ns;
    }
    if (e->kind == RANK_JOINED) {
        r->joined_epoch = r->last_joined = e->epoch;
        r->joined_step = e->step;
        attempt_wake_locked(t);
    }
    (void)pthread_mutex_unlock(&t->lock);
}

/* Returns whether all lines keep the protocol. */
static bool take_lines(struct attempt *t, struct attempt *const *all, size_t n)
{
    const char *line;
    size_t len;
    while ((line = control_lines_next(&t->rank->in, &len))) {
        struct as_err err = {0};
        struct rank_event e = {0};
        if (rank_event_parse(line, len, &e, &err) < 0) {
            log_write(LOG_ERROR, "a rank breaks the protocol", "%s error=\"%s\"", t->label,
                      err.msg);
            return false;
        }
        take_event(t, &e, all, n);
        rank_event_done(&e);
    }
    return true;
}

static void read_lines(struct attempt *t, struct attempt *const *all, size_t n)
{
    struct rank *r = t->rank;
    char bytes[READ_BYTES];
    while (r->fd >= 0) {
        ssize_t got = read(r->fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        bool ok = got > 0 && control_lines_feed(&r->in, bytes, (size_t)got, NULL) == AS_OK &&
                  take_lines(t, all, n);
        if (ok)
            continue;
        if (got > 0 && t->process.pid)
            child_signal_group(t->process.pid, SIGKILL);
        (void)close(r->fd);
        r->fd = -1;
    }
}

/* ---- to the process ---- */

static as_status format_world_locked(struct rank *r, struct as_err *err)
{
    struct rank_request q = {.op = RANK_WORLD,
                             .attempt = (uint64_t)r->attempt->id.attempt,
                             .epoch = r->world.epoch,
                             .rank = rank_world_rank(&r->world, r->attempt->id.seat),
                             .n = r->world.n};
    JSON_AUTO peers = json_array();
    if (!r->world.has_secret)
        return as_fail(err, AS_E_INVAL, "the world has no secret");
    for (size_t i = 0; i < r->world.n; i++)
        if (json_array_append_new(peers, json_string(r->world.members[i].endpoint)) < 0)
            return as_fail_nomem(err);
    memcpy(q.secret, r->world.secret, sizeof q.secret);
    q.peers = peers;
    return rank_request_format(&q, &r->out, err);
}

static void flush_lines(struct rank *r)
{
    size_t done = 0;
    while (r->fd >= 0 && done < r->out.len) {
        ssize_t n = send(r->fd, r->out.s + done, r->out.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* the buffer is full, or the process has ended */
        done += (size_t)n;
    }
    if (done > 0) {
        memmove(r->out.s, r->out.s + done, r->out.len - done);
        r->out.len -= done;
    }
}

static void write_lines(struct attempt *t)
{
    struct rank *r = t->rank;
    struct as_err err = {0};
    static const struct rank_request stop = {.op = RANK_STOP};
    as_status st = AS_OK;
    (void)pthread_mutex_lock(&t->lock);
    if (r->to_do & RANK_MEET)
        st = format_world_locked(r, &err);
    if (st == AS_OK && (r->to_do & RANK_FINISH))
        st = rank_request_format(&stop, &r->out, &err);
    r->to_do = 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (st < 0) {
        log_write(LOG_ERROR, "a rank cannot be told its world", "%s error=\"%s\"", t->label,
                  err.msg);
        if (t->process.pid)
            child_signal_group(t->process.pid, SIGKILL);
    }
    flush_lines(r);
}

void rank_process_talk(struct attempt *t, struct attempt *const *all, size_t n)
{
    read_lines(t, all, n);
    if (t->rank->fd >= 0)
        write_lines(t);
}

void rank_process_look(struct attempt *t, struct attempt *const *all, size_t n)
{
    stop_why asked = attempt_asked(t);
    rank_process_talk(t, all, n);
    if (t->rank->held && asked != STOP_NONE)
        attempt_end(t, verdict_unstarted(asked), NULL, verdict_stop_reason(asked));
}

/* Its runner leaves. Returns whether the rank is needed for a while. */
static bool begin_leaving(struct rank *r)
{
    rank_notice(r, RANK_DRAINS);
    (void)pthread_mutex_lock(&r->attempt->lock);
    bool leaves = r->state == RANK_LEAVING || r->state == RANK_STOPPING;
    (void)pthread_mutex_unlock(&r->attempt->lock);
    return leaves;
}

/* Has it left so lately that its process stays? When several ranks leave one after the other, the
 * others still meet some of them in a world before the newest, and wait for who does not come. */
static bool lingers(struct rank *r)
{
    (void)pthread_mutex_lock(&r->attempt->lock);
    int64_t left_ns = r->left_ns;
    (void)pthread_mutex_unlock(&r->attempt->lock);
    return left_ns && clock_mono_ns() - left_ns < LINGER_MS * NS_PER_MS;
}

/* Early stopping ends the attempt through the rank that leads: its process and those of the others
 * stop together. A rank that does not lead goes on: a directive is repeated to whoever leads. */
static void ask_for_stop(struct attempt *t)
{
    int64_t epoch;
    stop_why asked = attempt_asked(t);
    if (stop_is_early(asked) && !rank_leads(t->rank, &epoch))
        return;
    stopping_ask(&t->process.stopping, asked);
    if (stop_is_early(asked) && !t->rank->ends_early) {
        t->rank->ends_early = true;
        rank_notice(t->rank, RANK_ENDS_EARLY);
    }
}

void rank_process_stop_if_due(struct attempt *t)
{
    struct stopping *s = &t->process.stopping;
    ask_for_stop(t);
    stop_signal due = stopping_step(s, clock_mono_ns());
    if (s->why == STOP_DROPPED && due == STOP_SEND_NONE && !s->killed)
        due = STOP_SEND_KILL; /* the grace period was for leaving */
    if (due != STOP_SEND_NONE && lingers(t->rank)) {
        s->killed = false;
        return;
    }
    if (due == STOP_SEND_NONE || (due == STOP_SEND_TERM && stop_is_early(s->why)) ||
        (due == STOP_SEND_TERM && s->why == STOP_DRAIN && begin_leaving(t->rank)))
        return;
    attempt_note_killed(t);
    s->killed = true;
    child_signal_group(t->process.pid, SIGKILL);
}

void rank_process_ended(struct attempt *t)
{
    if (t->rank->fd >= 0)
        (void)close(t->rank->fd);
    t->rank->fd = -1;
}
