/* The checks of a head, in the order of what they tell: whether a route exists is told to
 * everybody, what a token may do to those who have it. What is found wrong is answered here, and
 * then the transport reads no body. */
#include "api/server/request_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/server/auth.h"
#include "api/server/call.h"
#include "api/server/dispatch_parts.h"
#include "api/server/refuse.h"
#include "api/server/route_find.h"
#include "api/server/token_rates.h"
#include "api/server/web_files.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define JSON_BODY_MAX ((int64_t)1 << 20) /* bytes */
#define IGNORED_BODY_MAX 1024 /* bytes of a body that are ignored where the route has no body */

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
    refuse_with(c, PROBLEM_MEDIA_TYPE, AS_E_INVAL, msg);
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
        refuse(c, PROBLEM_STATUS, &err);
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
        x->body_max = JSON_BODY_MAX;
        return;
    case ROUTE_BODY_BYTES:
        x->body_kind = HTTP_BODY_SINK;
        x->body_max = c->dispatch->max_blob_bytes;
        if (blob_put_create(call_param(c, "sha256"), &c->upload, &err) < 0)
            refuse(c, PROBLEM_STATUS, &err);
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
        refuse_with(c, PROBLEM_OVER_RATE, AS_E_UNAVAILABLE,
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
        refuse_with(c, PROBLEM_FORBIDDEN, AS_E_DENIED,
                    "the role of this token does not allow this");
        return;
    }
    if (c->route->roles && c->who.role == ROLE_TRIAL && !is_of_own_attempt(c)) {
        refuse_with(c, PROBLEM_FORBIDDEN, AS_E_DENIED,
                    "the token of an attempt is good for this attempt, its trial and its sweep "
                    "alone");
        return;
    }
    if (!check_query(c) || !check_media_type(c))
        return;
    if (c->route->flags & ROUTE_LOCAL) {
        if (c->route->run(c, &err) < 0)
            refuse(c, PROBLEM_STATUS, &err);
        return;
    }
    expect_body(c);
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
    if (refuse_is_for_disk(c->dispatch, room, sizeof room))
        why = auth_knew(c->dispatch->auth, c->auth.token) ? room : "free some space";
    (void)snprintf(text, sizeof text, "the token cannot be checked now%s%s",
                   *why ? ": the disk of the database is full: " : "", why);
    refuse_with(c, PROBLEM_STATUS, err->code, text);
}

static void fail_authentication(struct call *c)
{
    const struct as_err *err = &c->auth.err;
    if (c->auth.is_one_too_many) {
        refuse_with(c, PROBLEM_TOO_MANY, AS_E_DENIED,
                    "the token is not valid, and this address has sent too many such tokens; "
                    "wait a minute");
        c->x->answer.close = true;
    } else if (err->code == AS_E_DENIED) {
        refuse(c, PROBLEM_UNAUTHORIZED, err);
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
        refuse_with(c, PROBLEM_UNAUTHORIZED, AS_E_DENIED,
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
    refuse_with(c, PROBLEM_METHOD, AS_E_INVAL, "the method is not allowed here; see Allow");
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
    refuse_with(c, PROBLEM_STATUS, AS_E_NOT_FOUND, "there is nothing at this path");
}

static void route_call(struct call *c)
{
    const struct http_head *h = &c->x->head;
    struct route_match m;
    struct as_err err = {0};
    const struct dispatch *d = c->dispatch;
    if (route_find(d->routes, d->n_routes, h->method, h->path, c->arena, &m, &err) < 0) {
        refuse(c, PROBLEM_STATUS, &err);
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

void request_head_check(struct call *c)
{
    if (is_from_here(c->dispatch, &c->x->head))
        route_call(c);
    else
        refuse_with(c, PROBLEM_FORBIDDEN, AS_E_DENIED,
                    "the Host is not one of this server's (assayd --public-host), or the Origin is "
                    "another site");
}
