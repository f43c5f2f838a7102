#include "bench/scheduler/asks.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench/scheduler/server.h"

static void add_sweep(struct server *s, const char *method, int trials)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "{\"name\":\"asked\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                 "\"parameters\":{");
    for (int i = 0; i < 5; i++)
        str_printf(&b, "\"x%d\":{\"type\":\"float\",\"min\":-5,\"max\":5},", i);
    str_printf(&b,
               "\"kind\":{\"type\":\"categorical\",\"values\":[\"a\",\"b\",\"c\"]}},\"search\":"
               "{\"method\":\"%s\",\"seed\":7},\"limits\":{\"max_trials\":%d},\"ensemble\":false}",
               method, trials);
    json_decref(server_call(s, "POST", "/v1/sweeps", b.s));
}

/* The sum of the squares, and 3 more unless the kind is "b". */
static double loss_of(const json_t *params)
{
    double sum = 0;
    for (int i = 0; i < 5; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "x%d", i);
        double x = json_number_value(json_object_get(params, name));
        sum += x * x;
    }
    const char *kind = json_string_value(json_object_get(params, "kind"));
    return sum + (kind && strcmp(kind, "b") == 0 ? 0 : 3);
}

static double since_ms(int64_t begin_ns)
{
    return (double)(clock_mono_ns() - begin_ns) / NS_PER_MS;
}

void asks_run(const char *method, int trials, struct times *asks, struct times *tells)
{
    struct server s;
    server_start(&s);
    add_sweep(&s, method, trials);
    for (int i = 0; i < trials;) {
        char path[100], body[100];
        int64_t begin_ns = clock_mono_ns();
        JSON_AUTO asked =
            server_call(&s, "POST", "/v1/sweeps/asked/suggestions", "{\"client\":\"bench\"}");
        const json_t *item = json_array_get(json_object_get(asked, "items"), 0);
        if (!item)
            continue; /* nothing came within its wait */
        times_add(asks, since_ms(begin_ns));
        (void)snprintf(path, sizeof path, "/v1/sweeps/asked/suggestions/%lld/complete",
                       (long long)json_integer_value(json_object_get(item, "number")));
        (void)snprintf(body, sizeof body, "{\"client\":\"bench\",\"metrics\":{\"loss\":%.6f}}",
                       loss_of(json_object_get(item, "params")));
        begin_ns = clock_mono_ns();
        json_decref(server_call(&s, "POST", path, body));
        times_add(tells, since_ms(begin_ns));
        i++;
    }
    server_stop(&s);
}
