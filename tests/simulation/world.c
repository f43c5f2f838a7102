/* Servers, runners and the network between them.
 *
 * A request of a runner is a call: results of several trials and perhaps a claim, a registration,
 * or a heartbeat. It is sent until an answer comes; each sending may be lost, come twice, or come
 * seconds late, to any server, and so may each answer. */
#include "tests/simulation/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "scheduler/commit/committer.h"
#include "scheduler/lifecycle/lease_clock.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/trial_held_store.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/fibers.h"
#include "tests/support/check_main.h"

#define SERVERS 2
#define PARTS 10    /* of a call */
#define HELD_MAX 16 /* trials of a runner */
#define STORM_MS 12000
#define PATIENCE_S 600 /* until every sweep is over */
#define STEPS_MAX 3    /* reports of an attempt */

enum { NODE_WORLD, NODE_SERVER, NODE_RUNNER = NODE_SERVER + SERVERS };

static const char *const runner_names[SIM_RUNNERS] = {"r0", "r1", "r2"};

/* ---- calls ---- */

typedef enum call_kind { CALL_BATCH, CALL_REGISTER, CALL_BEAT } call_kind;

struct part {
    commit_kind kind;
    struct attempt_ref ref;
    struct measurement points[2 * SIM_METRICS];
    size_t n_points;
    struct trial_note note;
    bool has_note;
    attempt_outcome outcome;
    struct claim_request claim;
    struct attempt_ref ending[PARTS];
};

/* A member on its way, with the name of its sweep. */
struct sent {
    struct commit_member m;
    struct arena a;
    struct delivery *delivery;
};

/* A call that reached a server. */
struct delivery {
    struct call *call;
    struct store *store;
    struct sent sent[PARTS];
    size_t n_left;
    bool is_live; /* of the answer to a registration or a heartbeat */
    int64_t epoch;
    bool is_current[HELD_MAX];
    struct delivery *next;
};

struct call {
    call_kind kind;
    int runner;
    int64_t epoch;
    struct part parts[PARTS];
    size_t n;
    struct attempt_ref held[HELD_MAX]; /* REGISTER, BEAT */
    size_t n_held;
    const struct delivery *answer; /* NULL: none has come */
    struct call *next;
};

/* ---- the world ---- */

struct server {
    struct store *store;
    struct committer *committer;
    bool is_up, is_to_die;
    int n_submitting; /* calls that are being handed to its committer */
};

struct held_trial {
    struct attempt_ref ref;
    int64_t step;
    bool has_loss, must_fail;
};

struct runner {
    int index;
    int64_t epoch; /* 0: not registered */
    struct held_trial held[HELD_MAX];
    size_t n_held;
    bool is_to_die;
    int64_t stalled_until_ns;
};

/* What a runner was told. */
struct told {
    struct attempt_ref ref;
    commit_kind kind;
    attempt_outcome outcome;
    struct measurement points[2 * SIM_METRICS];
    size_t n_points;
    int runner;
    char claim_id[24];
};

static struct world {
    struct sim_db db;
    struct server servers[SERVERS];
    struct runner runners[SIM_RUNNERS];
    struct delivery *deliveries;
    struct call *calls;
    struct told *told;
    size_t n_told, cap_told;
    struct store *graves[256]; /* stores of servers that ended */
    size_t n_graves;
    bool is_hasty, is_over;
    double p_lose, p_copy; /* of messages */
    int serial;
    struct sim_report *report;
} w;

static const char *sweep_name(int64_t key)
{
    return w.db.t->sweeps[key - 1].id;
}

static int64_t key_of(const char *sweep)
{
    int64_t key = 1;
    while (!as_streq(sweep_name(key), sweep))
        key++;
    return key;
}

/* ---- members ---- */

struct name_of_sweep {
    const struct commit_member *member;
    char sweep[8];
};

const char *sim_name_for(const struct commit_member *m, const char *sweep)
{
    struct name_of_sweep *n = arena_alloc(m->arena, 1, sizeof *n);
    ck_assert_ptr_nonnull(n);
    n->member = m;
    (void)snprintf(n->sweep, sizeof n->sweep, "%s", sweep);
    return n->sweep;
}

const struct commit_member *sim_member_at(const char *sweep)
{
    const char *at = sweep - offsetof(struct name_of_sweep, sweep);
    return ((const struct name_of_sweep *)(const void *)at)->member;
}

/* The transactions of a member that runs alone know it. */
void __real_commit_alone(struct store *db, struct suggester *sg, struct commit_member *m);
void __wrap_commit_alone(struct store *db, struct suggester *sg, struct commit_member *m);
void __wrap_commit_alone(struct store *db, struct suggester *sg, struct commit_member *m)
{
    *sim_own() = m;
    __real_commit_alone(db, sg, m);
    *sim_own() = NULL;
}

/* ---- answers ---- */

static void carry_answer(void *arg)
{
    struct delivery *d = arg;
    sim_pause(5);
    if (d->store->is_dead || d->call->answer)
        return;
    d->call->answer = d;
    sim_wake(d->call);
}

static void answer(struct delivery *d)
{
    if (!d->store->is_dead && !sim_chance(w.p_lose))
        sim_spawn(NODE_WORLD, carry_answer, d);
}

static void member_done(struct commit_member *m)
{
    struct delivery *d = ((struct sent *)(void *)m)->delivery;
    ck_assert_uint_gt(d->n_left, 0);
    if (--d->n_left == 0)
        answer(d);
}

/* ---- what a server does with a call ---- */

static void fill_member(struct delivery *d, size_t i)
{
    const struct part *p = &d->call->parts[i];
    struct sent *s = &d->sent[i];
    struct commit_member *m = &s->m;
    s->delivery = d;
    *m = (struct commit_member){
        .kind = p->kind, .arena = &s->a, .ref = p->ref, .done = member_done, .owner = d};
    if (p->kind == COMMIT_CLAIM) {
        m->in.claim = &p->claim;
        return;
    }
    m->ref.sweep = sim_name_for(m, p->ref.sweep);
    if (p->kind == COMMIT_RECORD)
        m->in.report = (struct attempt_report){.points = p->points,
                                               .n_points = p->n_points,
                                               .notes = &p->note,
                                               .n_notes = p->has_note};
    else
        m->in.end = (struct completion){.outcome = p->outcome,
                                        .has_ran = p->outcome == OUTCOME_TIMEOUT,
                                        .ran_ms = 5000000,
                                        .reason = p->outcome == OUTCOME_FAILED ? "it broke" : NULL,
                                        .metrics = p->points,
                                        .n_metrics = p->n_points};
}

static void submit(struct server *s, struct delivery *d)
{
    struct commit_member *members[PARTS] = {NULL};
    struct as_err err = {0};
    size_t n = d->call->n;
    for (size_t i = 0; i < n; i++) {
        fill_member(d, i);
        members[i] = &d->sent[i].m;
    }
    d->n_left = n;
    s->n_submitting++;
    as_status st = committer_submit(s->committer, members, n, &err);
    s->n_submitting--;
    if (st == AS_OK)
        return;
    for (size_t i = 0; i < n; i++)
        members[i]->status = AS_E_UNAVAILABLE;
    d->n_left = 0;
    answer(d);
}

/* Lose the trials that a runner holds, but those of the list. */
static as_status lose_held(struct tx *t, struct arena *a, const struct trial_list_heads *heads,
                           const char *reason, struct as_err *err)
{
    int64_t n = 0;
    if (heads->n == 0)
        return AS_OK;
    as_status st = trials_lose(t, a, heads, "lost", reason, &n, err);
    struct sim_deed *d = sim_add_deed(t, DEED_LOST);
    (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
    ck_assert_uint_le(heads->n, AS_ARRAY_LEN(d->lost));
    for (size_t i = 0; i < heads->n; i++)
        d->lost[d->n_lost++] = (struct trial_key){heads->rows[i].sweep_key, heads->rows[i].number};
    w.report->lost_attempts += n;
    return st;
}

static as_status handle_register(struct tx *t, struct arena *a, struct delivery *d,
                                 struct as_err *err)
{
    const struct call *c = d->call;
    struct sim_runner *row = &w.db.t->runners[c->runner];
    struct trial_list_heads gone;
    as_status st = sim_statement(t, err);
    if (st == AS_OK)
        st = sim_lock(t, &row->row, true, err);
    if (st != AS_OK)
        return st;
    struct sim_runner *r = SIM_EDIT(t, row);
    r->is_there = r->is_live = true;
    r->epoch++;
    r->expires_ns = sim_now_ns() + store_config(d->store)->lease_ms * NS_PER_MS;
    d->epoch = r->epoch;
    st = store_trial_held(t, a, row->name, c->held, c->n_held, &gone, err);
    if (st == AS_OK)
        st = lose_held(t, a, &gone, "its runner registered again", err);
    for (size_t i = 0; i < c->n_held && st == AS_OK; i++) {
        struct sim_trial *x = &w.db.t->trials[key_of(c->held[i].sweep) - 1][c->held[i].number];
        st = sim_lock(t, &x->row, true, err);
        const struct sim_trial *now = SIM_SEE(t, x);
        d->is_current[i] = now->state == TRIAL_RUNNING && now->attempt == c->held[i].attempt &&
                           as_streq(now->runner, row->name);
        if (st == AS_OK && d->is_current[i])
            SIM_EDIT(t, x)->epoch = r->epoch;
    }
    return st;
}

/* Trials that the runner does not know of, twice, a lease after they began. */
static as_status lose_missing(struct tx *t, struct arena *a, const struct call *c,
                              struct as_err *err)
{
    struct trial_list_heads held, lost = {0};
    as_status st = store_trial_held(t, a, runner_names[c->runner], c->held, c->n_held, &held, err);
    lost.rows = held.rows;
    for (size_t i = 0; i < held.n && st == AS_OK; i++) {
        struct sim_trial *x = &w.db.t->trials[held.rows[i].sweep_key - 1][held.rows[i].number];
        if (SIM_SEE(t, x)->claimed_ns + 3 * NS_PER_S > sim_now_ns())
            continue;
        st = sim_lock(t, &x->row, true, err);
        if (st == AS_OK && ++SIM_EDIT(t, x)->missing >= 2)
            lost.rows[lost.n++] = held.rows[i];
    }
    return st == AS_OK ? lose_held(t, a, &lost, "its runner does not hold it", err) : st;
}

static as_status handle_beat(struct tx *t, struct arena *a, struct delivery *d, struct as_err *err)
{
    const struct call *c = d->call;
    const struct runner_id id = {.name = runner_names[c->runner], .epoch = c->epoch};
    as_status st = store_runner_extend(t, &id, store_config(d->store)->lease_ms, &d->is_live, err);
    if (st != AS_OK || !d->is_live)
        return st;
    for (size_t i = 0; i < c->n_held; i++) {
        const struct sim_trial *x =
            &w.db.t->trials[key_of(c->held[i].sweep) - 1][c->held[i].number];
        d->is_current[i] = x->state == TRIAL_RUNNING && x->attempt == c->held[i].attempt &&
                           as_streq(x->runner, id.name);
    }
    return lose_missing(t, a, c, err);
}

/* A transaction of its own. */
static void handle_call(void *arg)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct delivery *d = arg;
    struct as_err err = {0};
    struct tx_run run = tx_run_start(d->store, TX_WRITE, &err);
    while (tx_run_again(&run))
        run.status = d->call->kind == CALL_REGISTER ? handle_register(run.tx, &a, d, &err)
                                                    : handle_beat(run.tx, &a, d, &err);
    if (run.status == AS_OK)
        answer(d);
}

/* ---- the network ---- */

static void deliver(struct call *c)
{
    size_t i = rng_below(&sim_rng, SERVERS);
    struct server *s = &w.servers[i];
    if (!s->is_up)
        return;
    struct delivery *d = as_calloc(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    d->call = c;
    d->store = s->store;
    d->next = w.deliveries;
    w.deliveries = d;
    if (c->kind == CALL_BATCH)
        submit(s, d);
    else
        sim_spawn((int)(NODE_SERVER + i), handle_call, d);
}

static void carry_call(void *arg)
{
    sim_pause(5);
    deliver(arg);
}

static void carry_late(void *arg)
{
    sim_pause(6000);
    deliver(arg);
}

static void send(struct call *c)
{
    if (!sim_chance(w.p_lose))
        sim_spawn(NODE_WORLD, carry_call, c);
    if (!sim_chance(w.p_copy))
        return;
    w.report->copies++;
    sim_spawn(NODE_WORLD, sim_chance(0.5) ? carry_late : carry_call, c);
}

static struct call *new_call(call_kind kind, const struct runner *r)
{
    struct call *c = as_calloc(1, sizeof *c);
    ck_assert_ptr_nonnull(c);
    c->kind = kind;
    c->runner = r->index;
    c->epoch = r->epoch;
    for (size_t i = 0; i < r->n_held && kind != CALL_BATCH; i++)
        c->held[c->n_held++] = r->held[i].ref;
    c->next = w.calls;
    w.calls = c;
    return c;
}

/* Send until there is an answer. NULL: the process was killed meanwhile. */
static const struct delivery *await_answer(struct runner *r, struct call *c)
{
    while (!c->answer && !r->is_to_die && !w.is_over) {
        send(c);
        (void)sim_wait(c, sim_now_ns() + 200 * NS_PER_MS, "an answer");
    }
    return r->is_to_die ? NULL : c->answer;
}

/* ---- runners ---- */

static struct told *tell(const struct runner *r, const struct attempt_ref *ref, commit_kind kind)
{
    if (w.n_told == w.cap_told) {
        w.cap_told = w.cap_told ? 2 * w.cap_told : 64;
        w.told = realloc(w.told, w.cap_told * sizeof *w.told);
        ck_assert_ptr_nonnull(w.told);
    }
    struct told *t = &w.told[w.n_told++];
    *t = (struct told){.ref = *ref, .kind = kind, .runner = r->index};
    return t;
}

static void drop(struct runner *r, const struct attempt_ref *ref)
{
    for (size_t i = 0; i < r->n_held; i++)
        if (r->held[i].ref.number == ref->number && r->held[i].ref.attempt == ref->attempt &&
            as_streq(r->held[i].ref.sweep, ref->sweep)) {
            r->held[i] = r->held[--r->n_held];
            return;
        }
}

static struct held_trial *find_held(struct runner *r, const struct attempt_ref *ref)
{
    for (size_t i = 0; i < r->n_held; i++)
        if (r->held[i].ref.number == ref->number && r->held[i].ref.attempt == ref->attempt &&
            as_streq(r->held[i].ref.sweep, ref->sweep))
            return &r->held[i];
    return NULL;
}

/* What an attempt measures is a function of its name. */
static double value_of(const struct attempt_ref *ref, int64_t step, int metric)
{
    return (double)((ref->number * 7 + ref->attempt * 5 + step * 3 + metric * 2 + ref->sweep[0]) %
                    23) /
           20;
}

static void add_report(struct call *c, struct held_trial *x)
{
    struct part *p = &c->parts[c->n++];
    *p = (struct part){.kind = COMMIT_RECORD, .ref = x->ref};
    for (int m = 0; m < SIM_METRICS; m++)
        if (sim_chance(0.7))
            p->points[p->n_points++] =
                (struct measurement){x->step, sim_metrics[m], value_of(&x->ref, x->step, m)};
    x->has_loss |= p->n_points > 0 && as_streq(p->points[0].metric, sim_metrics[0]);
    x->step++;
    p->has_note = sim_chance(0.2);
    p->note = (struct trial_note){sim_notes[x->step % SIM_NOTES], x->step % 3 ? "low" : "high"};
}

static void add_end(struct call *c, const struct held_trial *x)
{
    static const attempt_outcome others[] = {OUTCOME_FAILED, OUTCOME_RETRY, OUTCOME_RELEASED,
                                             OUTCOME_TIMEOUT};
    struct part *p = &c->parts[c->n++];
    *p = (struct part){.kind = COMMIT_END, .ref = x->ref, .outcome = OUTCOME_COMPLETED};
    if (x->must_fail || sim_chance(0.1))
        p->outcome = OUTCOME_FAILED;
    else if (sim_chance(0.2) && x->ref.attempt < 8)
        p->outcome = others[rng_below(&sim_rng, AS_ARRAY_LEN(others))];
    if (p->outcome != OUTCOME_COMPLETED || (x->has_loss && sim_chance(0.3)))
        return;
    int64_t step = sim_chance(0.7) ? -1 : x->step;
    for (int m = 0; m < SIM_METRICS; m++)
        p->points[p->n_points++] =
            (struct measurement){step, sim_metrics[m], value_of(&x->ref, 77, m)};
    if (sim_chance(0.05))
        p->points[0].value = NAN;
}

static void add_claim(struct call *c, struct runner *r, int64_t slots)
{
    struct part *p = &c->parts[c->n];
    *p = (struct part){.kind = COMMIT_CLAIM, .ref = {"-", 0, 0}};
    for (size_t i = 0; i < c->n; i++)
        if (c->parts[i].kind == COMMIT_END)
            p->ending[p->claim.n_ending++] = c->parts[i].ref;
    int64_t room = slots - (int64_t)r->n_held + (int64_t)p->claim.n_ending;
    if (room <= 0)
        return;
    p->claim.runner = runner_names[r->index];
    p->claim.epoch = r->epoch;
    p->claim.max_trials = 1 + (int64_t)rng_below(&sim_rng, (uint64_t)room);
    p->claim.ending = p->ending;
    p->claim.is_ahead = c->n % 4 == 1; /* without a draw, so that schedules stay what they were */
    c->n++;
}

/* The text of a claim's id lives as long as the call. */
static char *claim_id_of(struct call *c)
{
    struct part *p = &c->parts[c->n - 1];
    return (char *)(void *)p->points; /* a claim has none */
}

static struct call *make_work(struct runner *r)
{
    struct call *c = new_call(CALL_BATCH, r);
    for (size_t i = 0; i < r->n_held && c->n + 3 < PARTS; i++) {
        struct held_trial *x = &r->held[i];
        if (x->step < STEPS_MAX && sim_chance(0.5))
            add_report(c, x);
        if (sim_chance(0.35))
            add_end(c, x);
    }
    size_t n = c->n;
    if (sim_chance(0.8))
        add_claim(c, r, w.db.t->runners[r->index].slots);
    if (c->n > n) {
        (void)snprintf(claim_id_of(c), 24, "c%d", w.serial++);
        c->parts[n].claim.claim_id = claim_id_of(c);
    }
    return c;
}

static void take_claimed(struct runner *r, const struct part *p, const struct claim_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct claimed_row *x = &list->rows[i];
        const struct attempt_ref ref = {sweep_name(key_of(x->sweep)), x->number, x->attempt};
        struct told *t = tell(r, &ref, COMMIT_CLAIM);
        (void)snprintf(t->claim_id, sizeof t->claim_id, "%s", p->claim.claim_id);
        if (find_held(r, &ref))
            continue;
        ck_assert_uint_lt(r->n_held, HELD_MAX);
        r->held[r->n_held++] = (struct held_trial){.ref = ref};
    }
}

/* The answer to one part. */
static void take_part(struct runner *r, const struct part *p, const struct commit_member *m)
{
    struct held_trial *x = find_held(r, &p->ref);
    w.report->unavailable += m->status == AS_E_UNAVAILABLE;
    w.report->stale += m->status == AS_E_STALE;
    if (m->status == AS_OK && p->kind != COMMIT_CLAIM) {
        struct told *t = tell(r, &p->ref, p->kind);
        t->outcome = p->outcome;
        t->n_points = p->n_points;
        memcpy(t->points, p->points, sizeof t->points);
        w.report->acknowledged += p->kind == COMMIT_END;
    }
    if (p->kind == COMMIT_CLAIM) {
        if (m->status == AS_OK)
            take_claimed(r, p, &m->out.claim);
        else if (m->status == AS_E_STALE)
            r->epoch = 0;
    } else if (m->status == AS_E_UNSUPPORTED || m->status == AS_E_CONFLICT) {
        if (x)
            x->must_fail = true;
    } else if (m->status == AS_E_STALE || (m->status == AS_OK && p->kind == COMMIT_END)) {
        drop(r, &p->ref);
    } else if (m->status != AS_OK && m->status != AS_E_INTERNAL) {
        violation("%s/%lld: the answer is %s: %s", p->ref.sweep, (long long)p->ref.number,
                  as_status_name(m->status), m->err.msg);
    }
}

static bool is_unknown(const struct delivery *d)
{
    for (size_t i = 0; i < d->call->n; i++)
        if (d->sent[i].m.status == AS_E_UNAVAILABLE)
            return true;
    return false;
}

/* A call whose parts were told that nobody knows is sent again, whole. */
static void do_work(struct runner *r)
{
    struct call *c = make_work(r);
    if (c->n == 0)
        return;
    for (;;) {
        const struct delivery *d = await_answer(r, c);
        if (!d)
            return;
        bool again = is_unknown(d);
        for (size_t i = 0; i < c->n; i++)
            if (d->sent[i].m.status != AS_E_UNAVAILABLE)
                take_part(r, &c->parts[i], &d->sent[i].m);
        if (!again || w.is_over)
            return;
        w.report->unavailable++;
        c->answer = NULL;
        sim_pause(50);
    }
}

static void do_register(struct runner *r)
{
    struct call *c = new_call(CALL_REGISTER, r);
    const struct delivery *d = await_answer(r, c);
    if (!d)
        return;
    r->epoch = d->epoch;
    for (size_t i = 0; i < c->n_held; i++)
        if (!d->is_current[i] && sim_chance(0.7)) /* else it finds out when it ends */
            drop(r, &c->held[i]);
}

static void run_runner(void *arg)
{
    struct runner *r = arg;
    while (!w.is_over) {
        if (r->is_to_die) { /* SIGKILL; its journal may be gone */
            if (sim_chance(0.5))
                r->n_held = 0;
            r->epoch = 0;
            r->is_to_die = false;
            sim_pause(300);
        }
        if (r->stalled_until_ns > sim_now_ns())
            sim_sleep_ms((double)(r->stalled_until_ns - sim_now_ns()) / NS_PER_MS);
        if (r->epoch == 0)
            do_register(r);
        else
            do_work(r);
        sim_pause(r->n_held > 0 ? 120 : 600);
    }
}

static void run_beats(void *arg)
{
    struct runner *r = arg;
    while (!w.is_over) {
        sim_sleep_ms(400);
        if (r->epoch == 0 || r->stalled_until_ns > sim_now_ns())
            continue;
        struct call *c = new_call(CALL_BEAT, r);
        send(c);
        (void)sim_wait(c, sim_now_ns() + 300 * NS_PER_MS, "a heartbeat");
        if (!c->answer || c->epoch != r->epoch)
            continue;
        if (!c->answer->is_live)
            r->epoch = 0;
        for (size_t i = 0; i < c->n_held && c->answer->is_live; i++)
            if (!c->answer->is_current[i] && sim_chance(0.5))
                drop(r, &c->held[i]);
    }
}

/* ---- servers ---- */

/* The real rule for when silence ends a lease. */
static void run_reaper(void *arg)
{
    struct store *s = arg;
    struct lease_clock clock = {0};
    while (!w.is_over && !s->is_dead) {
        sim_sleep_ms((double)s->config.reaper_ms);
        if (w.db.is_away ||
            !lease_clock_hears(&clock, s->config.lease_ms, sim_now_ns() / NS_PER_MS))
            continue;
        for (int i = 0; i < SIM_RUNNERS && !s->is_dead; i++) {
            AS_AUTO(arena_done) struct arena a = {0};
            struct trial_list_heads held;
            bool lost = false;
            if (!w.db.t->runners[i].is_live || w.db.t->runners[i].expires_ns > sim_now_ns())
                continue;
            const char *reason = arena_printf(&a, "the lease of %s ran out", runner_names[i]);
            struct tx_run run = tx_run_start(s, TX_WRITE, NULL);
            while (tx_run_again(&run)) {
                run.status = store_runner_lose(run.tx, runner_names[i], &lost, NULL);
                if (run.status == AS_OK && lost)
                    run.status =
                        store_trial_held(run.tx, &a, runner_names[i], NULL, 0, &held, NULL);
                if (run.status == AS_OK && lost)
                    run.status = lose_held(run.tx, &a, &held, reason, NULL);
            }
        }
    }
}

static void count_figures(struct server *s)
{
    struct committer_figures f;
    committer_figures_get(s->committer, &f);
    w.report->batches += f.batches;
    w.report->alone += f.alone;
    w.report->fallbacks += f.fallbacks;
    w.report->postponed += f.postponed;
    w.report->late_ends += store_counters(s->store)->late_accepted;
}

/* One life of a server after the other. */
static void run_server(void *arg)
{
    struct server *s = arg;
    struct as_err err = {0};
    while (!w.is_over) {
        struct committer_opts o = {.ops = &sim_batch_ops,
                                   .is_single = sim_chance(0.1),
                                   .threads = 1 + rng_below(&sim_rng, 4),
                                   .batch_max = sim_chance(0.3) ? 3 : 0};
        s->store = sim_store_create(&w.db);
        o.ops_ctx = s->store;
        ck_ok(committer_create(s->store, NULL, &o, &s->committer, &err), err);
        sim_spawn(sim_node(), run_reaper, s->store);
        s->is_to_die = false;
        s->is_up = true;
        while (!w.is_over && !s->is_to_die)
            (void)sim_wait(s, INT64_MAX, "its end");
        s->is_up = false;
        if (!w.is_over)
            sim_store_kill(s->store);
        committer_drain(s->committer);
        while (s->n_submitting > 0)
            sim_sleep_ms(1);
        count_figures(s);
        committer_free(s->committer);
        s->store->is_dead = true;
        ck_assert_uint_lt(w.n_graves, AS_ARRAY_LEN(w.graves));
        w.graves[w.n_graves++] = s->store;
        sim_pause(500);
    }
}

/* ---- faults ---- */

/* A transaction of somebody else that holds a row and does nothing. */
static void hold_row(void *arg)
{
    struct store *s = sim_store_create(&w.db);
    struct sim_tables *t = w.db.t;
    struct sim_row *row =
        sim_chance(0.5)
            ? &t->sweeps[rng_below(&sim_rng, SIM_SWEEPS)].row
            : &t->trials[rng_below(&sim_rng, SIM_SWEEPS)][rng_below(&sim_rng, SIM_TRIALS)].row;
    (void)arg;
    struct tx_run run = tx_run_start(s, TX_WRITE, NULL);
    while (tx_run_again(&run)) {
        run.status = sim_lock(run.tx, row, true, NULL);
        if (run.status == AS_OK)
            sim_pause(400);
    }
    s->is_dead = true;
    w.graves[w.n_graves++] = s;
}

static void kill_server(size_t i)
{
    w.report->kills++;
    w.servers[i].is_to_die = true;
    if (w.servers[i].is_up)
        sim_store_kill(w.servers[i].store);
    sim_stop_node((int)(NODE_SERVER + i), 0);
    sim_wake(&w.servers[i]);
}

static void cut_power(void)
{
    w.report->cuts++;
    sim_db_cut_power(&w.db, (int64_t)rng_below(&sim_rng, 1000));
}

static void do_fault(void)
{
    size_t i = rng_below(&sim_rng, SERVERS);
    struct runner *r = &w.runners[rng_below(&sim_rng, SIM_RUNNERS)];
    switch (rng_below(&sim_rng, 7)) {
    case 0:
        kill_server(i);
        break;
    case 1:
        w.report->stops++;
        sim_stop_node((int)(NODE_SERVER + i),
                      sim_now_ns() + (int64_t)(rng_uniform(&sim_rng) * 5e9));
        break;
    case 2:
        cut_power();
        break;
    case 3: /* one after the other */
        kill_server(i);
        sim_pause(400);
        cut_power();
        break;
    case 4:
        w.report->idle++;
        sim_spawn(NODE_WORLD, hold_row, NULL);
        break;
    case 5:
        r->stalled_until_ns = sim_now_ns() + (int64_t)(rng_uniform(&sim_rng) * 6e9);
        break;
    default:
        r->is_to_die = true;
    }
}

static bool all_over(void)
{
    for (int i = 0; i < SIM_SWEEPS; i++)
        if (w.db.t->sweeps[i].state == SWEEP_RUNNING)
            return false;
    return true;
}

static void run_world(void *arg)
{
    double every_ms = w.is_hasty ? 60 : 200 + rng_uniform(&sim_rng) * 2000;
    (void)arg;
    while (sim_now_ns() < STORM_MS * NS_PER_MS && !all_over()) {
        sim_pause(every_ms);
        do_fault();
    }
    w.p_lose = w.p_copy = 0;
    w.db.faults = (struct sim_faults){.round_trip_ms = w.db.faults.round_trip_ms};
    while (!all_over() && sim_now_ns() < PATIENCE_S * NS_PER_S && !violation_text()[0])
        sim_sleep_ms(100);
    if (!all_over())
        violation("a sweep is not over after %d s without faults", PATIENCE_S);
    sim_sleep_ms(8000); /* late messages, and what is under way */
    w.is_over = true;
    for (int i = 0; i < SERVERS; i++)
        sim_wake(&w.servers[i]);
}

/* ---- what runners were told ---- */

static bool has_point(const struct sim_attempt *a, const struct measurement *p)
{
    for (int i = 0; i < a->n_points; i++)
        if (as_streq(sim_metrics[a->points[i].metric], p->metric) &&
            (p->step < 0 || a->points[i].step == p->step) &&
            (a->points[i].value == p->value || (isnan(p->value) && isnan(a->points[i].value))))
            return true;
    return false;
}

static void check_told(const struct told *t)
{
    const struct sim_trial *x = &w.db.t->trials[key_of(t->ref.sweep) - 1][t->ref.number];
    const struct sim_attempt *a = &x->attempts[t->ref.attempt];
    if (!x->is_there || x->attempt < t->ref.attempt) {
        violation("%s/%lld: attempt %lld was acknowledged and is gone", t->ref.sweep,
                  (long long)t->ref.number, (long long)t->ref.attempt);
        return;
    }
    if (t->kind == COMMIT_END && !as_streq(a->reported, attempt_outcome_words[t->outcome]))
        violation("%s/%lld: the end '%s' of attempt %lld was acknowledged; the table says '%s'",
                  t->ref.sweep, (long long)t->ref.number, attempt_outcome_words[t->outcome],
                  (long long)t->ref.attempt, a->reported);
    for (size_t i = 0; i < t->n_points; i++)
        if (!has_point(a, &t->points[i]))
            violation("%s/%lld: a point of attempt %lld was acknowledged and is gone", t->ref.sweep,
                      (long long)t->ref.number, (long long)t->ref.attempt);
    if (t->kind == COMMIT_CLAIM &&
        (!as_streq(a->claim_id, t->claim_id) || !as_streq(a->runner, runner_names[t->runner])))
        violation("%s/%lld: attempt %lld was given to %s in %s; the table says %s, %s",
                  t->ref.sweep, (long long)t->ref.number, (long long)t->ref.attempt,
                  runner_names[t->runner], t->claim_id, a->runner, a->claim_id);
}

/* ---- one at a time ---- */

static as_status begin_again(struct tx *t, const struct sim_deed *d, struct as_err *err)
{
    struct made_trial made = d->made;
    const struct owner owner = {.runner = d->runner, .claim_id = d->claim_id};
    made.params = d->params;
    made.suggestion = d->suggestion;
    as_status st = sim_lock(t, &sim_sweep_of(t, d->sweep_key)->row, true, err);
    if (st == AS_OK)
        st = sim_begin_trial(t, d->sweep_key, &made, d->is_made, &owner, err);
    if (st == AS_OK)
        SIM_EDIT(t, sim_sweep_of(t, d->sweep_key))->has_started = true;
    return st;
}

static as_status lose_again(struct tx *t, struct arena *a, const struct sim_deed *d,
                            struct as_err *err)
{
    struct trial_list_heads heads = {.rows = arena_alloc(a, d->n_lost, sizeof *heads.rows)};
    int64_t n = 0;
    for (; heads.n < d->n_lost; heads.n++)
        heads.rows[heads.n] =
            sim_head_of(t, a, d->lost[heads.n].sweep_key, d->lost[heads.n].number);
    return trials_lose(t, a, &heads, "lost", d->reason, &n, err);
}

static void do_deed(struct store *s, const struct sim_deed *d)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    as_status st = AS_OK;
    if (d->kind == DEED_MEMBER) {
        struct commit_member m = *d->member;
        m.arena = &a;
        m.err = (struct as_err){0};
        commit_alone(s, NULL, &m);
        st = m.status;
        err = m.err;
    } else {
        struct tx_run run = tx_run_start(s, TX_WRITE, &err);
        while (tx_run_again(&run))
            run.status = d->kind == DEED_BEGUN ? begin_again(run.tx, d, &err)
                                               : lose_again(run.tx, &a, d, &err);
        st = run.status;
    }
    if (st != AS_OK)
        violation("one at a time: %s: %s", as_status_name(st), err.msg);
}

void sim_replay(const struct sim_db *db, struct sim_db *again)
{
    struct store *s = sim_store_create(again);
    for (size_t i = 0; i < db->n_deeds && !violation_text()[0]; i++)
        do_deed(s, &db->deeds[i]);
    sim_store_free(s);
}

static void replay(void *arg)
{
    sim_replay(&w.db, arg);
}

static void check_one_at_a_time(uint64_t seed, const struct sim_tables *empty)
{
    struct sim_db again;
    sim_begin(seed);
    sim_db_init(&again);
    *again.t = *empty;
    sim_spawn(NODE_WORLD, replay, &again);
    sim_run();
    sim_end();
    if (!violation_text()[0])
        (void)same_tables(w.db.t, again.t);
    sim_db_done(&again);
}

/* ---- a run ---- */

void sim_make_sweeps(struct sim_db *db)
{
    static const char document[] =
        "{\"name\":\"sim\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"parameters\":{"
        "\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},\"search\":{\"method\":\"random\","
        "\"seed\":7},\"limits\":{\"max_trials\":10},\"trial\":{\"command\":[\"true\"]}}";
    for (int i = 0; i < SIM_SWEEPS; i++) {
        struct sim_sweep *s = &db->t->sweeps[i];
        *s = (struct sim_sweep){.is_there = true,
                                .document = document,
                                .seed = i + 7,
                                .planned = 4 + (int64_t)rng_below(&sim_rng, SIM_TRIALS - 3),
                                .max_concurrent = (int64_t)rng_below(&sim_rng, 4),
                                .max_failed = sim_chance(0.5) ? 3 : -1,
                                .max_restarts = 1 + (int64_t)rng_below(&sim_rng, 3),
                                .trial_timeout_ms = 3600000,
                                .priority = (int64_t)rng_below(&sim_rng, 2),
                                .keeps_timed_out = sim_chance(0.5),
                                .has_target = sim_chance(0.3),
                                .target = 0.04,
                                .outcomes =
                                    sim_chance(0.5) ? "[{\"metric\":\"acc\",\"min\":0.3}]" : NULL};
        (void)snprintf(s->id, sizeof s->id, "%c", 'a' + i);
    }
    for (int i = 0; i < SIM_RUNNERS; i++) {
        struct sim_runner *r = &db->t->runners[i];
        (void)snprintf(r->name, sizeof r->name, "%s", runner_names[i]);
        r->slots = 2 + i;
    }
}

/* How often things fail differs between seeds: calm ones, and ones where every batch runs again. */
static void draw_rates(void)
{
    static const double rates[] = {0, 0.002, 0.02, 0.08};
    w.db.faults = (struct sim_faults){.lost = rates[rng_below(&sim_rng, 3)],
                                      .deadlock = rates[rng_below(&sim_rng, 4)],
                                      .fails = rates[rng_below(&sim_rng, 3)],
                                      .lost_reply = rates[rng_below(&sim_rng, 4)],
                                      .round_trip_ms = sim_chance(0.5) ? 0.4 : 3};
    w.p_lose = rates[rng_below(&sim_rng, 4)];
    w.p_copy = rates[rng_below(&sim_rng, 4)] * 2;
}

static void free_world(void)
{
    for (struct delivery *d = w.deliveries, *next; d; d = next) {
        next = d->next;
        for (size_t i = 0; i < PARTS; i++)
            arena_done(&d->sent[i].a);
        free(d);
    }
    for (struct call *c = w.calls, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    for (size_t i = 0; i < w.n_graves; i++)
        sim_store_free(w.graves[i]);
    free(w.told);
    sim_db_done(&w.db);
}

void sim_world_run(uint64_t seed, sim_plant plant, struct sim_report *ret)
{
    w = (struct world){.report = ret};
    *ret = (struct sim_report){0};
    sim_begin(seed);
    sim_db_init(&w.db);
    w.db.plant = plant;
    draw_rates();
    /* Some faults show only if a repeat and a power cut come within milliseconds. */
    w.is_hasty = plant == PLANT_UNSEEN || sim_chance(0.1);
    w.p_copy = w.is_hasty ? 0.8 : w.p_copy;
    sim_make_sweeps(&w.db);
    struct sim_tables *empty = as_calloc(1, sizeof *empty);
    *empty = *w.db.t;
    for (int i = 0; i < SERVERS; i++)
        sim_spawn(NODE_SERVER + i, run_server, &w.servers[i]);
    for (int i = 0; i < SIM_RUNNERS; i++) {
        w.runners[i].index = i;
        sim_spawn(NODE_RUNNER + i, run_runner, &w.runners[i]);
        sim_spawn(NODE_RUNNER + i, run_beats, &w.runners[i]);
    }
    sim_spawn(NODE_WORLD, run_world, NULL);
    sim_run();
    sim_end();
    ret->steps = (int64_t)sim_steps;
    ret->reruns = w.db.n_reruns;
    ret->waits = w.db.n_waits;
    for (size_t i = 0; i < w.n_told; i++)
        check_told(&w.told[i]);
    if (!violation_text()[0])
        check_one_at_a_time(seed, empty);
    free(empty);
    free_world();
}
