/* Heartbeats are due in the order of the runners, spread over the period, so the next one is found
 * without a queue. Trials that end, and requests to try again, are in a wheel of TICK_MS slots. The
 * load generator shares the processors with the server: it parses no answer but for the names of
 * trials (trial_name.h). */
#include "bench/fleet/runners.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/scheduler/trial_name.h"

#define TICK_MS 50
#define WHEEL 8192 /* slots: seven minutes; what comes later comes then */
#define WAIT_MS 20000
#define EVENTS 512
#define SHARE_MAX 16
#define REGISTER_AT_ONCE 32
#define MOVES_AT_ONCE 64 /* so that a server's queue of new connections never overflows */

enum doing { REGISTERS, CLAIMS, RUNS, ENDS };

struct line {
    struct wire wire;
    int server;
    bool is_beat, is_open, is_leaving;
    struct line *next_leaving;
};

struct runner {
    struct line line; /* of claims and completions */
    char name[16];
    int64_t epoch;
    struct trial_name trial;
    enum doing doing;
    int64_t due_ns;      /* of the request that is on its way */
    struct runner *next; /* in a slot of the wheel */
    bool is_again;       /* there: to repeat a request, and not because a trial ends */
};

/* A connection for heartbeats, and who waits for it, in the order of their turns. */
struct beats {
    struct line line;
    struct {
        struct runner *runner;
        int64_t due_ns;
    } waiting[SHARE_MAX];
    int n;
};

struct runners {
    const struct runners_plan *plan;
    struct runners_seen *seen;
    struct runner *all;
    struct beats *beats;
    int n_beats, epoll, n_busy, n_registering;
    struct line *leaving; /* whose server is gone */
    int64_t completed, serial, began_ns, n_beats_due;
    struct runner *wheel[WHEEL];
    int64_t tick; /* the wheel has been turned to here */
    struct str body;
};

void runners_seen_done(struct runners_seen *seen)
{
    times_done(&seen->beats);
    times_done(&seen->claims);
    times_done(&seen->ends);
}

static void times_add_since(struct times *t, int64_t due_ns)
{
    times_add(t, (double)(clock_mono_ns() - due_ns) / NS_PER_MS);
}

/* ---- connections ---- */

static void watch(struct runners *x, struct line *l)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = l};
    if (epoll_ctl(x->epoll, EPOLL_CTL_ADD, l->wire.fd, &ev) != 0)
        wire_give_up("fleet", "epoll");
}

static void open_line(struct runners *x, struct line *l, int server)
{
    l->server = server;
    l->is_open = true;
    wire_open(&l->wire, x->plan->servers[server].port);
    l->wire.may_end = true;
    watch(x, l);
}

/* Its server is gone: go to one that lives, and ask there again. */
static void move_line(struct runners *x, struct line *l)
{
    const struct runners_plan *p = x->plan;
    for (int i = 0; i < p->n_servers && l->wire.has_ended; i++) {
        l->server = (l->server + 1) % p->n_servers;
        if (p->servers[l->server].pid == 0 || !wire_reopen(&l->wire, p->servers[l->server].port))
            continue;
        watch(x, l);
        x->seen->n_moved++;
        if (l->is_beat ? ((struct beats *)l)->n > 0 : ((struct runner *)l)->doing != RUNS)
            wire_repeat(&l->wire);
    }
    if (l->wire.has_ended)
        wire_give_up("fleet", "no server is left");
}

static void leave_server(struct runners *x, struct line *l)
{
    if (l->is_leaving)
        return;
    (void)epoll_ctl(x->epoll, EPOLL_CTL_DEL, l->wire.fd, NULL);
    l->is_leaving = l->wire.has_ended = true;
    l->next_leaving = x->leaving;
    x->leaving = l;
}

static void move_some(struct runners *x)
{
    for (int i = 0; i < MOVES_AT_ONCE && x->leaving; i++) {
        struct line *l = x->leaving;
        x->leaving = l->next_leaving;
        l->is_leaving = false;
        move_line(x, l);
    }
}

static void post(struct runners *x, struct line *l, const char *path)
{
    wire_send(&l->wire, "POST", path, x->plan->servers[0].runners, &x->body);
    if (l->wire.has_ended)
        leave_server(x, l);
}

/* ---- the wheel ---- */

static int64_t tick_of(const struct runners *x, int64_t at_ns)
{
    return (at_ns - x->began_ns) / (TICK_MS * NS_PER_MS) + 1;
}

static void put(struct runners *x, struct runner *r, int64_t at_ns, bool is_again)
{
    int64_t tick = tick_of(x, at_ns);
    tick = tick >= x->tick + WHEEL ? x->tick + WHEEL - 1 : tick;
    tick = tick <= x->tick ? x->tick + 1 : tick;
    r->is_again = is_again;
    r->next = x->wheel[tick % WHEEL];
    x->wheel[tick % WHEEL] = r;
}

/* ---- a runner ---- */

static void send_claim(struct runners *x, struct runner *r)
{
    char path[64];
    str_clear(&x->body);
    str_printf(&x->body, "{\"epoch\":%lld,\"claim_id\":\"f%lld\",\"max_trials\":1,\"wait_ms\":%d}",
               (long long)r->epoch, (long long)++x->serial, WAIT_MS);
    (void)snprintf(path, sizeof path, "/v1/runners/%s/claim", r->name);
    r->doing = CLAIMS;
    r->due_ns = clock_mono_ns();
    post(x, &r->line, path);
}

static void send_end(struct runners *x, struct runner *r)
{
    char path[200];
    str_clear(&x->body);
    str_puts(&x->body, "{\"outcome\":\"completed\",\"exit_code\":0,\"metrics\":{\"loss\":0.5}}");
    trial_path(&r->trial, "complete", path, sizeof path);
    r->doing = ENDS;
    r->due_ns = clock_mono_ns();
    post(x, &r->line, path);
}

static void begin_trial(struct runners *x, struct runner *r)
{
    /* the draw of this trial, whichever runner has it */
    struct rng draws;
    rng_init(&draws, x->plan->seed, (uint64_t)r->trial.number);
    double s = -x->plan->trial_s * log1p(-rng_uniform(&draws));
    r->doing = RUNS;
    x->n_busy++;
    put(x, r, clock_mono_ns() + (int64_t)(s * NS_PER_S), false);
}

static void on_registered(struct runners *x, struct runner *r, const char *body)
{
    const char *epoch = strstr(body, "\"epoch\":");
    if (!epoch)
        wire_give_up("registration", body);
    r->epoch = strtoll(epoch + strlen("\"epoch\":"), NULL, 10);
    x->n_registering--;
    send_claim(x, r);
}

static void on_claimed(struct runners *x, struct runner *r, const char *body)
{
    if (trial_name_next(&body, &r->trial)) {
        times_add_since(&x->seen->claims, r->due_ns);
        begin_trial(x, r);
        return;
    }
    x->seen->n_empty++;
    send_claim(x, r);
}

static void on_ended(struct runners *x, struct runner *r, bool counts)
{
    times_add_since(&x->seen->ends, r->due_ns);
    x->n_busy--;
    x->completed += counts;
    send_claim(x, r);
}

static void on_answer(struct runners *x, struct runner *r, const struct answer *a)
{
    if (a->status == 429 || a->status == 503) {
        x->seen->n_refused++;
        put(x, r, clock_mono_ns() + NS_PER_S, true);
    } else if (a->status == 409) {
        x->seen->n_stale++;
        if (r->doing == CLAIMS)
            wire_give_up("a runner was given up", a->body);
        on_ended(x, r, false);
    } else if (a->status / 100 != 2) {
        wire_give_up("answer", a->body);
    } else if (r->doing == REGISTERS) {
        on_registered(x, r, a->body);
    } else if (r->doing == CLAIMS) {
        on_claimed(x, r, a->body);
    } else {
        on_ended(x, r, true);
    }
}

/* ---- heartbeats ---- */

static void send_beat(struct runners *x, struct beats *b)
{
    char path[64];
    const struct runner *r = b->waiting[0].runner;
    if (!b->line.is_open) /* not earlier: a server closes one that says nothing */
        open_line(x, &b->line, b->line.server);
    str_clear(&x->body);
    str_printf(&x->body, "{\"epoch\":%lld,\"attempts\":[", (long long)r->epoch);
    if (r->doing != CLAIMS)
        str_printf(&x->body, "{\"sweep\":\"%s\",\"number\":%lld,\"attempt\":%lld}", r->trial.sweep,
                   (long long)r->trial.number, (long long)r->trial.attempt);
    str_puts(&x->body, "]}");
    (void)snprintf(path, sizeof path, "/v1/runners/%s/heartbeat", r->name);
    post(x, &b->line, path);
}

/* The heartbeats that are due now. One whose runner still waits for the last one is left out, as a
 * runner does. */
static void send_due(struct runners *x)
{
    const struct runners_plan *p = x->plan;
    int64_t step_ns = p->heartbeat_ms * NS_PER_MS / p->n, now = clock_mono_ns();
    for (; x->began_ns + x->n_beats_due * step_ns <= now; x->n_beats_due++) {
        struct runner *r = &x->all[x->n_beats_due % p->n];
        struct beats *b = &x->beats[(x->n_beats_due % p->n) / p->share];
        if (b->n == p->share || r->epoch == 0)
            continue;
        b->waiting[b->n].runner = r;
        b->waiting[b->n++].due_ns = x->began_ns + x->n_beats_due * step_ns;
        if (b->n == 1)
            send_beat(x, b);
    }
}

static void on_beat(struct runners *x, struct beats *b, const struct answer *a)
{
    if (a->status == 429 || a->status == 503)
        x->seen->n_refused++;
    else if (a->status != 200)
        wire_give_up("heartbeat", a->body);
    times_add_since(&x->seen->beats, b->waiting[0].due_ns);
    memmove(b->waiting, b->waiting + 1, sizeof b->waiting - sizeof b->waiting[0]);
    if (--b->n > 0)
        send_beat(x, b);
}

/* ---- all of them ---- */

static void turn_wheel(struct runners *x)
{
    int64_t now = tick_of(x, clock_mono_ns()) - 1;
    while (x->tick < now) {
        struct runner *due = x->wheel[++x->tick % WHEEL];
        x->wheel[x->tick % WHEEL] = NULL;
        while (due) {
            struct runner *r = due;
            due = r->next;
            if (!r->is_again)
                send_end(x, r);
            else
                wire_repeat(&r->line.wire);
        }
    }
}

static void serve_line(struct runners *x, struct line *l)
{
    struct answer a;
    if (!wire_receive(&l->wire, &a)) {
        if (l->wire.has_ended)
            leave_server(x, l);
        return;
    }
    l->wire.have = 0;
    if (l->is_beat)
        on_beat(x, (struct beats *)l, &a);
    else
        on_answer(x, (struct runner *)l, &a);
}

/* One round of the loop. */
static void serve(struct runners *x, int wait_ms)
{
    struct epoll_event events[EVENTS];
    send_due(x);
    turn_wheel(x);
    move_some(x);
    int n = epoll_wait(x->epoll, events, EVENTS, wait_ms);
    for (int i = 0; i < n; i++)
        serve_line(x, events[i].data.ptr);
}

/* Nobody goes to a server that was killed, as a load balancer has it: a process with thousands of
 * connections takes seconds to close them. */
static void leave_killed(struct runners *x)
{
    const struct runners_plan *p = x->plan;
    for (int i = 0; i < p->n; i++)
        if (p->servers[x->all[i].line.server].pid == 0)
            leave_server(x, &x->all[i].line);
    for (int i = 0; i < x->n_beats; i++)
        if (x->beats[i].line.is_open && p->servers[x->beats[i].line.server].pid == 0)
            leave_server(x, &x->beats[i].line);
}

void runners_run(struct runners *x, double seconds, struct runners_seen *ret)
{
    int64_t until = clock_mono_ns() + (int64_t)(seconds * NS_PER_S);
    times_clear(&ret->beats);
    times_clear(&ret->claims);
    times_clear(&ret->ends);
    ret->n_empty = ret->n_refused = ret->n_stale = ret->n_moved = 0;
    x->seen = ret;
    leave_killed(x);
    while (clock_mono_ns() < until)
        serve(x, 1);
}

static void send_registration(struct runners *x, struct runner *r, int i)
{
    (void)snprintf(r->name, sizeof r->name, "fleet-%05d", i);
    str_clear(&x->body);
    str_printf(&x->body, "{\"name\":\"%s\",\"slots\":1}", r->name);
    r->doing = REGISTERS;
    x->n_registering++;
    open_line(x, &r->line, i % x->plan->n_servers);
    post(x, &r->line, "/v1/runners");
}

struct runners *runners_start(const struct runners_plan *plan, double *ret_s)
{
    struct runners *x = calloc(1, sizeof *x);
    int n_beats = (plan->n + plan->share - 1) / plan->share;
    int64_t begin_ns = clock_mono_ns();
    if (plan->share > SHARE_MAX)
        wire_give_up("fleet", "too many runners share a connection");
    if (x) {
        *x = (struct runners){.plan = plan, .n_beats = n_beats};
        x->all = calloc((size_t)plan->n, sizeof *x->all);
        x->beats = calloc((size_t)n_beats, sizeof *x->beats);
        x->epoll = epoll_create1(EPOLL_CLOEXEC);
    }
    if (!x || !x->all || !x->beats || x->epoll < 0)
        wire_give_up("fleet", "out of memory");
    struct runners_seen unseen = {0};
    x->seen = &unseen;
    x->began_ns = begin_ns;
    for (int i = 0; i < n_beats; i++) {
        x->beats[i].line.is_beat = true;
        x->beats[i].line.server = i % plan->n_servers;
    }
    for (int i = 0; i < plan->n; i++) {
        send_registration(x, &x->all[i], i);
        while (x->n_registering >= (i + 1 < plan->n ? REGISTER_AT_ONCE : 1))
            serve(x, 1); /* those that are there already send their heartbeats */
    }
    runners_seen_done(&unseen);
    *ret_s = (double)(clock_mono_ns() - begin_ns) / NS_PER_S;
    return x;
}

void runners_free(struct runners *x)
{
    for (int i = 0; i < x->plan->n; i++)
        wire_close(&x->all[i].line.wire);
    for (int i = 0; i < x->n_beats; i++)
        if (x->beats[i].line.is_open)
            wire_close(&x->beats[i].line.wire);
    (void)close(x->epoll);
    str_done(&x->body);
    free(x->all);
    free(x->beats);
    free(x);
}

int runners_busy(const struct runners *x)
{
    return x->n_busy;
}

int64_t runners_completed(const struct runners *x)
{
    return x->completed;
}
