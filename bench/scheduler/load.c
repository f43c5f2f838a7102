#include "bench/scheduler/load.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define HANG_NS (60 * NS_PER_S)

void load_begin(struct load *l, const struct load_plan *plan, struct load_result *ret)
{
    *l = (struct load){.plan = plan, .ret = ret, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (l->epoll < 0)
        wire_give_up("load", "epoll");
    times_clear(&ret->claims);
    times_clear(&ret->cycles);
    ret->refused = 0;
    for (int i = 0; i < plan->runners; i++) {
        struct worker *r = &l->runners[i];
        (void)snprintf(r->name, sizeof r->name, "bench-%d", i);
        r->epoch = server_add_runner(plan->server, r->name, plan->slots / plan->runners);
    }
    int64_t now = clock_mono_ns();
    l->from_ns = now + (int64_t)(plan->warm_s * NS_PER_S);
    l->until_ns = l->from_ns + (int64_t)(plan->seconds * NS_PER_S);
    if (plan->rate > 0)
        arrivals_init(&l->arrivals, plan->rate, now, l->until_ns);
}

void load_finish(struct load *l)
{
    l->ret->cycles_per_s = (double)l->cycles * NS_PER_S / (double)(l->last_ns - l->first_ns);
    int64_t end_ns = l->measured_ns > l->until_ns ? l->measured_ns : l->until_ns;
    l->ret->points_per_s = (double)l->points * NS_PER_S / (double)(end_ns - l->from_ns);
    l->ret->us = usage_us(&l->begin, &l->end, l->ret->cycles_per_s * (l->end.at_s - l->begin.at_s));
    l->ret->used = usage_since(&l->begin, &l->end);
    (void)close(l->epoll);
    arrivals_done(&l->arrivals);
    str_done(&l->body);
}

void load_connect(struct load *l, struct wire *w, void *ptr)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = ptr};
    wire_open(w, l->plan->server->port);
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &ev) != 0)
        wire_give_up("load", "epoll");
}

bool load_goes_on(const struct load *l, int64_t now_ns)
{
    bool lacks = l->cycles == 0 || (l->plan->points > 0 && l->points == 0);
    return now_ns < l->until_ns || (l->plan->rate <= 0 && lacks);
}

bool load_counts(const struct load *l, int64_t at_ns)
{
    return at_ns >= l->from_ns && at_ns < l->until_ns;
}

void load_claimed(struct load *l, int64_t due_ns, int64_t now_ns)
{
    if (load_counts(l, due_ns))
        times_add(&l->ret->claims, (double)(now_ns - due_ns) / NS_PER_MS);
}

void load_measured(struct load *l, int64_t now_ns)
{
    if (now_ns < l->from_ns || (now_ns >= l->until_ns && l->points > 0))
        return;
    l->points += l->plan->points;
    l->measured_ns = now_ns;
}

void load_completed(struct load *l, int64_t due_ns, int64_t now_ns)
{
    if (load_counts(l, due_ns))
        times_add(&l->ret->cycles, (double)(now_ns - due_ns) / NS_PER_MS);
    if (l->first_ns == 0 && now_ns >= l->from_ns)
        l->first_ns = now_ns;
    bool is_behind = l->last_ns >= l->until_ns && now_ns > l->last_ns;
    if (l->first_ns == 0 || now_ns == l->first_ns || is_behind)
        return;
    l->last_ns = now_ns;
    l->cycles++;
}

/* How long to wait for answers: to the next cycle, and to the two times at which the processor time
 * is read. */
static struct timespec patience(const struct load *l, int64_t now)
{
    int64_t until = now + HANG_NS;
    const int64_t times[] = {l->from_ns, l->until_ns, l->plan->rate > 0 ? l->arrivals.next_ns : 0};
    for (size_t i = 0; i < AS_ARRAY_LEN(times); i++)
        until = times[i] > now && times[i] < until ? times[i] : until;
    return (struct timespec){(until - now) / NS_PER_S, (until - now) % NS_PER_S};
}

int load_wait(struct load *l, struct epoll_event *events, int max, int64_t *ret_now_ns)
{
    int64_t before = clock_mono_ns();
    const struct timespec wait = patience(l, before);
    int n = epoll_pwait2(l->epoll, events, max, &wait, NULL);
    int64_t now = clock_mono_ns();
    if (n <= 0 && now - before >= HANG_NS)
        wire_give_up("load", "no answer within a minute");
    if (l->begin.at_s == 0 && now >= l->from_ns) {
        l->begin = usage_now(l->plan->server->pid);
        if (l->plan->on_warm)
            l->plan->on_warm(l->plan->arg);
    }
    if (l->end.at_s == 0 && now >= l->until_ns)
        l->end = usage_now(l->plan->server->pid);
    *ret_now_ns = now;
    return n > 0 ? n : 0;
}

void load_result_done(struct load_result *r)
{
    times_done(&r->claims);
    times_done(&r->cycles);
}
