/* From the head of a request to its answer. The checks of a head come in this order: Host and
 * Origin, route, token, role, query, media type. Then come the body, the idempotency key and the
 * handler.
 *
 * I/O threads check heads and never wait. Whatever queries the database runs elsewhere: a token
 * that is not in the cache in the thread of auth.c, every handler except those with ROUTE_LOCAL in
 * a worker. While a token is looked up, the transport holds the exchange, so the body is read only
 * after the token was found valid.
 *
 * struct call lives in the arena of its exchange. Exactly one thread owns it at a time: the I/O
 * thread, perhaps the thread of auth.c, then a worker, then perhaps the waiting list or the
 * committer. auth_look_up(), http_release(), waiting_add() and committer_submit() give it away; the
 * giving thread must not touch it afterwards. */
#include "api/server/dispatch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/server/auth.h"
#include "api/server/call.h"
#include "api/server/http_metrics.h"
#include "api/server/pool.h"
#include "api/server/problem_document.h"
#include "api/server/route_find.h"
#include "api/server/token_rates.h"
#include "api/server/web_files.h"
#include "base/clock.h"
#include "base/disk_room.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/assign/asks.h"
#include "scheduler/assign/claims.h"
#include "scheduler/commit/beats.h"
#include "scheduler/lifecycle/gangs.h"

#define BIG_CONTENT ((size_t)256 << 10) /* bytes of a body or an answer; see server_tidy() */
#define CLAIMS_QUEUED_MAX 1024          /* in the committer, when waiting claims are tried again */
#define IGNORED_BODY_MAX 1024 /* bytes of a body that are ignored where the route has no body */

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

static void fail_call(struct call *c, problem_kind kind, const struct as_err *err)
{
    c->settled_ns = clock_mono_ns();
    c->x->answer.n_headers = 0;
    bool is_first = c->faults.n > 0 && as_streq(c->faults.list[0].msg, err->msg);
    problem_answer(c->x, kind, c->request_id, err, is_first ? &c->faults : NULL);
}

static void fail_call_with(struct call *c, problem_kind kind, as_status st, const char *detail)
{
    struct as_err err = {0};
    (void)as_fail(&err, st, "%s", detail);
    fail_call(c, kind, &err);
}

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

static bool is_unsafe(const char *method)
{
    return !as_streq(method, "GET") && !as_streq(method, "HEAD") && !as_streq(method, "OPTIONS");
}

/* Is the Host ours, and does a request that changes something come from our own page? Defends
 * against DNS rebinding and against requests that pages of other sites forge. */
static bool is_from_here(const struct dispatch *d, const struct http_head *h)
{
    if (h->host && !http_host_allowed(h->host, d->host_names))
        return false;
    if (!is_unsafe(h->method))
        return true;
    if (h->origin && !http_origin_matches(h->origin, h->host))
        return false;
    return !h->fetch_site || as_streq(h->fetch_site, "same-origin") ||
           as_streq(h->fetch_site, "none");
}

static bool has_media_type(const struct http_head *h, const char *type)
{
    size_t n = strlen(type);
    if (!h->content_type || strncasecmp(h->content_type, type, n) != 0)
        return false;
    return strchr("; \t", h->content_type[n]) != NULL; /* also true at the end of the string */
}

static bool check_media_type(struct call *c)
{
    const char *want = c->route->body == ROUTE_BODY_JSON          ? "application/json"
                       : c->route->body == ROUTE_BODY_MERGE_PATCH ? "application/merge-patch+json"
                                                                  : NULL;
    char msg[80];
    if (!want || has_media_type(&c->x->head, want))
        return true;
    (void)snprintf(msg, sizeof msg, "the Content-Type must be %s", want);
    fail_call_with(c, PROBLEM_MEDIA_TYPE, AS_E_INVAL, msg);
    return false;
}

static bool check_query(struct call *c)
{
    const struct http_head *h = &c->x->head;
    struct as_err err = {0};
    for (size_t i = 0; i < h->n_query; i++) {
        if (route_has_query(c->route, h->query[i].name))
            continue;
        (void)as_fail(&err, AS_E_INVAL, "there is no parameter '%.40s' here%s%s", h->query[i].name,
                      *c->route->query ? "; known: " : "", c->route->query);
        fail_call(c, PROBLEM_STATUS, &err);
        return false;
    }
    return true;
}

static as_status add_to_upload(void *ctx, const void *bytes, size_t len, struct as_err *err)
{
    return blob_put_add(ctx, bytes, len, err);
}

static void expect_body(struct call *c)
{
    struct http_exchange *x = c->x;
    struct as_err err = {0};
    switch (c->route->body) {
    case ROUTE_BODY_NONE:
        x->body_kind = HTTP_BODY_NONE;
        x->body_max = IGNORED_BODY_MAX;
        return;
    case ROUTE_BODY_JSON:
    case ROUTE_BODY_MERGE_PATCH:
        x->body_kind = HTTP_BODY_MEMORY;
        x->body_max = DISPATCH_JSON_MAX;
        return;
    case ROUTE_BODY_BYTES:
        x->body_kind = HTTP_BODY_SINK;
        x->body_max = c->dispatch->max_blob_bytes;
        if (blob_put_create(call_param(c, "sha256"), &c->upload, &err) < 0)
            fail_call(c, PROBLEM_STATUS, &err);
        x->sink = add_to_upload;
        x->sink_ctx = c->upload;
        return;
    }
}

/* Is a path parameter absent from the route, or this number in its one spelling? */
static bool is_number_of_path(const struct call *c, const char *name, int64_t want)
{
    int64_t n = 0;
    const char *given = call_param(c, name);
    return !*given || (call_read_i64(given, 0, INT32_MAX, &n) && n == want);
}

/* The token of an attempt reaches its own sweep, trial and attempt, and nothing else. */
static bool is_of_own_attempt(const struct call *c)
{
    return as_streq(call_param(c, "sweep"), c->who.sweep) &&
           is_number_of_path(c, "number", c->who.number) &&
           is_number_of_path(c, "attempt", c->who.attempt);
}

static void add_figure(struct call *c, const char *name, int64_t v)
{
    const char *text = arena_printf(c->arena, "%lld", (long long)v);
    if (text)
        http_answer_header(c->x, name, text);
}

/* Is there room for one more request of this token? Its figures stand in the answer from the half
 * of its bucket on, so that the answers to all others cost nothing. */
static bool check_rate(struct call *c)
{
    struct token_rate rate = {0};
    if (!c->route->roles || !c->dispatch->rates)
        return true;
    bool has_room = token_rates_take(c->dispatch->rates, &c->who, clock_mono_ns(), &rate) ||
                    (c->route->flags & ROUTE_BEAT);
    if (!has_room) {
        fail_call_with(c, PROBLEM_OVER_RATE, AS_E_UNAVAILABLE,
                       "this token makes requests faster than --requests-per-second allows");
        add_figure(c, "Retry-After", (rate.wait_ms + 999) / 1000);
    }
    if (rate.limit > 0 && rate.left < rate.limit / 2) {
        add_figure(c, "RateLimit-Limit", rate.limit);
        add_figure(c, "RateLimit-Remaining", rate.left);
        add_figure(c, "RateLimit-Reset", (rate.wait_ms + 999) / 1000);
    }
    return has_room;
}

/* The token is valid. Check its role and the rest of the head, then prepare for the body. */
static void check_rest_of_head(struct call *c)
{
    struct as_err err = {0};
    if (!check_rate(c))
        return;
    if (c->route->roles && !auth_allows(c->route->roles, &c->who)) {
        fail_call_with(c, PROBLEM_FORBIDDEN, AS_E_DENIED,
                       "the role of this token does not allow this");
        return;
    }
    if (c->route->roles && c->who.role == ROLE_TRIAL && !is_of_own_attempt(c)) {
        fail_call_with(c, PROBLEM_FORBIDDEN, AS_E_DENIED,
                       "the token of an attempt is good for this attempt, its trial and its sweep "
                       "alone");
        return;
    }
    if (!check_query(c) || !check_media_type(c))
        return;
    if (c->route->flags & ROUTE_LOCAL) {
        if (c->route->run(c, &err) < 0)
            fail_call(c, PROBLEM_STATUS, &err);
        return;
    }
    expect_body(c);
}

/* Does the disk of the database lack room? That explains what fails meanwhile, also where
 * PostgreSQL cannot even start. */
static bool lacks_room(const struct dispatch *d, char *ret_text, size_t size)
{
    return d->disk && disk_room_is_short(d->disk, DISK_ROOM_POSTGRES, ret_text, size);
}

/* The token cannot be checked. The reason may name the database's address: it is for the log. Where
 * its disk is, is for those who had a valid token. */
static void fail_unchecked(struct call *c)
{
    const struct as_err *err = &c->auth.err;
    char room[300], text[400];
    const char *why = "";
    log_write(LOG_WARN, "token not checked", "request_id=%s detail=\"%s\"", c->request_id,
              err->msg);
    if (lacks_room(c->dispatch, room, sizeof room))
        why = auth_knew(c->dispatch->auth, c->auth.token) ? room : "free some space";
    (void)snprintf(text, sizeof text, "the token cannot be checked now%s%s",
                   *why ? ": the disk of the database is full: " : "", why);
    fail_call_with(c, PROBLEM_STATUS, err->code, text);
}

static void fail_authentication(struct call *c)
{
    const struct as_err *err = &c->auth.err;
    if (c->auth.is_one_too_many) {
        fail_call_with(c, PROBLEM_TOO_MANY, AS_E_DENIED,
                       "the token is not valid, and this address has sent too many such tokens; "
                       "wait a minute");
        c->x->answer.close = true;
    } else if (err->code == AS_E_DENIED) {
        fail_call(c, PROBLEM_UNAUTHORIZED, err);
    } else {
        fail_unchecked(c);
    }
}

/* The token was looked up: let the transport continue. */
static void on_looked_up(struct auth_check *check)
{
    struct call *c = (struct call *)(void *)((char *)check - offsetof(struct call, auth));
    if (check->err.code < 0) {
        fail_authentication(c);
    } else {
        c->who = check->who;
        check_rest_of_head(c);
    }
    http_release(c->x);
}

static void authenticate(struct call *c)
{
    const char *token = auth_bearer(c->x->head.authorization);
    if (c->route->roles == 0) {
        check_rest_of_head(c);
    } else if (!token) {
        fail_call_with(c, PROBLEM_UNAUTHORIZED, AS_E_DENIED,
                       "the header Authorization: Bearer TOKEN is "
                       "missing or malformed");
    } else if (auth_recall(c->dispatch->auth, token, &c->who)) {
        check_rest_of_head(c);
    } else {
        c->auth = (struct auth_check){.token = token, .peer = c->x->peer, .done = on_looked_up};
        http_hold(c->x);
        auth_look_up(c->dispatch->auth, &c->auth);
    }
}

static void answer_options(struct call *c, const char *allow)
{
    const char *kept = arena_strdup(c->arena, allow);
    if (kept)
        http_answer_header(c->x, "Allow", kept);
    (void)call_done(c);
}

static void answer_wrong_method(struct call *c, const char *allow)
{
    const char *kept = arena_strdup(c->arena, allow);
    fail_call_with(c, PROBLEM_METHOD, AS_E_INVAL, "the method is not allowed here; see Allow");
    if (kept)
        http_answer_header(c->x, "Allow", kept);
}

/* A path without a route: answer a file of the dashboard, or 404. */
static void answer_file(struct call *c)
{
    const struct http_head *h = &c->x->head;
    bool is_api = as_starts_with(h->path, "/v1/") || as_streq(h->path, "/v1");
    bool is_read = as_streq(h->method, "GET") || as_streq(h->method, "HEAD");
    if (!is_api && is_read && web_files_answer(c->dispatch->web, c->x)) {
        c->settled_ns = clock_mono_ns();
        return;
    }
    fail_call_with(c, PROBLEM_STATUS, AS_E_NOT_FOUND, "there is nothing at this path");
}

static void route_call(struct call *c)
{
    const struct http_head *h = &c->x->head;
    struct route_match m;
    struct as_err err = {0};
    const struct dispatch *d = c->dispatch;
    if (route_find(d->routes, d->n_routes, h->method, h->path, c->arena, &m, &err) < 0) {
        fail_call(c, PROBLEM_STATUS, &err);
    } else if (m.outcome == ROUTE_FOUND) {
        c->route = m.route;
        memcpy(c->params, m.params, sizeof c->params);
        authenticate(c);
    } else if (m.outcome == ROUTE_UNKNOWN) {
        answer_file(c);
    } else if (as_streq(h->method, "OPTIONS")) {
        answer_options(c, m.allow);
    } else {
        answer_wrong_method(c, m.allow);
    }
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
    if (!c)
        problem_answer(x, PROBLEM_STATUS, "-", &err, NULL);
    else if (!is_from_here(d, &x->head))
        fail_call_with(
            c, PROBLEM_FORBIDDEN, AS_E_DENIED,
            "the Host is not one of this server's (assayd --public-host), or the Origin is "
            "another site");
    else
        route_call(c);
    if (atomic_load(&d->is_draining))
        x->answer.close = true;
}

/* ---- the call ---- */

static as_status read_body(struct call *c, struct as_err *err)
{
    const struct str *b = &c->x->body;
    if (c->body || (c->route->body != ROUTE_BODY_JSON && c->route->body != ROUTE_BODY_MERGE_PATCH))
        return AS_OK;
    if (b->len == 0)
        return as_fail(err, AS_E_INVAL, "the request has no body");
    return json_parse(b->s, b->len, &c->body, err);
}

/* Hash the query and the body. Two requests with one key are the same if these are equal. */
static as_status digest_request(const struct call *c, char *digest, struct as_err *err)
{
    const struct http_head *h = &c->x->head;
    AS_AUTO(str_done) struct str whole = {0};
    for (size_t i = 0; i < h->n_query; i++)
        str_printf(&whole, "%s=%s&", h->query[i].name, h->query[i].value);
    if (whole.len)
        str_putc(&whole, '\n');
    str_add(&whole, c->x->body.s, c->x->body.len);
    as_status st = str_check(&whole, err);
    if (st < 0)
        return st;
    return sha256_of(whole.s, whole.len, digest, err);
}

/* Set c->idem if the request has an idempotency key. */
static as_status read_key(struct call *c, struct as_err *err)
{
    const struct http_head *h = &c->x->head;
    if (!(c->route->flags & ROUTE_IDEMPOTENCY) || !h->idempotency_key)
        return AS_OK;
    struct idem_key *k = arena_alloc(c->arena, 1, sizeof *k);
    char *digest = arena_alloc(c->arena, SHA256_HEX_SIZE, 1);
    const char *scope = arena_printf(c->arena, "%s %s %s", c->who.id, h->method, h->path);
    if (!k || !digest || !scope)
        return as_fail(err, AS_E_NOMEM, "out of memory for the idempotency key");
    *k = (struct idem_key){.scope = scope, .key = h->idempotency_key, .body_sha256 = digest};
    c->idem = k;
    return digest_request(c, digest, err);
}

static void answer_stored(struct call *c, const struct idem_answer *a)
{
    struct http_answer *out = &c->x->answer;
    (void)call_bytes(c, "application/json", a->body, strlen(a->body));
    out->status = (int)a->status;
    http_answer_header(c->x, "Idempotent-Replayed", "true");
    if (a->location)
        http_answer_header(c->x, "Location", a->location);
}

/* Returns whether the key settled the call: with the stored answer, or with a refusal. */
static bool answer_by_key(struct call *c)
{
    struct idem_answer a = {0};
    struct as_err err = {0};
    if (!c->idem)
        return false;
    if (idempotency_find(c->db, c->arena, c->idem, &a, &err) < 0) {
        fail_call(c, PROBLEM_STATUS, &err);
        return true;
    }
    if (a.outcome == IDEM_OTHER_BODY)
        fail_call_with(c, PROBLEM_UNPROCESSABLE, AS_E_CONFLICT,
                       "this Idempotency-Key was used with another body");
    if (a.outcome == IDEM_REPEATED)
        answer_stored(c, &a);
    return a.outcome != IDEM_NEW;
}

/* Store the answer under the key. Only successes are stored: a refused request changed nothing and
 * may succeed the next time. */
static void store_answer(struct call *c)
{
    const struct http_answer *a = &c->x->answer;
    struct as_err err = {0};
    const char *location = NULL;
    if (!c->idem || a->status < 200 || a->status > 299)
        return;
    for (size_t i = 0; i < a->n_headers; i++)
        if (as_streq(a->headers[i].name, "Location"))
            location = a->headers[i].value;
    if (idempotency_store(c->db, c->idem, a->status, a->bytes, location, &err) < 0)
        log_write(LOG_WARN, "answer not stored", "request_id=%s detail=\"%s\"", c->request_id,
                  err.msg);
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
    st = read_key(c, err);
    if (st < 0)
        return st;
    *ret_by_key = answer_by_key(c);
    if (*ret_by_key)
        return AS_OK;
    route_fn *run = c->commit.then ? c->commit.then : c->route->run;
    c->commit.then = NULL;
    st = run(c, err);
    if (st == AS_E_CONFLICT) /* another request with the same key may have ended first */
        *ret_by_key = answer_by_key(c);
    return *ret_by_key ? AS_OK : st;
}

/* The request of somebody with a valid token failed: say that it is for the disk, if it is. */
static void explain_outage(const struct call *c, struct as_err *err)
{
    char room[300];
    if (err->code == AS_E_UNAVAILABLE && c->who.id[0] && lacks_room(c->dispatch, room, sizeof room))
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
        fail_call(c, problem_kind_of(c->route->flags, &err), &err);
    } else if (!is_by_key && !c->wants_wait && !c->commit.then)
        store_answer(c);
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
    fail_call(c, PROBLEM_STATUS, &err);
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

/* How many waiting runners to retry: no more than the committer has room for. If the query fails,
 * all of them: each then gets the error and answers 503. */
static size_t probe_claims(const struct dispatch *d)
{
    int64_t n = 0;
    struct committer_figures f;
    if (claims_pending(d->store, d->suggester, &n, NULL) < 0)
        return SIZE_MAX;
    committer_figures_get(d->committer, &f);
    int64_t room = f.queued < CLAIMS_QUEUED_MAX ? CLAIMS_QUEUED_MAX - f.queued : 0;
    return (size_t)(n < room ? n : room);
}

/* How many clients that wait for each of these sweeps to retry: all of them, or none. */
static void probe_asks(const struct dispatch *d, const int64_t *sweeps, size_t n, size_t *ret)
{
    bool worth[WAITING_KEYS_MAX] = {false};
    bool is_known = asks_pending(d->store, d->suggester, sweeps, n, worth, NULL) == AS_OK;
    for (size_t i = 0; i < n; i++)
        ret[i] = !is_known || worth[i] ? SIZE_MAX : 0;
}

/* The same for requests that wait for the next world of a gang. */
static void probe_worlds(const struct dispatch *d, const int64_t *keys, size_t n, size_t *ret)
{
    bool changed[WAITING_KEYS_MAX] = {false};
    bool is_known = gang_changed(d->store, keys, n, changed, NULL) == AS_OK;
    for (size_t i = 0; i < n; i++)
        ret[i] = !is_known || changed[i] ? SIZE_MAX : 0;
}

void dispatch_probe(void *ctx, const int64_t *keys, size_t n, size_t *ret)
{
    const struct dispatch *d = ctx;
    int64_t sweeps[WAITING_KEYS_MAX], worlds[WAITING_KEYS_MAX];
    size_t of_sweeps[WAITING_KEYS_MAX] = {0}, of_worlds[WAITING_KEYS_MAX] = {0};
    size_t n_sweeps = 0, n_worlds = 0, s = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        if (gang_is_wait_key(keys[i]))
            worlds[n_worlds++] = keys[i];
        else if (keys[i] != WAITING_CLAIMS)
            sweeps[n_sweeps++] = keys[i];
    }
    if (n_sweeps)
        probe_asks(d, sweeps, n_sweeps, of_sweeps);
    if (n_worlds)
        probe_worlds(d, worlds, n_worlds, of_worlds);
    for (size_t i = 0; i < n; i++)
        ret[i] = keys[i] == WAITING_CLAIMS   ? probe_claims(d)
                 : gang_is_wait_key(keys[i]) ? of_worlds[w++]
                                             : of_sweeps[s++];
}

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
        fail_call(c, kind, err);
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
