/* The one sender of a runner.
 *
 * A part in the queue belongs to the thread that waits for it, a part that is on its way to the
 * sender's thread: who gives up waiting for such a part abandons it, and the sender frees it with
 * its answer. At most one request is on its way, so an attempt that repeats an abandoned part
 * cannot overtake it. A single request of the same attempt may, which is harmless: every part can
 * be repeated.
 *
 * Each part has its own pause after a failure, as each call of a client has: a part that the server
 * does not take for now keeps no other from being sent.
 *
 * A server that does not know the route (404, 405) is asked again after a while, because servers
 * are replaced while runners run. A request that is refused as a whole, for whatever is between
 * this runner and the server, is not sent again: each of its parts goes alone. */
#include "trial-runner/delivery/sender.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "trial-runner/attempt/identity.h"

#define ALONE_MS 60000 /* a server without the route is not asked again for so long */

typedef enum part_state { PART_QUEUED, PART_SENT, PART_DONE } part_state;

struct queued_part {
    struct queued_part *next;
    batch_kind kind;
    struct str text;
    bool is_patient;
    part_state state;
    bool is_abandoned; /* nobody waits: the sender frees it */
    unsigned tries;
    int64_t due_ns;
    pthread_cond_t changed; /* of the thread that waits */
    /* state PART_DONE: */
    as_status st;
    struct as_err err;
    struct sender_answer answer;
};

struct sender {
    struct client *client; /* the thread's */
    struct str path;
    pthread_t thread;

    pthread_mutex_t lock;             /* guards all below; held during no request */
    pthread_cond_t work;              /* a part has come, or is_closing */
    struct queued_part *first, **end; /* the queue; end: where the next one is put */
    struct queued_part *sent[BATCH_PARTS_MAX];
    size_t n_sent;
    int64_t alone_until_ns;
    bool is_closing;
};

static void part_free(struct queued_part *p)
{
    if (!p)
        return;
    str_done(&p->text);
    json_decref(p->answer.body);
    pthread_cond_destroy(&p->changed);
    free(p);
}
AS_DEFINE_FREEP(struct queued_part, part_free)

/* ---- the queue; under the lock ---- */

static void put_locked(struct sender *s, struct queued_part *p)
{
    p->state = PART_QUEUED;
    p->next = NULL;
    *s->end = p;
    s->end = &p->next;
    pthread_cond_signal(&s->work);
}

static void unlink_locked(struct sender *s, struct queued_part **at)
{
    struct queued_part *p = *at;
    *at = p->next;
    if (s->end == &p->next)
        s->end = at;
}

/* Take the parts that are due, in their order and as many as one request may have, to s->sent.
 * Returns when the next one is due if there are none; INT64_MAX: the queue is empty. */
static int64_t take_due_locked(struct sender *s)
{
    int64_t now = clock_mono_ns(), next_ns = INT64_MAX;
    size_t bytes = BATCH_FRAME_BYTES;
    s->n_sent = 0;
    for (struct queued_part **at = &s->first; *at && s->n_sent < BATCH_PARTS_MAX;) {
        struct queued_part *p = *at;
        if (p->due_ns > now) {
            next_ns = p->due_ns < next_ns ? p->due_ns : next_ns;
            at = &p->next;
            continue;
        }
        bytes += p->text.len + 1;
        if (s->n_sent > 0 && bytes > BATCH_BYTES_MAX)
            break;
        unlink_locked(s, at);
        p->state = PART_SENT;
        s->sent[s->n_sent++] = p;
    }
    return next_ns;
}

/* The part has its answer. */
static void end_part_locked(struct queued_part *p, as_status st, const struct as_err *err)
{
    if (p->is_abandoned) {
        part_free(p);
        return;
    }
    p->st = st;
    if (err)
        p->err = *err;
    p->state = PART_DONE;
    pthread_cond_signal(&p->changed);
}

/* The server cannot take the part for now. */
static void postpone_locked(struct sender *s, struct queued_part *p, const struct as_err *err)
{
    if (p->is_abandoned || !p->is_patient || s->is_closing) {
        end_part_locked(p, AS_E_UNAVAILABLE, err);
        return;
    }
    p->due_ns = clock_mono_ns() + client_pause_ms(s->client, p->tries++) * NS_PER_MS;
    put_locked(s, p);
}

static void send_alone_locked(struct queued_part *p)
{
    p->answer.alone = true;
    end_part_locked(p, AS_OK, NULL);
}

/* ---- one request ---- */

static as_status send_parts(struct sender *s, json_t **ret, int *ret_http, struct as_err *err)
{
    struct batch_text texts[BATCH_PARTS_MAX];
    AS_AUTO(str_done) struct str body = {0};
    for (size_t i = 0; i < s->n_sent; i++)
        texts[i] = (struct batch_text){
            .s = s->sent[i]->text.s, .len = s->sent[i]->text.len, .kind = s->sent[i]->kind};
    batch_write(texts, s->n_sent, &body);
    as_status st = str_check(&body, err);
    if (st < 0)
        return st;
    return client_call_text(s->client, "POST", s->path.s, body.s, body.len, NULL, ret, ret_http,
                            err);
}

/* The request was answered: give each part its answer. */
static void settle_parts_locked(struct sender *s, const json_t *answer)
{
    size_t n[BATCH_KINDS] = {0};
    for (size_t i = 0; i < s->n_sent; i++) {
        struct queued_part *p = s->sent[i];
        struct batch_answer a;
        batch_answer_read(answer, p->kind, n[p->kind]++, &a);
        if (a.st == AS_E_UNAVAILABLE) {
            postpone_locked(s, p, &a.err);
            continue;
        }
        p->answer.body = json_incref((json_t *)a.body);
        memcpy(p->answer.code, a.code, sizeof p->answer.code);
        end_part_locked(p, a.st, &a.err);
    }
}

/* The server has no such route: all parts go alone, those in the queue too. */
static void go_alone_locked(struct sender *s)
{
    s->alone_until_ns = clock_mono_ns() + ALONE_MS * NS_PER_MS;
    while (s->first) {
        struct queued_part *p = s->first;
        unlink_locked(s, &s->first);
        send_alone_locked(p);
    }
}

/* The request failed as a whole. */
static void settle_failure_locked(struct sender *s, as_status st, int http,
                                  const struct as_err *err)
{
    bool is_unknown = http == 404 || http == 405;
    for (size_t i = 0; i < s->n_sent; i++) {
        struct queued_part *p = s->sent[i];
        if (st == AS_E_UNAVAILABLE) {
            postpone_locked(s, p, err);
        } else if (st == AS_E_DENIED || st == AS_E_NOMEM) {
            (void)snprintf(p->answer.code, sizeof p->answer.code, "%s",
                           client_problem_code(s->client));
            end_part_locked(p, st, err);
        } else {
            send_alone_locked(p);
        }
    }
    if (is_unknown)
        go_alone_locked(s);
}

static void log_failure(as_status st, int http, size_t n, const struct as_err *err)
{
    if (http == 404 || http == 405)
        log_write(LOG_INFO, "the server takes ends and measurements one by one", "status=%d", http);
    else if (st != AS_E_UNAVAILABLE && st != AS_E_DENIED)
        log_write(LOG_WARN, "a request of many parts was refused: they are sent one by one",
                  "parts=%zu error=\"%s\"", n, err->msg);
}

static void *sender_main(void *arg)
{
    struct sender *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->is_closing) {
        int64_t next_ns = take_due_locked(s);
        if (s->n_sent == 0) {
            (void)clock_cond_wait(&s->work, &s->lock, next_ns);
            continue;
        }
        struct as_err err = {0};
        JSON_AUTO answer = NULL;
        int http = 0;
        pthread_mutex_unlock(&s->lock);
        as_status st = send_parts(s, &answer, &http, &err);
        if (st < 0)
            log_failure(st, http, s->n_sent, &err);
        pthread_mutex_lock(&s->lock);
        if (st == AS_OK)
            settle_parts_locked(s, answer);
        else
            settle_failure_locked(s, st, http, &err);
        s->n_sent = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- for delivery threads ---- */

static as_status part_create(const struct sender_part *part, struct queued_part **ret,
                             struct as_err *err)
{
    AS_AUTO(part_freep) struct queued_part *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    clock_cond_init(&p->changed);
    p->kind = part->kind;
    p->is_patient = part->until_ns == 0;
    batch_part_write(part->id, part->world_epoch, part->body, &p->text);
    as_status st = str_check(&p->text, err);
    if (st < 0)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

/* Nobody waits for the part any more. */
static void abandon_locked(struct sender *s, struct queued_part *p)
{
    if (p->state == PART_SENT) {
        p->is_abandoned = true;
        return;
    }
    struct queued_part **at = &s->first;
    while (*at != p)
        at = &(*at)->next;
    unlink_locked(s, at);
    part_free(p);
}

as_status sender_send(struct sender *s, const struct sender_part *part, struct sender_answer *ret,
                      struct as_err *err)
{
    struct queued_part *p = NULL;
    int64_t until_ns = part->until_ns ? part->until_ns : INT64_MAX;
    *ret = (struct sender_answer){0};
    as_status st = part_create(part, &p, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&s->lock);
    if (clock_mono_ns() < s->alone_until_ns) {
        pthread_mutex_unlock(&s->lock);
        part_free(p);
        ret->alone = true;
        return AS_OK;
    }
    put_locked(s, p);
    bool in_time = true;
    while (p->state != PART_DONE && in_time && !client_interrupted(part->owner))
        in_time = clock_cond_wait(&p->changed, &s->lock, until_ns);
    if (p->state == PART_DONE) {
        st = p->st;
        *ret = p->answer;
        p->answer.body = NULL;
        if (st < 0 && err)
            *err = p->err;
        part_free(p);
    } else {
        abandon_locked(s, p);
        st = as_fail(err, AS_E_UNAVAILABLE, "%s",
                     in_time ? "interrupted" : "the server did not answer in time");
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

void sender_wake(struct sender *s)
{
    pthread_mutex_lock(&s->lock);
    for (struct queued_part *p = s->first; p; p = p->next)
        pthread_cond_signal(&p->changed);
    for (size_t i = 0; i < s->n_sent; i++)
        if (!s->sent[i]->is_abandoned)
            pthread_cond_signal(&s->sent[i]->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

as_status sender_create(const struct options *o, struct sender **ret, struct as_err *err)
{
    struct sender *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->work);
    s->end = &s->first;
    str_puts(&s->path, "/v1/runners");
    client_path_add(&s->path, o->name);
    str_puts(&s->path, "/batch");
    as_status st = str_check(&s->path, err);
    if (st == AS_OK)
        st = identity_client(o, &s->client, err);
    if (st == AS_OK && pthread_create(&s->thread, NULL, sender_main, s) != 0)
        st = as_fail(err, AS_E_NOMEM, "cannot start a thread");
    if (st < 0) {
        client_free(s->client);
        s->client = NULL;
        sender_free(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

void sender_free(struct sender *s)
{
    if (!s)
        return;
    if (s->client) { /* the thread runs */
        client_interrupt(s->client);
        pthread_mutex_lock(&s->lock);
        s->is_closing = true;
        pthread_cond_signal(&s->work);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    client_free(s->client);
    str_done(&s->path);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
