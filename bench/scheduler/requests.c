#include "bench/scheduler/requests.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/scheduler/slots.h"

double requests_rate(double seconds)
{
    struct server s;
    struct wire wires[SLOTS_MAX];
    AS_AUTO(str_done) struct str body = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int64_t done = 0;
    server_start(&s);
    (void)server_add_runner(&s, "bench", 1);
    str_puts(&body, "{}");
    int64_t begin_ns = clock_mono_ns(), now = begin_ns;
    for (int i = 0; i < SLOTS_MAX; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &wires[i]};
        wire_open(&wires[i], s.port);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, wires[i].fd, &ev) != 0)
            wire_give_up("requests", "epoll");
        wire_send(&wires[i], "POST", "/v1/runners/bench/claim", s.runners, &body);
    }
    for (; done == 0 || (double)(now - begin_ns) < seconds * NS_PER_S; now = clock_mono_ns()) {
        struct epoll_event events[SLOTS_MAX];
        int n = epoll_wait(epoll, events, SLOTS_MAX, 60000);
        if (n <= 0)
            wire_give_up("requests", "no answer within a minute");
        for (int i = 0; i < n; i++) {
            struct answer a;
            if (!wire_receive(events[i].data.ptr, &a))
                continue;
            if (a.status != 400)
                wire_give_up("requests", a.body);
            done++;
            wire_repeat(events[i].data.ptr);
        }
    }
    for (int i = 0; i < SLOTS_MAX; i++)
        wire_close(&wires[i]);
    (void)close(epoll);
    server_stop(&s);
    return (double)done / ((double)(now - begin_ns) / NS_PER_S);
}
