/* A sweep that runs eight trials at once, and the replay of its decisions.
 *
 * The test plays the service: trials report in an order that a random stream chooses, wait, are
 * promoted, cancelled and tried again, complete with their last values, and what waits at the end
 * is promoted when nothing runs. It records the order; the replay has nothing else. */
#include "search/stopping/decision_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

#define TRIALS 60
#define SLOTS 8
#define RUNGS 4
#define EVENTS (TRIALS * 24)

typedef enum life { NEW, QUEUED, RUNNING, WAITS, ENDED } life;

struct play {
    struct stop_spec spec;
    struct stopping *index;
    struct arena arena;
    struct stored_event events[EVENTS];
    size_t n;
    life lives[TRIALS];
    uint32_t rung[TRIALS]; /* the next one */
    int64_t seq;
    struct rng r;
    size_t n_completed;
    bool fails; /* no trial completes */
};

static void record(struct play *p, struct stored_event e)
{
    ck_assert_uint_lt(p->n, EVENTS);
    p->events[p->n++] = e;
}

static void end(struct play *p, size_t i, stored_kind kind)
{
    const struct stored_event e = {.kind = kind,
                                   .result = {.number = i, .seq = (uint64_t)++p->seq}};
    record(p, e);
    stopping_left(p->index, i);
    p->lives[i] = ENDED;
    p->n_completed += kind == STORED_DONE;
}

static void promote(struct play *p, const struct rung_promotion *rows, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        record(p, (struct stored_event){.kind = STORED_PROMOTION,
                                        .result = {.number = (uint64_t)rows[k].number,
                                                   .rung = (uint32_t)rows[k].rung,
                                                   .seq = (uint64_t)rows[k].seq},
                                        .reason = rows[k].reason});
        p->lives[rows[k].number] = QUEUED;
    }
}

static double draw(struct play *p)
{
    double u = rng_uniform(&p->r);
    return u < 0.03 ? NAN : u < 0.06 ? INFINITY : floor(u * 40);
}

static void reach_rung(struct play *p, size_t i, double value, bool ends)
{
    struct as_err err = {0};
    struct rung_step step;
    struct rung_result now = {.number = i,
                              .rung = p->rung[i],
                              .step = p->spec.steps[p->rung[i]],
                              .values = {value},
                              .feasible = rng_uniform(&p->r) < 0.8};
    for (size_t k = 1; k < p->spec.n_objectives; k++)
        now.values[k] = draw(p);
    now.seq = (uint64_t)++p->seq;
    const struct rung_arrival arrival = {.result = now, .ends = ends, .successor = -1};
    ck_ok(rung_order_reach(p->index, &p->arena, &arrival, &p->seq, &step, &err), err);
    now.decision = step.verdict;
    p->rung[i]++;
    record(p, (struct stored_event){.kind = STORED_RESULT,
                                    .result = now,
                                    .rank = (uint64_t)step.rank,
                                    .of = (uint64_t)step.of,
                                    .reason = step.reason});
    p->lives[i] = step.verdict == STOP_PAUSE ? WAITS : RUNNING;
    promote(p, step.promotions, step.n_promotions);
    if (!ends && step.verdict == STOP_PRUNE)
        end(p, i, STORED_END);
}

/* It completes, with results at one rung or at several that it had passed. */
static void complete(struct play *p, size_t i)
{
    do
        reach_rung(p, i, draw(p), true);
    while (p->rung[i] < RUNGS && rng_uniform(&p->r) < 0.5);
    end(p, i, STORED_DONE);
}

/* A running trial reports at its next rung; at some it completes there. */
static void report(struct play *p, size_t i)
{
    bool ends = p->rung[i] == RUNGS - 1 || rng_uniform(&p->r) < 0.05;
    if (ends && p->fails)
        end(p, i, STORED_END);
    else if (ends)
        complete(p, i);
    else
        reach_rung(p, i, draw(p), false);
}

static size_t count(const struct play *p, life l)
{
    size_t n = 0;
    for (size_t i = 0; i < TRIALS; i++)
        n += p->lives[i] == l;
    return n;
}

static bool start(struct play *p)
{
    static const life order[] = {QUEUED, NEW};
    for (size_t k = 0; k < AS_ARRAY_LEN(order); k++)
        for (size_t i = 0; i < TRIALS; i++)
            if (p->lives[i] == order[k]) {
                p->lives[i] = RUNNING;
                return true;
            }
    return false;
}

/* People cancel a trial that waits, and some are tried again. */
static void disturb(struct play *p)
{
    size_t i = (size_t)(rng_uniform(&p->r) * TRIALS);
    if (p->lives[i] != WAITS || rng_uniform(&p->r) < 0.7)
        return;
    end(p, i, STORED_END);
    if (rng_uniform(&p->r) < 0.5) {
        end(p, i, STORED_END); /* the retry's place */
        p->lives[i] = QUEUED;
    }
}

static bool close_sweep(struct play *p)
{
    struct as_err err = {0};
    struct rung_promotion *rows = NULL;
    size_t n = 0;
    ck_ok(rung_order_close(p->index, &p->arena, p->n_completed == 0, &p->seq, &rows, &n, &err),
          err);
    promote(p, rows, n);
    return n > 0;
}

static void play(struct play *p, uint64_t seed)
{
    rng_init(&p->r, seed, 0);
    p->spec.seed = seed;
    ck_assert_int_eq(stopping_create(&p->spec, &p->index, NULL), AS_OK);
    do {
        for (;;) {
            while (count(p, RUNNING) < SLOTS && start(p))
                ;
            size_t n = count(p, RUNNING);
            if (n == 0)
                break;
            size_t k = (size_t)(rng_uniform(&p->r) * (double)n), i = 0;
            for (;; i++)
                if (p->lives[i] == RUNNING && k-- == 0)
                    break;
            report(p, i);
            disturb(p);
        }
    } while (close_sweep(p));
    for (size_t i = 0; i < TRIALS; i++)
        if (p->lives[i] == WAITS)
            end(p, i, STORED_END);
}

static void play_done(struct play *p)
{
    stopping_free(p->index);
    arena_done(&p->arena);
    free(p);
}

static struct play *play_of(stop_method method, stop_mode mode, size_t metrics, bool is_auto)
{
    struct play *p = calloc(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    p->spec = (struct stop_spec){.method = method,
                                 .mode = mode,
                                 .n_objectives = metrics,
                                 .maximize = {false, true},
                                 .has_metric = metrics == 1,
                                 .is_min_auto = is_auto,
                                 .min_steps = 1,
                                 .max_steps = 27,
                                 .eta = 3,
                                 .n_rungs = RUNGS,
                                 .steps = {1, 3, 9, 27},
                                 .chance = 0.05};
    return p;
}

/* Replay a copy of the order; the number of differences, and the place of the first. */
static size_t replay(const struct play *p, const struct stored_event *events, size_t n,
                     uint64_t *ret_first, size_t *ret_total)
{
    AS_AUTO(decision_replay_freep) struct decision_replay *r = NULL;
    struct as_err err = {0};
    struct decision_step step;
    size_t differences = 0, done = 0;
    struct stored_event *copy = calloc(n + 1, sizeof *copy);
    ck_assert_ptr_nonnull(copy);
    for (size_t i = 0; i < n; i++)
        copy[n - 1 - i] = events[i]; /* in any order */
    ck_ok(decision_replay_create(&p->spec, NULL, copy, n, &r, &err), err);
    as_status st;
    while ((st = decision_replay_next(r, &step, &err)) == AS_OK) {
        done++;
        ck_assert_int_eq(step.is_same, step.why == NULL);
        if (!step.is_same && differences++ == 0)
            *ret_first = step.stored->result.seq;
    }
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
    if (differences < DECISION_REPLAY_DIFFERENCES)
        ck_assert_uint_eq(done, decision_replay_total(r));
    *ret_total = done;
    free(copy);
    return differences;
}

static const struct {
    stop_method method;
    stop_mode mode;
    size_t metrics;
    bool is_auto;
} kinds[] = {{STOP_ASHA, STOP_MODE_PAUSE, 1, false},      {STOP_ASHA, STOP_MODE_STOP, 1, false},
             {STOP_ASHA, STOP_MODE_PAUSE, 1, true},       {STOP_ASHA, STOP_MODE_PAUSE, 2, false},
             {STOP_HYPERBAND, STOP_MODE_PAUSE, 1, false}, {STOP_HYPERBAND, STOP_MODE_STOP, 2, true},
             {STOP_PASHA, STOP_MODE_PAUSE, 1, false},     {STOP_MEDIAN, STOP_MODE_STOP, 1, false},
             {STOP_MEDIAN, STOP_MODE_PAUSE, 1, true},     {STOP_CURVE, STOP_MODE_PAUSE, 1, false},
             {STOP_CURVE, STOP_MODE_STOP, 1, false}};

START_TEST(test_every_decision_is_the_same)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        uint64_t first = 0;
        size_t total = 0;
        struct play *p =
            play_of(kinds[_i].method, kinds[_i].mode, kinds[_i].metrics, kinds[_i].is_auto);
        play(p, seed);
        size_t n = replay(p, p->events, p->n, &first, &total);
        ck_assert_msg(n == 0, "seed %d: %zu of %zu differ, the first at place %d", (int)seed, n,
                      total, (int)first);
        ck_assert_uint_ge(total, TRIALS);
        play_done(p);
    }
}
END_TEST

/* Change one stored decision at a time; each is found at its own place. */
START_TEST(test_a_changed_decision_is_found)
{
    struct play *p =
        play_of(kinds[_i].method, kinds[_i].mode, kinds[_i].metrics, kinds[_i].is_auto);
    play(p, 5);
    for (size_t i = 0; i < p->n; i += 3) {
        uint64_t first = 0;
        size_t total = 0;
        const struct stored_event kept = p->events[i];
        if (kept.kind != STORED_RESULT)
            continue;
        stop_verdict other = p->spec.mode == STOP_MODE_PAUSE ? STOP_PAUSE : STOP_PRUNE;
        p->events[i].result.decision = kept.result.decision == STOP_GO_ON ? other : STOP_GO_ON;
        ck_assert_uint_ge(replay(p, p->events, p->n, &first, &total), 1);
        ck_assert_uint_eq(first, kept.result.seq);
        p->events[i] = kept;
        p->events[i].rank++;
        ck_assert_uint_eq(replay(p, p->events, p->n, &first, &total), 1);
        ck_assert_uint_eq(first, kept.result.seq);
        p->events[i] = kept;
        p->events[i].reason =
            "another"; /* of a completion it tells of the results before it, too */
        ck_assert_uint_ge(replay(p, p->events, p->n, &first, &total), 1);
        p->events[i] = kept;
    }
    play_done(p);
}
END_TEST

/* A promotion that was given to another trial, and two that changed their places. */
START_TEST(test_a_changed_promotion_is_found)
{
    struct play *p = play_of(STOP_ASHA, STOP_MODE_PAUSE, 1, false);
    size_t n_changed = 0;
    play(p, 3);
    for (size_t i = 0; i < p->n; i++) {
        uint64_t first = 0;
        size_t total = 0;
        const struct stored_event kept = p->events[i];
        if (kept.kind != STORED_PROMOTION)
            continue;
        p->events[i].result.number = (kept.result.number + 1) % TRIALS;
        ck_assert_uint_ge(replay(p, p->events, p->n, &first, &total), 1);
        ck_assert_uint_le(first, kept.result.seq);
        p->events[i] = kept;
        n_changed++;
    }
    ck_assert_uint_ge(n_changed, 3);
    play_done(p);
}
END_TEST

/* Trial 1 waits and is promoted as if nothing ran, while trial 0, which runs in full, is between
 * two rungs: the same promotion is right after the end of trial 0. */
START_TEST(test_an_early_closing_is_found)
{
    struct play *p = play_of(STOP_ASHA, STOP_MODE_PAUSE, 1, true);
    uint64_t first = 0;
    size_t total = 0;
    ck_assert_int_eq(stopping_create(&p->spec, &p->index, NULL), AS_OK);
    rng_init(&p->r, 1, 0);
    reach_rung(p, 0, 1, false);
    reach_rung(p, 1, 2, false);
    ck_assert_int_eq(p->lives[0], RUNNING);
    ck_assert_int_eq(p->lives[1], WAITS);
    if (_i == 0)
        end(p, 0, STORED_END);
    ck_assert(close_sweep(p));
    ck_assert_uint_eq(replay(p, p->events, p->n, &first, &total), _i == 0 ? 0 : 1);
    ck_assert_uint_eq(total, 3);
    play_done(p);
}
END_TEST

/* Of pasha six trials wait at its highest rung. When nothing runs, it rises and the best third goes
 * on: the first of them is under way when the second is promoted. */
START_TEST(test_a_closing_promotes_several)
{
    struct play *p = play_of(STOP_PASHA, STOP_MODE_PAUSE, 1, false);
    uint64_t first = 0;
    size_t total = 0;
    ck_assert_int_eq(stopping_create(&p->spec, &p->index, NULL), AS_OK);
    rng_init(&p->r, 1, 0);
    for (size_t i = 0; i < 6; i++) {
        p->rung[i] = 1; /* it reported nothing at the first one */
        reach_rung(p, i, (double)i, false);
    }
    ck_assert_uint_eq(p->n, 6);
    ck_assert_uint_eq(count(p, WAITS), 6);
    ck_assert(close_sweep(p));
    ck_assert_uint_eq(p->n, 8);
    ck_assert_uint_eq(replay(p, p->events, p->n, &first, &total), 0);
    ck_assert_uint_eq(total, 8);
    play_done(p);
}
END_TEST

/* Every trial that goes on to the end fails: in the end some that waited have their turn, one at a
 * time, and the replay knows why. */
START_TEST(test_closings_in_vain)
{
    size_t n_vain = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct play *p = play_of(STOP_ASHA, STOP_MODE_PAUSE, 1 + (size_t)_i, false);
        uint64_t first = 0;
        size_t total = 0;
        p->fails = true;
        play(p, seed);
        for (size_t i = 0; i < p->n; i++) {
            n_vain += p->events[i].kind == STORED_PROMOTION &&
                      strstr(p->events[i].reason, "no trial has completed") != NULL;
            ck_assert(p->events[i].kind != STORED_DONE);
        }
        ck_assert_uint_eq(replay(p, p->events, p->n, &first, &total), 0);
        play_done(p);
    }
    ck_assert_uint_gt(n_vain, 0);
}
END_TEST

/* What comes after a free place is left out; a place that is taken twice is refused. */
START_TEST(test_places)
{
    struct play *p = play_of(STOP_ASHA, STOP_MODE_PAUSE, 1, false);
    struct decision_replay *r = NULL;
    struct as_err err = {0};
    uint64_t first = 0;
    size_t total = 0, all = 0;
    play(p, 2);
    ck_assert_uint_eq(replay(p, p->events, p->n, &first, &all), 0);
    size_t half = p->n / 2;
    const struct stored_event kept = p->events[half];
    p->events[half] = p->events[--p->n];
    ck_assert_uint_eq(replay(p, p->events, p->n, &first, &total), 0);
    ck_assert_uint_lt(total, all);
    p->events[half] = kept;
    p->events[1].result.seq = p->events[0].result.seq;
    ck_assert_int_eq(decision_replay_create(&p->spec, NULL, p->events, p->n, &r, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "have the place"));
    play_done(p);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_decision_replay");
    TCase *t = tcase_create("decisions");
    tcase_add_loop_test(t, test_every_decision_is_the_same, 0, (int)AS_ARRAY_LEN(kinds));
    tcase_add_loop_test(t, test_a_changed_decision_is_found, 0, (int)AS_ARRAY_LEN(kinds));
    tcase_add_test(t, test_a_changed_promotion_is_found);
    tcase_add_loop_test(t, test_an_early_closing_is_found, 0, 2);
    tcase_add_test(t, test_a_closing_promotes_several);
    tcase_add_loop_test(t, test_closings_in_vain, 0, 2);
    tcase_add_test(t, test_places);
    suite_add_tcase(s, t);
    return s;
}
