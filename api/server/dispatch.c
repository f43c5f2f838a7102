/* The way of a request: its head, the body and the idempotency key, the handler, its answer.
 *
 * I/O threads check heads (request_head.h) and never wait. Whatever queries the database runs
 * elsewhere: a token that is not in the cache in the thread of auth.c, every handler except those
 * with ROUTE_LOCAL in a worker.
 *
 * struct call lives in the arena of its exchange. Exactly one thread owns it at a time: the I/O
 * thread, perhaps the thread of auth.c, then a worker, then perhaps the waiting list or the
 * committer. auth_look_up(), http_release(), waiting_add() and committer_submit() give it away; the
 * giving thread must not touch it afterwards. */
#include "api/server/dispatch.h"

#include <string.h>

#include "api/server/request_head.h"
#include "api/server/call.h"
#include "api/server/call_key.h"
#include "api/server/dispatch_parts.h"
#include "api/server/http_metrics.h"
#include "api/server/pool.h"
#include "api/server/refuse.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/commit/beats.h"

#define BIG_CONTENT ((size_t)256 << 10) /* bytes of a body or an answer; see server_tidy() */

/* ---- the head ---- */

/* Keep the client's X-Request-Id if it is safe in logs and headers, else make a new one. */
static void choose_request_id(struct call *c)
{
    const char *given = c->x->head.request_id;
    size_t len = given ? strlen(given) : 0;
    uint8_t fresh[8];
    if (len > 0 && len < REQUEST_ID_SIZE &&
        strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len) {
        memcpy(c->request_id, given, len + 1);
        return;
    }
    random_bytes(fresh, sizeof fresh);
    hex_format(fresh, sizeof fresh, c->request_id);
}

static struct call *make_call(const struct dispatch *d, struct http_exchange *x)
{
    struct call *c = arena_alloc(&x->arena, 1, sizeof *c);
    if (!c)
        return NULL;
    c->dispatch = d;
    c->server = d->server;
    c->x = x;
    c->arena = &x->arena;
    c->db = d->store;
    c->suggester = d->suggester;
    c->results = d->results;
    c->tables = d->tables;
    c->orders = d->orders;
    c->fronts = d->fronts;
    c->attempts = d->attempts;
    choose_request_id(c);
    x->app = c;
    return c;
}

void dispatch_head(void *ctx, struct http_exchange *x)
{
    const struct dispatch *d = ctx;
    struct call *c = make_call(d, x);
    struct as_err err = {.code = AS_E_NOMEM, .msg = "out of memory for the request"};
    if (c)
        request_head_check(c);
    else
        problem_answer(x, PROBLEM_STATUS, "-", &err, NULL);
    if (atomic_load(&d->is_draining))
        x->answer.close = true;
}

/* ---- the handler ---- */

static struct call *call_of(struct pool_job *job)
{
    return (struct call *)(void *)((char *)job - offsetof(struct call, job));
}

/* The workers of a route. */
static struct pool *pool_of(const struct dispatch *d, const struct route *route)
{
    return route->flags & ROUTE_BEAT     ? d->beat_pool
           : route->flags & ROUTE_URGENT ? d->urgent_pool
           : route->flags & ROUTE_VIEW   ? d->view_pool
           : route->flags & ROUTE_SLOW   ? d->slow_pool
                                         : d->pool;
}

static as_status read_body(struct call *c, struct as_err *err)
{
    const struct str *b = &c->x->body;
    if (c->body || (c->route->body != ROUTE_BODY_JSON && c->route->body != ROUTE_BODY_MERGE_PATCH))
        return AS_OK;
    if (b->len == 0)
        return as_fail(err, AS_E_INVAL, "the request has no body");
    return c->route->flags & ROUTE_PARTS ? json_parse_parts(b->s, b->len, &c->body, err)
                                         : json_parse(b->s, b->len, &c->body, err);
}

static problem_kind problem_kind_of(unsigned flags, const struct as_err *err)
{
    if (err->code == AS_E_STALE && (flags & ROUTE_EPOCH))
        return PROBLEM_STALE_EPOCH;
    if (err->code == AS_E_DENIED) /* the token and its role were checked before */
        return PROBLEM_NOT_HOLDER;
    if (err->code == AS_E_UNSUPPORTED && (flags & ROUTE_REFERS))
        return PROBLEM_UNPROCESSABLE;
    return PROBLEM_STATUS;
}

/* Read the body and the key, then run the handler. *ret_by_key: the key settled the call. */
static as_status run_handler(struct call *c, bool *ret_by_key, struct as_err *err)
{
    as_status st = read_body(c, err);
    if (st < 0)
        return st;
    st = call_key_read(c, err);
    if (st < 0)
        return st;
    *ret_by_key = call_key_answer(c);
    if (*ret_by_key)
        return AS_OK;
    route_fn *run = c->commit.then ? c->commit.then : c->route->run;
    c->commit.then = NULL;
    st = run(c, err);
    if (st == AS_E_CONFLICT) /* another request with the same key may have ended first */
        *ret_by_key = call_key_answer(c);
    return *ret_by_key ? AS_OK : st;
}

/* The request of somebody with a valid token failed: say that it is for the disk, if it is. */
static void explain_outage(const struct call *c, struct as_err *err)
{
    char room[300];
    if (err->code == AS_E_UNAVAILABLE && c->who.id[0] &&
        refuse_is_for_disk(c->dispatch, room, sizeof room))
        (void)as_err_prefix(err, err->code, "the disk of the database is full: %s", room);
}

json_t *dispatch_problem(const struct call *c, unsigned flags, const struct as_err *err,
                         int *ret_http)
{
    struct as_err told = *err;
    explain_outage(c, &told);
    return problem_of_part(c->x, problem_kind_of(flags, &told), c->request_id, &told, ret_http);
}

/* Run the handler once, and set the answer unless the handler wants to wait. */
static void run_handler_once(struct call *c)
{
    struct as_err err = {0};
    bool is_by_key = false;
    c->wants_wait = false;
    c->is_draining = atomic_load(&c->dispatch->is_draining);
    if (run_handler(c, &is_by_key, &err) < 0) {
        explain_outage(c, &err);
        refuse(c, problem_kind_of(c->route->flags, &err), &err);
    } else if (!is_by_key && !c->wants_wait && !c->commit.then)
        call_key_store(c);
}

static void run_call(struct pool_job *job);

/* One member of a call has its answer. In a thread of the committer. */
static void on_committed(struct commit_member *m)
{
    struct call *c = m->owner;
    if (atomic_fetch_sub(&c->commit.n_left, 1) == 1)
        pool_submit_again(pool_of(c->dispatch, c->route), &c->job);
}

/* The heartbeat of a call was written with others. In their thread: what its set has settled is
 * answered here, so that the answers of a set leave together. */
static void on_beat(struct beat_member *m)
{
    struct call *c = m->owner;
    if (m->fact.is_plain)
        run_call(&c->job);
    else
        pool_submit_again(pool_of(c->dispatch, c->route), &c->job);
}

static bool submit_beat(struct call *c)
{
    struct beat_member *m = c->commit.beat;
    m->done = on_beat;
    m->owner = c;
    beats_submit(c->dispatch->beats, m);
    return true;
}

/* Give the call to the committer. False: its queue is full, and that is answered. */
static bool submit_members(struct call *c)
{
    struct as_err err = {0};
    for (size_t i = 0; i < c->commit.n; i++) {
        c->commit.members[i]->done = on_committed;
        c->commit.members[i]->owner = c;
    }
    atomic_store(&c->commit.n_left, c->commit.n);
    if (committer_submit(c->dispatch->committer, c->commit.members, c->commit.n, &err) == AS_OK)
        return true;
    c->commit.then = NULL;
    refuse(c, PROBLEM_STATUS, &err);
    return false;
}

static void run_call(struct pool_job *job)
{
    struct call *c = call_of(job);
    const struct dispatch *d = c->dispatch;
    bool wakes = (c->route->flags & ROUTE_WAKES) != 0;
    if (atomic_load(&c->x->is_gone)) {
        http_release(c->x); /* without an answer: the client has left */
        return;
    }
    run_handler_once(c);
    if (c->commit.then && (c->commit.beat ? submit_beat(c) : submit_members(c)))
        return; /* from here on the committer owns c */
    bool wakes_now = c->wants_wake;
    c->wants_wake = false;
    if (c->wants_wait) {
        c->waiting.is_gone = &c->x->is_gone;
        http_watch(c->x);
        waiting_add(d->waiting, &c->waiting); /* from here on the list owns c */
        if (wakes_now)
            waiting_wake(d->waiting);
        return;
    }
    /* here, and not at the end of the exchange: a large body takes milliseconds, in which the I/O
     * thread would serve nobody */
    json_decref(c->body);
    c->body = NULL;
    http_release(c->x);
    if (wakes || wakes_now)
        waiting_wake(d->waiting);
}

void dispatch_request(void *ctx, struct http_exchange *x)
{
    const struct dispatch *d = ctx;
    struct call *c = x->app;
    c->job.run = run_call;
    pool_submit(pool_of(d, c->route), &c->job);
}

void dispatch_retry(void *ctx, struct waiting_item *item)
{
    const struct dispatch *d = ctx;
    struct call *c = (struct call *)(void *)((char *)item - offsetof(struct call, waiting));
    pool_submit_again(pool_of(d, c->route), &c->job);
}

/* ---- the end ---- */

void dispatch_gone(void *ctx)
{
    const struct dispatch *d = ctx;
    waiting_wake_gone(d->waiting);
}

void dispatch_refusal(void *ctx, struct http_exchange *x, const struct as_err *err)
{
    struct call *c = x->app ? x->app : make_call(ctx, x);
    problem_kind kind = PROBLEM_STATUS;
    if (err->code == AS_E_TOO_LARGE)
        kind = x->refusal == HTTP_REFUSAL_TARGET ? PROBLEM_TARGET
               : x->refusal == HTTP_REFUSAL_HEAD ? PROBLEM_HEAD
                                                 : PROBLEM_STATUS;
    if (c)
        refuse(c, kind, err);
    else
        problem_answer(x, kind, "-", err, NULL);
}

void dispatch_end(void *ctx, struct http_exchange *x)
{
    const struct dispatch *d = ctx;
    struct call *c = x->app;
    if (!c)
        return;
    if (c->settled_ns)
        http_metrics_count(d->metrics, c->route, x->head.method, x->answer.status,
                           c->settled_ns - x->start_ns);
    log_write(LOG_DEBUG, "request", "request_id=%s peer=%s method=%s path=%s code=%d us=%lld",
              c->request_id, x->peer, x->head.method, x->head.path ? x->head.path : "-",
              x->answer.status, (long long)((clock_mono_ns() - x->start_ns) / 1000));
    blob_put_free(c->upload);
    call_free_members(c);
    json_decref(c->body);
    faults_done(&c->faults);
    if (x->answer.len + x->body.len >= BIG_CONTENT)
        atomic_fetch_add(&((struct dispatch *)ctx)->big_bytes, x->answer.len + x->body.len);
}
