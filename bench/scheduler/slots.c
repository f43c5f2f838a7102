/* The state machine of a slot is FREE -> CLAIMS -> MEASURES -> ENDS -> FREE; each state but FREE
 * waits for the answer to one request. Cycles of an open load become due at times that are drawn
 * before any answer is known, and wait in a queue while no slot is free, so a server that stalls
 * is measured with all the requests that it delays. */
#include "bench/scheduler/slots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/scheduler/trial_name.h"

#define DUE_MAX (1 << 20)
#define HANG_NS (60 * NS_PER_S)

enum phase { FREE, CLAIMS, MEASURES, ENDS };

struct worker {
    char name[24];
    char claim_path[64];
    int64_t epoch;
};

struct slot {
    struct wire wire;
    struct worker *runner;
    enum phase phase;
    struct trial_name trial;
    int64_t due_ns;
    int requests; /* with measurements, that this trial has sent */
};

struct load {
    const struct load_plan *plan;
    struct load_result *ret;
    struct worker runners[RUNNERS_MAX];
    struct slot slots[SLOTS_MAX];
    struct slot *free[SLOTS_MAX]; /* a stack */
    int n_free;
    struct rng rng;
    int64_t next_due_ns; /* of an open load */
    int64_t *due;        /* ring of the cycles that wait for a slot */
    size_t due_first, due_n;
    int64_t from_ns, until_ns; /* what counts */
    int64_t serial;
    int64_t cycles, points;
    struct str body;
    int epoll;
};

static bool counts(const struct load *l, int64_t now)
{
    return now >= l->from_ns && now < l->until_ns;
}

static void send_claim(struct load *l, struct slot *s)
{
    str_clear(&l->body);
    str_printf(&l->body,
               "{\"epoch\":%lld,\"claim_id\":\"c%lld\",\"max_trials\":1,\"wait_ms\":20000}",
               (long long)s->runner->epoch, (long long)++l->serial);
    wire_send(&s->wire, "POST", s->runner->claim_path, l->plan->server->runners, &l->body);
    s->phase = CLAIMS;
}

static void send_measurements(struct load *l, struct slot *s)
{
    char path[200];
    str_clear(&l->body);
    str_puts(&l->body, "{\"items\":[");
    for (int i = 0; i < l->plan->points; i++)
        str_printf(&l->body, "%s{\"step\":%d,\"metrics\":{\"loss\":0.%03d}}", i > 0 ? "," : "",
                   s->requests * l->plan->points + i, i % 1000);
    str_puts(&l->body, "]}");
    trial_path(&s->trial, "measurements", path, sizeof path);
    wire_send(&s->wire, "POST", path, l->plan->server->runners, &l->body);
    s->requests++;
    s->phase = MEASURES;
}

static void send_end(struct load *l, struct slot *s)
{
    char path[200];
    str_clear(&l->body);
    str_puts(&l->body, "{\"outcome\":\"completed\",\"exit_code\":0}");
    trial_path(&s->trial, "complete", path, sizeof path);
    wire_send(&s->wire, "POST", path, l->plan->server->runners, &l->body);
    s->phase = ENDS;
}

static void begin_cycle(struct load *l, struct slot *s, int64_t due_ns)
{
    s->due_ns = due_ns;
    s->requests = 0;
    send_claim(l, s);
}

static void free_slot(struct load *l, struct slot *s, int64_t now)
{
    s->phase = FREE;
    if (now >= l->until_ns || l->plan->rate > 0)
        l->free[l->n_free++] = s;
    else
        begin_cycle(l, s, now);
}

static void on_claimed(struct load *l, struct slot *s, const char *body, int64_t now)
{
    const char *at = body;
    if (!trial_name_next(&at, &s->trial)) {
        send_claim(l, s); /* nothing came within wait_ms */
        return;
    }
    if (counts(l, now))
        times_add(&l->ret->claims, (double)(now - s->due_ns) / NS_PER_MS);
    send_measurements(l, s);
}

static void on_answer(struct load *l, struct slot *s, const struct answer *a)
{
    int64_t now = clock_mono_ns();
    if (a->status == 503 || a->status == 429) {
        l->ret->refused++;
        wire_repeat(&s->wire);
        return;
    }
    if (a->status != 200)
        wire_give_up("answer", a->body);
    if (s->phase == CLAIMS) {
        on_claimed(l, s, a->body, now);
    } else if (s->phase == MEASURES) {
        l->points += counts(l, now) ? l->plan->points : 0;
        if (s->requests < l->plan->requests && now < l->until_ns)
            send_measurements(l, s);
        else
            send_end(l, s);
    } else {
        if (counts(l, now)) {
            l->cycles++;
            times_add(&l->ret->cycles, (double)(now - s->due_ns) / NS_PER_MS);
        }
        free_slot(l, s, now);
    }
}

/* Put the cycles that are due into the queue, and begin those for which a slot is free. */
static void serve_due(struct load *l, int64_t now)
{
    while (l->plan->rate > 0 && l->next_due_ns <= now && l->next_due_ns < l->until_ns) {
        if (l->due_n == DUE_MAX)
            wire_give_up("load", "the server is far behind the rate");
        l->due[(l->due_first + l->due_n++) % DUE_MAX] = l->next_due_ns;
        l->next_due_ns += (int64_t)(-log(1 - rng_uniform(&l->rng)) / l->plan->rate * NS_PER_S);
    }
    while (l->due_n > 0 && l->n_free > 0) {
        begin_cycle(l, l->free[--l->n_free], l->due[l->due_first]);
        l->due_first = (l->due_first + 1) % DUE_MAX;
        l->due_n--;
    }
}

static void prepare(struct load *l)
{
    const struct load_plan *plan = l->plan;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->due = plan->rate > 0 ? malloc(DUE_MAX * sizeof *l->due) : NULL;
    if (l->epoll < 0 || (plan->rate > 0 && !l->due))
        wire_give_up("load", "out of memory or descriptors");
    rng_init(&l->rng, 1, 26);
    for (int i = 0; i < plan->runners; i++) {
        struct worker *r = &l->runners[i];
        (void)snprintf(r->name, sizeof r->name, "bench-%d", i);
        (void)snprintf(r->claim_path, sizeof r->claim_path, "/v1/runners/%s/claim", r->name);
        r->epoch = server_add_runner(plan->server, r->name, plan->slots / plan->runners);
    }
    for (int i = 0; i < plan->slots; i++) {
        struct slot *s = &l->slots[i];
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
        wire_open(&s->wire, plan->server->port);
        s->runner = &l->runners[i % plan->runners];
        l->free[l->n_free++] = s;
        if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->wire.fd, &ev) != 0)
            wire_give_up("load", "epoll");
    }
}

static void finish(struct load *l)
{
    for (int i = 0; i < l->plan->slots; i++)
        wire_close(&l->slots[i].wire);
    (void)close(l->epoll);
    free(l->due);
    str_done(&l->body);
}

/* How long to wait for answers: to the next cycle, and to the two times at which the processor time
 * is read. */
static struct timespec patience(const struct load *l, int64_t now)
{
    int64_t until = now + HANG_NS;
    const int64_t times[] = {l->from_ns, l->until_ns, l->plan->rate > 0 ? l->next_due_ns : 0};
    for (size_t i = 0; i < AS_ARRAY_LEN(times); i++)
        until = times[i] > now && times[i] < until ? times[i] : until;
    return (struct timespec){(until - now) / NS_PER_S, (until - now) % NS_PER_S};
}

static void receive(struct load *l, int64_t now)
{
    struct epoll_event events[SLOTS_MAX];
    const struct timespec wait = patience(l, now);
    int n = epoll_pwait2(l->epoll, events, SLOTS_MAX, &wait, NULL);
    for (int i = 0; i < n; i++) {
        struct slot *s = events[i].data.ptr;
        struct answer a;
        if (wire_receive(&s->wire, &a))
            on_answer(l, s, &a);
    }
    if (n <= 0 && clock_mono_ns() - now >= HANG_NS)
        wire_give_up("load", "no answer within a minute");
}

void slots_run(const struct load_plan *plan, struct load_result *ret)
{
    struct load *l = calloc(1, sizeof *l);
    struct usage begin = {0}, end = {0};
    if (!l)
        wire_give_up("load", "out of memory");
    l->plan = plan;
    l->ret = ret;
    times_clear(&ret->claims);
    times_clear(&ret->cycles);
    ret->refused = 0;
    prepare(l);
    int64_t now = clock_mono_ns();
    l->next_due_ns = now;
    l->from_ns = now + (int64_t)(plan->warm_s * NS_PER_S);
    l->until_ns = l->from_ns + (int64_t)(plan->seconds * NS_PER_S);
    while (plan->rate <= 0 && l->n_free > 0)
        begin_cycle(l, l->free[--l->n_free], now);
    while (now < l->until_ns || l->n_free < plan->slots || l->due_n > 0) {
        serve_due(l, now);
        receive(l, now);
        now = clock_mono_ns();
        if (begin.at_s == 0 && now >= l->from_ns)
            begin = usage_now(plan->server->pid);
        if (end.at_s == 0 && now >= l->until_ns)
            end = usage_now(plan->server->pid);
    }
    ret->cycles_per_s = (double)l->cycles / plan->seconds;
    ret->points_per_s = (double)l->points / plan->seconds;
    ret->used = usage_since(&begin, &end);
    finish(l);
    free(l);
}

void load_result_done(struct load_result *r)
{
    times_done(&r->claims);
    times_done(&r->cycles);
}
