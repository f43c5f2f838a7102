/* The state machine of a slot is FREE -> CLAIMS -> MEASURES -> ENDS -> FREE; each state but FREE
 * waits for the answer to one request. */
#include "bench/scheduler/slots.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/scheduler/trial_name.h"

enum phase { FREE, CLAIMS, MEASURES, ENDS };

struct slot {
    struct wire wire;
    const struct worker *runner;
    enum phase phase;
    struct trial_name trial;
    int64_t due_ns;
    int requests; /* with measurements, that this trial has sent */
};

struct slots {
    struct load load;
    struct slot all[SLOTS_MAX];
    /* A ring: each connection is used in its turn, so that the server closes none as idle. */
    struct slot *free[SLOTS_MAX];
    int first_free, n_free;
};

static void post(struct load *l, struct slot *s, const char *path, enum phase phase)
{
    wire_send(&s->wire, "POST", path, l->plan->server->runners, &l->body);
    s->phase = phase;
}

static void send_claim(struct load *l, struct slot *s)
{
    char path[64];
    str_clear(&l->body);
    str_printf(&l->body,
               "{\"epoch\":%lld,\"claim_id\":\"c%lld.%lld\",\"max_trials\":1,\"wait_ms\":20000}",
               (long long)s->runner->epoch, (long long)s->runner->epoch, (long long)++l->serial);
    (void)snprintf(path, sizeof path, "/v1/runners/%s/claim", s->runner->name);
    post(l, s, path, CLAIMS);
}

static void send_measurements(struct load *l, struct slot *s)
{
    char path[200];
    int n = l->plan->points;
    str_clear(&l->body);
    str_puts(&l->body, "{\"items\":[");
    for (int i = 0; i < n; i++)
        str_printf(&l->body, "%s{\"step\":%d,\"metrics\":{\"loss\":0.%03d}}", i > 0 ? "," : "",
                   s->requests * n + i, i % 1000);
    str_puts(&l->body, "]}");
    trial_path(&s->trial, "measurements", path, sizeof path);
    s->requests++;
    post(l, s, path, MEASURES);
}

static void send_end(struct load *l, struct slot *s)
{
    char path[200];
    str_clear(&l->body);
    str_puts(&l->body, "{\"outcome\":\"completed\",\"exit_code\":0}");
    trial_path(&s->trial, "complete", path, sizeof path);
    post(l, s, path, ENDS);
}

static void begin_cycle(struct load *l, struct slot *s, int64_t due_ns)
{
    s->due_ns = due_ns;
    s->requests = 0;
    send_claim(l, s);
}

static void on_claimed(struct load *l, struct slot *s, const char *body, int64_t now)
{
    if (!trial_name_next(&body, &s->trial)) {
        send_claim(l, s); /* nothing came within its wait */
        return;
    }
    load_claimed(l, s->due_ns, now);
    send_measurements(l, s);
}

static void on_measured(struct load *l, struct slot *s, int64_t now)
{
    load_measured(l, now);
    if (s->requests < l->plan->requests && now < l->until_ns)
        send_measurements(l, s);
    else
        send_end(l, s);
}

static void add_free(struct slots *x, struct slot *s)
{
    x->free[(x->first_free + x->n_free++) % SLOTS_MAX] = s;
}

static struct slot *take_free(struct slots *x)
{
    struct slot *s = x->free[x->first_free];
    x->first_free = (x->first_free + 1) % SLOTS_MAX;
    x->n_free--;
    return s;
}

static void on_ended(struct slots *x, struct slot *s, int64_t now)
{
    load_completed(&x->load, s->due_ns, now);
    s->phase = FREE;
    if (x->load.plan->rate > 0 || !load_goes_on(&x->load, now))
        add_free(x, s);
    else
        begin_cycle(&x->load, s, now);
}

static void on_answer(struct slots *x, struct slot *s, const struct answer *a)
{
    int64_t now = clock_mono_ns();
    if (a->status == 503 || a->status == 429) {
        x->load.ret->refused++;
        wire_repeat(&s->wire);
    } else if (a->status != 200) {
        wire_give_up("answer", a->body);
    } else if (s->phase == CLAIMS) {
        on_claimed(&x->load, s, a->body, now);
    } else if (s->phase == MEASURES) {
        on_measured(&x->load, s, now);
    } else {
        on_ended(x, s, now);
    }
}

/* Begin the cycles that are due and find a free slot. */
static void serve_due(struct slots *x, int64_t now)
{
    int64_t due;
    if (x->load.plan->rate > 0)
        arrivals_advance(&x->load.arrivals, now);
    while (x->n_free > 0 && arrivals_take(&x->load.arrivals, &due))
        begin_cycle(&x->load, take_free(x), due);
}

void slots_run(const struct load_plan *plan, struct load_result *ret)
{
    AS_AUTO(as_freep) struct slots *x = calloc(1, sizeof *x);
    if (!x)
        wire_give_up("load", "out of memory");
    load_begin(&x->load, plan, ret);
    int64_t now = clock_mono_ns();
    for (int i = 0; i < plan->slots; i++) {
        struct slot *s = &x->all[i];
        load_connect(&x->load, &s->wire, s);
        s->runner = &x->load.runners[i % plan->runners];
        if (plan->rate > 0)
            add_free(x, s);
        else
            begin_cycle(&x->load, s, now);
    }
    while (load_goes_on(&x->load, now) || x->n_free < plan->slots || x->load.arrivals.n > 0) {
        struct epoll_event events[SLOTS_MAX];
        serve_due(x, now);
        int n = load_wait(&x->load, events, SLOTS_MAX, &now);
        for (int i = 0; i < n; i++) {
            struct slot *s = events[i].data.ptr;
            struct answer a;
            if (wire_receive(&s->wire, &a))
                on_answer(x, s, &a);
        }
    }
    for (int i = 0; i < plan->slots; i++)
        wire_close(&x->all[i].wire);
    load_finish(&x->load);
}
