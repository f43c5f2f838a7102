/* Nothing that is drawn depends on an answer, so both sides get the same schedule. A round ends
 * when each of its members has an answer other than "unavailable": until then they are submitted
 * again, as clients do. Results and claims have rounds of their own, and a round has one member of
 * a trial, so that a repeat comes before whatever follows it. */
#include "tests/simulation/rounds.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "scheduler/commit/committer.h"
#include "tests/simulation/fibers.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/world.h"
#include "tests/support/check_main.h"

#define ROUNDS 14
#define MEMBERS 16 /* of a round */

enum { SIDE_BATCHES, SIDE_ALONE };

struct entry {
    struct commit_member m;
    struct arena a;
    struct measurement points[SIM_METRICS];
    struct trial_note note;
    struct claim_request claim;
    char claim_id[24];
};

struct side {
    int kind;
    uint64_t seed;
    struct sim_db db;
    struct rounds_report *report;
};

static size_t n_waiting;

static void entry_done(struct commit_member *m)
{
    (void)m;
    if (--n_waiting == 0)
        sim_wake(&n_waiting);
}

/* ---- the schedule ---- */

static void draw_result(struct rng *rng, struct entry *e)
{
    static const attempt_outcome outcomes[] = {OUTCOME_COMPLETED, OUTCOME_COMPLETED,
                                               OUTCOME_COMPLETED, OUTCOME_FAILED,
                                               OUTCOME_RETRY,     OUTCOME_RELEASED};
    const char id[2] = {(char)('a' + rng_below(rng, SIM_SWEEPS)), '\0'};
    double value = (double)rng_below(rng, 100) / 100;
    e->m.kind = rng_below(rng, 2) ? COMMIT_RECORD : COMMIT_END;
    e->m.ref = (struct attempt_ref){.number = (int64_t)rng_below(rng, SIM_TRIALS),
                                    .attempt = 1 + (int64_t)rng_below(rng, 3)};
    e->m.ref.sweep = sim_name_for(&e->m, id);
    for (int m = 0; m < SIM_METRICS; m++)
        e->points[m] = (struct measurement){(int64_t)rng_below(rng, 4), sim_metrics[m], value + m};
    e->note =
        (struct trial_note){sim_notes[rng_below(rng, SIM_NOTES)], value < 0.5 ? "low" : "high"};
    if (e->m.kind == COMMIT_RECORD) {
        e->m.in.report = (struct attempt_report){.points = e->points,
                                                 .n_points = 1 + rng_below(rng, SIM_METRICS),
                                                 .notes = &e->note,
                                                 .n_notes = rng_below(rng, 2)};
        return;
    }
    e->m.in.end = (struct completion){.outcome = outcomes[rng_below(rng, AS_ARRAY_LEN(outcomes))]};
    if (e->m.in.end.outcome != OUTCOME_COMPLETED || rng_below(rng, 4) == 0)
        return;
    for (int m = 0; m < SIM_METRICS; m++)
        e->points[m].step = -1;
    e->m.in.end.metrics = e->points;
    e->m.in.end.n_metrics = SIM_METRICS;
}

static void draw_claim(struct rng *rng, struct entry *e, int runner, int serial, struct sim_db *db)
{
    const struct sim_runner *r = &db->t->runners[runner];
    int64_t most = 1 + (int64_t)rng_below(rng, 3);
    (void)snprintf(e->claim_id, sizeof e->claim_id, "c%d", serial);
    e->claim = (struct claim_request){
        .runner = r->name, .epoch = r->epoch, .claim_id = e->claim_id, .max_trials = most};
    e->m.kind = COMMIT_CLAIM;
    e->m.in.claim = &e->claim;
}

/* ---- a round ---- */

static void run_round(struct side *s, struct committer *c, struct entry *entries, size_t n)
{
    struct commit_member *left[MEMBERS] = {NULL};
    struct as_err err = {0};
    for (size_t i = 0; i < n; i++)
        left[i] = &entries[i].m;
    while (n > 0) {
        size_t again = 0;
        n_waiting = n;
        ck_ok(committer_submit(c, left, n, &err), err);
        while (n_waiting > 0)
            (void)sim_wait(&n_waiting, INT64_MAX, "a round");
        for (size_t i = 0; i < n; i++)
            if (left[i]->status == AS_E_UNAVAILABLE)
                left[again++] = left[i];
            else if (left[i]->status == AS_E_INTERNAL)
                violation("a member failed: %s", left[i]->err.msg);
        s->report->repeats += (int64_t)again;
        n = again;
    }
}

static void run_results(struct side *s, struct committer *c, struct rng *rng)
{
    struct entry entries[MEMBERS] = {0};
    size_t n = 0, most = 1 + rng_below(rng, MEMBERS);
    for (size_t i = 0; i < most; i++) {
        struct entry *e = &entries[n];
        bool is_there = false;
        e->m = (struct commit_member){.arena = &e->a, .done = entry_done};
        draw_result(rng, e);
        for (size_t k = 0; k < n; k++)
            is_there |= entries[k].m.ref.number == e->m.ref.number &&
                        as_streq(entries[k].m.ref.sweep, e->m.ref.sweep);
        n += !is_there;
    }
    run_round(s, c, entries, n);
    for (size_t i = 0; i < MEMBERS; i++)
        arena_done(&entries[i].a);
}

static void run_claims(struct side *s, struct committer *c, struct rng *rng, int serial)
{
    struct entry entries[SIM_RUNNERS] = {0};
    size_t n = 1 + rng_below(rng, SIM_RUNNERS);
    for (size_t i = 0; i < n; i++) {
        entries[i].m = (struct commit_member){.arena = &entries[i].a, .done = entry_done};
        draw_claim(rng, &entries[i], (int)i, serial + (int)i, &s->db);
    }
    run_round(s, c, entries, n);
    for (size_t i = 0; i < n; i++)
        arena_done(&entries[i].a);
}

static void run_side(void *arg)
{
    struct side *s = arg;
    struct store *store = sim_store_create(&s->db);
    struct committer_opts o = {
        .ops = &sim_batch_ops, .ops_ctx = store, .threads = 1, .is_single = s->kind == SIDE_ALONE};
    struct committer *c = NULL;
    struct committer_figures f;
    struct as_err err = {0};
    struct rng rng;
    rng_init(&rng, s->seed, 2);
    ck_ok(committer_create(store, NULL, &o, &c, &err), err);
    for (int round = 0; round < ROUNDS && !violation_text()[0]; round++) {
        run_claims(s, c, &rng, round * SIM_RUNNERS);
        run_results(s, c, &rng);
    }
    committer_drain(c);
    committer_figures_get(c, &f);
    if (s->kind == SIDE_BATCHES) {
        s->report->batches += f.batches;
        s->report->members += f.members;
        s->report->alone += f.alone;
        s->report->fallbacks += f.fallbacks;
        s->report->reruns += s->db.n_reruns;
    }
    committer_free(c);
    sim_store_free(store);
}

static void begin_side(struct side *s)
{
    static const double rates[] = {0, 0.01, 0.1};
    sim_begin(s->seed); /* the same sweeps on both sides */
    sim_db_init(&s->db);
    sim_make_sweeps(&s->db);
    for (int i = 0; i < SIM_SWEEPS; i++)
        s->db.t->sweeps[i].has_target = false;
    for (int i = 0; i < SIM_RUNNERS; i++) {
        s->db.t->runners[i].is_there = s->db.t->runners[i].is_live = true;
        s->db.t->runners[i].epoch = 1;
    }
    s->db.faults.round_trip_ms = 1;
    if (s->kind == SIDE_BATCHES)
        s->db.faults = (struct sim_faults){.lost = rates[rng_below(&sim_rng, 3)],
                                           .deadlock = rates[rng_below(&sim_rng, 3)],
                                           .fails = rates[rng_below(&sim_rng, 2)],
                                           .lost_reply = rates[rng_below(&sim_rng, 3)],
                                           .round_trip_ms = 1,
                                           .only_batches = true};
    sim_spawn(0, run_side, s);
    sim_run();
    sim_end();
}

void sim_rounds_run(uint64_t seed, struct rounds_report *ret)
{
    struct side sides[] = {{.kind = SIDE_BATCHES, .seed = seed, .report = ret},
                           {.kind = SIDE_ALONE, .seed = seed, .report = ret}};
    *ret = (struct rounds_report){0};
    for (int i = 0; i < 2; i++)
        begin_side(&sides[i]);
    (void)same_tables(sides[0].db.t, sides[1].db.t);
    for (int i = 0; i < 2; i++)
        sim_db_done(&sides[i].db);
}
