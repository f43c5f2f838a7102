/* A runner's cycles are in two places: `wanted`, those that a claim is to serve, and `held`, those
 * whose trials the latest answers brought. A request takes all that is held, and claims for all
 * that is wanted. It may claim for the slots that it frees itself, as runners do: the server
 * decides the ends of a request before its claim. Without that an open load would have half of the
 * slots of a closed one: a cycle would keep its slot for two requests instead of one.
 *
 * In an open load a cycle that is due goes to a runner that has room and no request under way, or
 * waits for the first one that has. */
#include "bench/scheduler/batches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/scheduler/trial_name.h"

struct cycle {
    struct trial_name trial;
    int64_t due_ns;
};

struct sender {
    struct wire wire;
    const struct worker *runner;
    char path[64];
    bool is_busy; /* a request is under way */
    int slots;    /* that have no cycle, neither held nor wanted */
    int n_again;  /* held cycles whose slots are wanted again: their request frees them */
    struct cycle held[SLOTS_MAX];
    int n_held;
    int64_t wanted[SLOTS_MAX]; /* when each was due, the oldest first */
    int n_wanted;
    int64_t claim; /* serial of the latest one, which is repeated until it has brought a trial */
    bool is_claim_open;
};

struct batches {
    struct load load;
    struct sender all[RUNNERS_MAX];
    int n_busy;
};

/* How many cycles its next request may claim for. */
static int room(const struct sender *s)
{
    return s->is_busy ? 0 : s->slots + s->n_held - s->n_again;
}

static void want(struct sender *s, int64_t due_ns)
{
    s->wanted[s->n_wanted++] = due_ns;
    if (s->slots > 0)
        s->slots--;
    else
        s->n_again++;
}

static void add_attempt(struct str *b, int i, const struct trial_name *t)
{
    str_printf(b, "%s{\"sweep\":\"%s\",\"number\":%lld,\"attempt\":%lld,", i > 0 ? "," : "",
               t->sweep, (long long)t->number, (long long)t->attempt);
}

static void write_parts(struct load *l, struct sender *s)
{
    struct str *b = &l->body;
    str_clear(b);
    str_puts(b, "{\"measurements\":[");
    for (int i = 0; i < s->n_held; i++) {
        add_attempt(b, i, &s->held[i].trial);
        str_puts(b, "\"items\":[");
        for (int k = 0; k < l->plan->points; k++)
            str_printf(b, "%s{\"step\":%d,\"metrics\":{\"loss\":0.%03d}}", k > 0 ? "," : "", k,
                       k % 1000);
        str_puts(b, "]}");
    }
    str_puts(b, "],\"ends\":[");
    for (int i = 0; i < s->n_held; i++) {
        add_attempt(b, i, &s->held[i].trial);
        str_puts(b, "\"outcome\":\"completed\",\"exit_code\":0}");
    }
    str_puts(b, "],\"claim\":");
    if (s->n_wanted > 0) {
        if (!s->is_claim_open)
            s->claim = ++l->serial;
        s->is_claim_open = true;
        str_printf(b,
                   "{\"epoch\":%lld,\"claim_id\":\"c%lld.%lld\",\"max_trials\":%d,"
                   "\"wait_ms\":20000}}",
                   (long long)s->runner->epoch, (long long)s->runner->epoch, (long long)s->claim,
                   s->n_wanted);
    } else {
        str_puts(b, "null}");
    }
}

/* Claim for the slots that are free, and for those that the request frees: at once in a closed
 * load, for the cycles that are due in an open one. */
static void fill(struct batches *x, struct sender *s)
{
    int64_t now = clock_mono_ns(), due_ns;
    bool is_closed = x->load.plan->rate <= 0;
    while (room(s) > 0 && is_closed && load_goes_on(&x->load, now))
        want(s, now);
    while (room(s) > 0 && !is_closed && arrivals_take(&x->load.arrivals, &due_ns))
        want(s, due_ns);
}

static void send_next(struct batches *x, struct sender *s)
{
    if (s->is_busy)
        return;
    fill(x, s);
    if (s->n_held == 0 && s->n_wanted == 0)
        return;
    write_parts(&x->load, s);
    wire_send(&s->wire, "POST", s->path, x->load.plan->server->runners, &x->load.body);
    s->is_busy = true;
    x->n_busy++;
}

static void on_ended(struct batches *x, struct sender *s, int64_t now)
{
    for (int i = 0; i < s->n_held; i++) {
        load_completed(&x->load, s->held[i].due_ns, now);
        load_measured(&x->load, now);
    }
    s->slots += s->n_held - s->n_again;
    s->n_held = s->n_again = 0;
}

/* The trials of the claim stand behind those that have ended. */
static void on_claimed(struct batches *x, struct sender *s, const char *body, int64_t now)
{
    static const char key[] = "\"claim\":{";
    const char *at = strstr(body, key);
    int n = 0;
    while (at && n < s->n_wanted && trial_name_next(&at, &s->held[n].trial)) {
        s->held[n].due_ns = s->wanted[n];
        load_claimed(&x->load, s->wanted[n], now);
        n++;
    }
    s->n_held = n;
    s->n_wanted -= n;
    memmove(s->wanted, s->wanted + n, (size_t)s->n_wanted * sizeof *s->wanted);
    if (n > 0)
        s->is_claim_open = false;
    if (x->load.plan->rate <= 0 && !load_goes_on(&x->load, now)) {
        s->slots += s->n_wanted; /* the load is over */
        s->n_wanted = 0;
    }
}

static void on_answer(struct batches *x, struct sender *s, const struct answer *a)
{
    int64_t now = clock_mono_ns();
    bool is_refused = a->status == 503 || a->status == 429 || strstr(a->body, "\"status\":503");
    if (is_refused) { /* every part may be repeated */
        x->load.ret->refused++;
        wire_repeat(&s->wire);
        return;
    }
    const char *problem = strstr(a->body, "\"problem\":{");
    if (a->status != 200 || problem)
        wire_give_up("answer", problem ? problem : a->body);
    s->is_busy = false;
    x->n_busy--;
    on_ended(x, s, now); /* first: what the claim brought takes the places in `held` */
    on_claimed(x, s, a->body, now);
    send_next(x, s);
}

/* Begin the cycles that are due where there is room, with the runner that has most of it. */
static void serve_due(struct batches *x, int64_t now)
{
    int64_t due_ns;
    arrivals_advance(&x->load.arrivals, now);
    for (;;) {
        struct sender *most = &x->all[0];
        for (int i = 1; i < x->load.plan->runners; i++)
            if (room(&x->all[i]) > room(most))
                most = &x->all[i];
        if (room(most) == 0 || !arrivals_take(&x->load.arrivals, &due_ns))
            break;
        want(most, due_ns);
    }
    for (int i = 0; i < x->load.plan->runners; i++)
        send_next(x, &x->all[i]);
}

static void connect_runners(struct batches *x)
{
    const struct load_plan *plan = x->load.plan;
    for (int i = 0; i < plan->runners; i++) {
        struct sender *s = &x->all[i];
        s->runner = &x->load.runners[i];
        s->slots = plan->slots / plan->runners;
        (void)snprintf(s->path, sizeof s->path, "/v1/runners/%s/batch", s->runner->name);
        load_connect(&x->load, &s->wire, s);
    }
}

void batches_run(const struct load_plan *plan, struct load_result *ret)
{
    AS_AUTO(as_freep) struct batches *x = calloc(1, sizeof *x);
    if (!x)
        wire_give_up("load", "out of memory");
    load_begin(&x->load, plan, ret);
    connect_runners(x);
    int64_t now = clock_mono_ns();
    for (int i = 0; i < plan->runners; i++)
        send_next(x, &x->all[i]);
    while (load_goes_on(&x->load, now) || x->n_busy > 0 || x->load.arrivals.n > 0) {
        struct epoll_event events[RUNNERS_MAX];
        if (plan->rate > 0)
            serve_due(x, now);
        int n = load_wait(&x->load, events, RUNNERS_MAX, &now);
        for (int i = 0; i < n; i++) {
            struct sender *s = events[i].data.ptr;
            struct answer a;
            if (wire_receive(&s->wire, &a))
                on_answer(x, s, &a);
        }
    }
    for (int i = 0; i < plan->runners; i++)
        wire_close(&x->all[i].wire);
    load_finish(&x->load);
}
