#include "tests/api/server/asking.h"

#include <stdarg.h>
#include <stdio.h>

#include "tests/support/check_main.h"

struct reply post_to_sweep(const char *body, const char *fmt, ...)
{
    char path[300];
    struct rest user = as_user();
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    return rest_call(&user, "POST", path, body);
}

void make_asked_sweep(const char *name, const char *method, int max_trials, const char *more)
{
    char body[800];
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"%s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1},\"y\":{\"type\":"
                   "\"categorical\",\"values\":[\"a\",\"b\",\"c\"]}},\"search\":{\"method\":\"%s\","
                   "\"seed\":7},\"limits\":{\"max_trials\":%d%s}}",
                   name, method, max_trials, more);
    REPLY_AUTO r = post_to_sweep(body, "/v1/sweeps");
    ck_status(r, 201);
    ck_assert_str_eq(reply_str(&r, "id"), name);
}

struct reply ask_trials_of(const char *sweep, const char *client, int count, int wait_ms)
{
    char body[200];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"count\":%d,\"wait_ms\":%d}", client,
                   count, wait_ms);
    return post_to_sweep(body, "/v1/sweeps/%s/suggestions", sweep);
}

long long ask_one(const char *sweep, const char *client)
{
    REPLY_AUTO r = ask_trials_of(sweep, client, 1, 20000);
    ck_status(r, 200);
    ck_assert_msg(json_array_size(reply_get(&r, "items")) == 1, "%s", str_cstr(&r.body));
    return reply_int(&r, "items.0.number");
}

size_t n_items(const struct reply *r)
{
    return json_array_size(reply_get(r, "items"));
}

struct reply tell_result(const char *sweep, long long number, const char *client, const char *rest)
{
    char body[8192];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\"%s%s}", client, *rest ? "," : "", rest);
    return post_to_sweep(body, "/v1/sweeps/%s/suggestions/%lld/complete", sweep, number);
}
