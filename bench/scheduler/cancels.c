#include "bench/scheduler/cancels.h"

#include <stdio.h>

#include "base/clock.h"

static void *work(void *arg)
{
    struct cancels *c = arg;
    struct wire w;
    AS_AUTO(str_done) struct str body = {0};
    str_puts(&body, "{\"state\":\"cancelled\"}");
    wire_open(&w, c->server->port);
    for (int i = 0; i < c->sweeps && !atomic_load(&c->is_over); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/v1/sweeps/victim-%d", i);
        int64_t begin_ns = clock_mono_ns();
        struct answer a = wire_call(&w, "PATCH", path, c->server->admin, &body);
        if (a.status != 200)
            wire_give_up(path, a.body);
        times_add(&c->times, (double)(clock_mono_ns() - begin_ns) / NS_PER_MS);
    }
    wire_close(&w);
    return NULL;
}

void cancels_begin(void *arg)
{
    struct cancels *c = arg;
    if (pthread_create(&c->thread, NULL, work, c) != 0)
        wire_give_up("cancel", "no thread");
}

void cancels_end(struct cancels *c)
{
    atomic_store(&c->is_over, true);
    (void)pthread_join(c->thread, NULL);
}
