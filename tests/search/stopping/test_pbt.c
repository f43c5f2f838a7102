/* Population based training: its fields, which trial is replaced by a fork of which one, and what
 * parameters the fork has. Then a whole population is played and its decisions are made again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "search/stopping/decision_replay.h"
#include "search/stopping/explore.h"
#include "search/stopping/exploit.h"
#include "search/stopping/rung_order.h"
#include "tests/support/check_main.h"

#define SPACE                                                                                      \
    "{\"lr\":{\"type\":\"float\",\"min\":1e-4,\"max\":1.0,\"scale\":\"log\"},"                     \
    "\"decay\":{\"type\":\"float\",\"min\":0,\"max\":0.5},"                                        \
    "\"width\":{\"type\":\"int\",\"min\":4,\"max\":64,\"scale\":\"log\"},"                         \
    "\"size\":{\"type\":\"ordinal\",\"values\":[\"s\",\"m\",\"l\"]},"                              \
    "\"kind\":{\"type\":\"categorical\",\"values\":[\"a\",\"b\"]},"                                \
    "\"rho\":{\"type\":\"float\",\"min\":0,\"max\":1,\"when\":{\"kind\":\"b\"}},"                  \
    "\"fixed\":{\"type\":\"constant\",\"value\":3}}"
enum { LR, DECAY, WIDTH, SIZE, KIND, RHO, FIXED };

static struct space *space_of(const char *constraints)
{
    struct as_err err = {0};
    struct space *s = NULL;
    JSON_AUTO j = NULL;
    JSON_AUTO list = NULL;
    ck_assert_int_eq(json_parse(SPACE, strlen(SPACE), &j, &err), AS_OK);
    ck_ok(space_parse(j, "/parameters", &s, &err), err);
    if (!constraints)
        return s;
    ck_assert_int_eq(json_parse(constraints, strlen(constraints), &list, &err), AS_OK);
    ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
    return s;
}

/* ---- the fields ---- */

static as_status parse(const struct space *s, const char *json, struct pbt_spec *ret,
                       struct as_err *err)
{
    struct json_fields f;
    JSON_AUTO j = NULL;
    ck_assert_int_eq(json_parse(json, strlen(json), &j, err), AS_OK);
    ck_ok(json_fields_init(&f, j, "/early_stopping", err), *err);
    as_status st = pbt_spec_parse(&f, s, ret, err);
    return st == AS_OK ? json_fields_end(&f, err) : st;
}

START_TEST(test_fields)
{
    static const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"period\":5}",
         "{\"population\":20,\"period\":5,\"quantile\":0.2,\"perturb\":[0.8,1.2],\"resample\":0.25,"
         "\"explore\":[\"lr\",\"decay\",\"width\",\"size\",\"kind\",\"rho\"]}"},
        {"{\"period\":2,\"population\":8,\"quantile\":0.5,\"perturb\":[0.5,2],\"resample\":0,"
         "\"explore\":[\"rho\",\"lr\"]}",
         "{\"population\":8,\"period\":2,\"quantile\":0.5,\"perturb\":[0.5,2.0],\"resample\":0.0,"
         "\"explore\":[\"lr\",\"rho\"]}"},
    };
    AS_AUTO(space_freep) struct space *s = space_of(NULL);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct pbt_spec p, again;
        struct as_err err = {0};
        ck_ok(parse(s, cases[i].json, &p, &err), err);
        JSON_AUTO j = json_object();
        ck_assert_int_eq(pbt_spec_add_json(&p, s, j), 0);
        AS_AUTO(as_freep) char *text = json_format_ordered(j);
        ck_assert_str_eq(text, cases[i].want);
        ck_ok(parse(s, text, &again, &err), err); /* the canonical form is its own */
        ck_assert_mem_eq(p.explored, again.explored, sizeof p.explored);
    }
}
END_TEST

START_TEST(test_what_is_refused)
{
    static const struct {
        const char *json, *pointer, *says;
    } cases[] = {
        {"{}", "/early_stopping/period", "missing"},
        {"{\"period\":0}", "/early_stopping/period", "expected"},
        {"{\"period\":1,\"population\":1}", "/early_stopping/population", "expected"},
        {"{\"period\":1,\"quantile\":0.6}", "/early_stopping/quantile", "expected"},
        {"{\"period\":1,\"quantile\":0}", "/early_stopping/quantile", "expected"},
        {"{\"period\":1,\"resample\":1.5}", "/early_stopping/resample", "expected"},
        {"{\"period\":1,\"perturb\":[0.8]}", "/early_stopping/perturb", "two factors"},
        {"{\"period\":1,\"perturb\":[1.2,0.8]}", "/early_stopping/perturb", "two factors"},
        {"{\"period\":1,\"perturb\":[0,2]}", "/early_stopping/perturb", "two factors"},
        {"{\"period\":1,\"perturb\":[0.5,\"2\"]}", "/early_stopping/perturb", "two factors"},
        {"{\"period\":1,\"explore\":[]}", "/early_stopping/explore", "at least one"},
        {"{\"period\":1,\"explore\":[\"lr\",\"nope\"]}", "/early_stopping/explore/1", "'nope'"},
        {"{\"period\":1,\"explore\":[7]}", "/early_stopping/explore/0", "name of a parameter"},
        {"{\"period\":1,\"explore\":[\"fixed\"]}", "/early_stopping/explore/0", "constant"},
        {"{\"period\":1,\"explore\":[\"lr\",\"lr\"]}", "/early_stopping/explore/1", "twice"},
    };
    AS_AUTO(space_freep) struct space *s = space_of(NULL);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct pbt_spec p;
        struct as_err err = {0};
        ck_assert_msg(parse(s, cases[i].json, &p, &err) == AS_E_INVAL, "%s", cases[i].json);
        ck_assert_str_eq(err.pointer, cases[i].pointer);
        ck_assert_msg(strstr(err.msg, cases[i].says), "%s: %s", cases[i].json, err.msg);
    }
}
END_TEST

/* ---- who is replaced ---- */

static struct pbt_spec pbt_of(double quantile)
{
    struct pbt_spec p = {
        .population = 10, .period = 1, .quantile = quantile, .down = 0.8, .up = 1.2, .resample = 0};
    p.explored[0] = 1 << LR | 1 << DECAY | 1 << WIDTH | 1 << SIZE | 1 << KIND | 1 << RHO;
    return p;
}

static void add_row(struct standings *at, uint64_t number, double cost)
{
    const struct standing row = {.number = number, .costs = {cost}, .kind = isnan(cost) ? 2 : 0};
    ck_assert_int_eq(standings_reserve(at, NULL), AS_OK);
    standings_add(at, &row);
}

/* Costs that arrive one after another; of each whether it is replaced, and how many may be its
 * parent: those with the lowest costs. */
START_TEST(test_truth_table)
{
    static const struct {
        double quantile;
        size_t n;
        double costs[8];
        bool is_last[8];
        size_t n_last[8];
    } cases[] = {
        {0.25,
         8,
         {5, 1, 2, 6, 3, 4, 7, 7},
         {false, false, false, true, false, false, true, true},
         {0, 0, 0, 1, 1, 1, 1, 2}},
        {0.5, 4, {1, 2, 3, 2.5}, {false, true, true, true}, {0, 1, 1, 2}},
        {0.5, 4, {1, 1, 1, 1}, {false, false, false, false}, {0, 1, 1, 2}}, /* all are equal */
        {0.5, 4, {NAN, NAN, 1, NAN}, {false, false, false, false}, {0, 1, 1, 2}},
        {0.5, 4, {1, 2, NAN, INFINITY}, {false, true, true, true}, {0, 1, 1, 2}},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        const struct pbt_spec p = pbt_of(cases[i].quantile);
        struct standings at = {.n_metrics = 1};
        for (size_t k = 0; k < cases[i].n; k++) {
            struct exploit x;
            double cost = cases[i].costs[k];
            const struct standing row = {.number = k, .costs = {cost}, .kind = isnan(cost) ? 2 : 0};
            size_t rank = standings_rank(&at, &row, false);
            exploit_decide(&at, 0, k, rank, &p, 7, &x);
            ck_assert_msg(x.is_last == cases[i].is_last[k] && x.n_last == cases[i].n_last[k],
                          "case %zu, result %zu: %d of %zu", i, k, (int)x.is_last, x.n_last);
            if (x.is_last) {
                ck_assert_uint_lt(x.parent, k);
                const struct standing parent = {.number = x.parent,
                                                .costs = {cases[i].costs[x.parent]},
                                                .kind = isnan(cases[i].costs[x.parent]) ? 2 : 0};
                ck_assert_uint_le(standings_rank(&at, &parent, true), x.n_last);
                ck_assert_int_eq(standing_compare(&parent, &row, 1), -1);
            }
            add_row(&at, k, cost);
        }
        standings_done(&at);
    }
}
END_TEST

/* Each of the best share is drawn about as often as the others; a draw follows from trial, rung and
 * seed. 40 000 draws of 20: a count has the deviation 44, so 250 is 5.7 of them. */
START_TEST(test_parents_are_drawn_evenly)
{
    const struct pbt_spec p = pbt_of(0.2);
    struct standings at = {.n_metrics = 1};
    size_t counts[100] = {0}, differs = 0;
    struct exploit x, other;
    for (uint64_t i = 0; i < 99; i++)
        add_row(&at, i, (double)(i * 37 % 99));
    for (uint64_t i = 0; i < 40000; i++) {
        exploit_decide(&at, 3, 1000 + i, 100, &p, 11, &x);
        ck_assert(x.is_last && x.n_last == 20);
        counts[x.parent]++;
        exploit_decide(&at, 3, 1000 + i, 100, &p, 11, &other);
        ck_assert_uint_eq(other.parent, x.parent);
        exploit_decide(&at, 4, 1000 + i, 100, &p, 11, &other);
        differs += other.parent != x.parent;
    }
    for (uint64_t i = 0; i < 99; i++) {
        if (i * 37 % 99 < 20)
            ck_assert_msg(counts[i] > 1750 && counts[i] < 2250, "%d: %zu", (int)i, counts[i]);
        else
            ck_assert_uint_eq(counts[i], 0);
    }
    ck_assert_uint_gt(differs, 30000); /* the rung counts */
    standings_done(&at);
}
END_TEST

/* The place in an order of several blocks. */
START_TEST(test_places_in_the_order)
{
    struct standings at = {.n_metrics = 1};
    for (uint64_t i = 0; i < 3000; i++)
        add_row(&at, i, (double)(i * 1237 % 3000));
    for (size_t k = 0; k < 3000; k++)
        ck_assert_double_eq(standings_at(&at, k)->costs[0], (double)k);
    standings_done(&at);
}
END_TEST

/* ---- what a fork is like ---- */

static struct config *config_of(const struct space *s, const char *json)
{
    struct as_err err = {0};
    struct config *c = NULL;
    JSON_AUTO j = NULL;
    ck_assert_int_eq(json_parse(json, strlen(json), &j, &err), AS_OK);
    ck_ok(config_from_json(s, j, "/params", &c, &err), err);
    return c;
}

static struct config *fork_of(const struct space *s, const struct pbt_spec *p, uint64_t number,
                              const struct config *parent)
{
    struct as_err err = {0};
    struct config *c = NULL;
    ck_ok(explore(s, p, 5, number, parent, &c, &err), err);
    return c;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* Without drawing anew every number moves by a factor, on its scale; values without an order
 * stay. */
START_TEST(test_perturbed)
{
    AS_AUTO(space_freep) struct space *s = space_of(NULL);
    AS_AUTO(config_freep)
    struct config *parent = config_of(s, "{\"lr\":0.01,\"decay\":0.2,\"width\":16,\"size\":\"m\","
                                         "\"kind\":\"a\",\"fixed\":3}");
    struct pbt_spec p = pbt_of(0.2);
    size_t up[4] = {0};
    for (uint64_t n = 0; n < 1000; n++) {
        AS_AUTO(config_freep) struct config *c = fork_of(s, &p, n, parent);
        double lr = c->entries[LR].value.real, decay = c->entries[DECAY].value.real;
        int64_t width = c->entries[WIDTH].value.integer;
        size_t size = c->entries[SIZE].value.choice;
        ck_assert_msg(is_near(lr, 0.008) || is_near(lr, 0.012), "%.17g", lr);
        ck_assert_msg(is_near(decay, 0.1) || is_near(decay, 0.3), "%.17g", decay);
        ck_assert(width == 13 || width == 19);
        ck_assert(size == 0 || size == 2);
        ck_assert_uint_eq(c->entries[KIND].value.choice, 0);
        ck_assert(!c->entries[RHO].active && c->entries[FIXED].active);
        up[0] += lr > 0.01;
        up[1] += decay > 0.2;
        up[2] += width > 16;
        up[3] += size > 1;
    }
    for (size_t i = 0; i < 4; i++) /* 500, deviation 16 */
        ck_assert_msg(up[i] > 400 && up[i] < 600, "%zu: %zu", i, up[i]);
}
END_TEST

/* At the ends of their ranges numbers stay inside; an int moves by one at least. */
START_TEST(test_ends_of_ranges)
{
    AS_AUTO(space_freep) struct space *s = space_of(NULL);
    AS_AUTO(config_freep)
    struct config *parent = config_of(s, "{\"lr\":1.0,\"decay\":0,\"width\":4,\"size\":\"s\","
                                         "\"kind\":\"b\",\"rho\":0.5,\"fixed\":3}");
    struct pbt_spec p = pbt_of(0.2);
    p.down = 0.999;
    p.up = 1.001;
    for (uint64_t n = 0; n < 200; n++) {
        AS_AUTO(config_freep) struct config *c = fork_of(s, &p, n, parent);
        ck_assert(c->entries[LR].value.real >= 0.998 && c->entries[LR].value.real <= 1.0);
        ck_assert(c->entries[DECAY].value.real >= 0 && c->entries[DECAY].value.real <= 0.0006);
        ck_assert(c->entries[WIDTH].value.integer == 4 || c->entries[WIDTH].value.integer == 5);
        ck_assert(c->entries[SIZE].value.choice <= 1);
    }
}
END_TEST

/* Parameters that may not change keep their values, a parameter that becomes active is drawn, and
 * what the space forbids is never proposed. The same fork is always the same. */
START_TEST(test_what_holds_for_every_fork)
{
    AS_AUTO(space_freep)
    struct space *s = space_of("[\"decay < lr\", \"width + 0 >= 8\"]");
    AS_AUTO(config_freep)
    struct config *parent = config_of(s, "{\"lr\":0.5,\"decay\":0.4,\"width\":9,\"size\":\"m\","
                                         "\"kind\":\"a\",\"fixed\":3}");
    struct pbt_spec p = pbt_of(0.2);
    size_t n_b = 0, n_changed = 0;
    p.resample = 0.5;
    p.explored[0] = 1 << LR | 1 << DECAY | 1 << KIND;
    for (uint64_t n = 0; n < 2000; n++) {
        AS_AUTO(config_freep) struct config *c = fork_of(s, &p, n, parent);
        AS_AUTO(config_freep) struct config *again = fork_of(s, &p, n, parent);
        ck_assert(config_equal(s, c, again));
        ck_assert(space_allows(s, c));
        ck_assert_int_eq(c->entries[WIDTH].value.integer, 9);
        ck_assert_uint_eq(c->entries[SIZE].value.choice, 1);
        bool is_b = c->entries[KIND].value.choice == 1;
        ck_assert_int_eq(c->entries[RHO].active, is_b);
        for (size_t i = 0; i < s->n; i++)
            ck_assert(!c->entries[i].active || param_contains(&s->params[i], c->entries[i].value));
        n_b += is_b;
        n_changed += !config_equal(s, c, parent);
    }
    ck_assert_msg(n_b > 350 && n_b < 650, "%zu", n_b); /* half of those that are drawn: 500 */
    ck_assert_uint_gt(n_changed, 1990);
}
END_TEST

/* Nothing that the space allows can be reached: the fork is like its parent. */
START_TEST(test_no_way_out)
{
    AS_AUTO(space_freep) struct space *s = space_of("[\"lr == 0.01\"]");
    AS_AUTO(config_freep)
    struct config *parent = config_of(s, "{\"lr\":0.01,\"decay\":0.2,\"width\":16,\"size\":\"m\","
                                         "\"kind\":\"a\",\"fixed\":3}");
    const struct pbt_spec p = pbt_of(0.2);
    AS_AUTO(config_freep) struct config *c = fork_of(s, &p, 1, parent);
    ck_assert(config_equal(s, c, parent));
}
END_TEST

/* ---- a whole population ---- */

#define POPULATION 12
#define RUNGS 6
#define MOST 60
#define EVENTS (MOST * (RUNGS + 1))

struct play {
    struct space *space;
    struct stop_spec spec;
    struct stopping *index;
    struct arena arena;
    struct stored_event events[EVENTS];
    struct stored_fork forks[MOST]; /* by the trial that was replaced */
    struct config *configs[MOST];
    uint32_t rung[MOST];
    bool lives[MOST];
    double luck[MOST];
    size_t n, n_trials, most;
    int64_t seq;
    struct rng r;
};

static void replace(struct play *p, uint64_t number, uint64_t parent, uint32_t rung)
{
    size_t fork = p->n_trials++;
    p->configs[fork] = fork_of(p->space, &p->spec.pbt, fork, p->configs[parent]);
    p->forks[number] = (struct stored_fork){.number = fork,
                                            .parent = parent,
                                            .step = p->spec.steps[rung],
                                            .config = p->configs[fork],
                                            .parent_config = p->configs[parent]};
    p->rung[fork] = rung + 1;
    p->lives[fork] = true;
    p->luck[fork] = p->luck[parent];
    p->lives[number] = false;
}

static void reach(struct play *p, uint64_t i)
{
    struct as_err err = {0};
    struct rung_step step;
    struct rung_result now = {.number = i,
                              .rung = p->rung[i],
                              .step = p->spec.steps[p->rung[i]],
                              .feasible = true,
                              .seq = (uint64_t)++p->seq};
    p->luck[i] += rng_normal(&p->r);
    now.values[0] = rng_uniform(&p->r) < 0.05 ? NAN : p->luck[i];
    const struct rung_arrival arrival = {
        .result = now, .successor = p->n_trials < p->most ? (int64_t)p->n_trials : -1};
    ck_ok(rung_order_reach(p->index, &p->arena, &arrival, &p->seq, &step, &err), err);
    ck_assert_uint_eq(step.n_promotions, 0);
    ck_assert_int_eq(step.parent >= 0, step.verdict == STOP_PRUNE);
    now.decision = step.verdict;
    struct stored_event *e = &p->events[p->n++];
    *e = (struct stored_event){.kind = STORED_RESULT,
                               .result = now,
                               .rank = (uint64_t)step.rank,
                               .of = (uint64_t)step.of,
                               .reason = step.reason};
    p->rung[i]++;
    if (step.parent >= 0) {
        replace(p, i, (uint64_t)step.parent, now.rung);
        e->fork = &p->forks[i];
    } else if (p->rung[i] < RUNGS) {
        return;
    }
    p->lives[i] = false;
    p->events[p->n++] = (struct stored_event){.kind = step.parent >= 0 ? STORED_END : STORED_DONE,
                                              .result = {.number = i, .seq = (uint64_t)++p->seq}};
}

static struct play *play(uint64_t seed, size_t most)
{
    struct play *p = calloc(1, sizeof *p);
    struct as_err err = {0};
    ck_assert_ptr_nonnull(p);
    p->space = space_of(NULL);
    p->most = most;
    p->spec = (struct stop_spec){.method = STOP_PBT,
                                 .mode = STOP_MODE_STOP,
                                 .n_objectives = 1,
                                 .has_metric = true,
                                 .min_steps = 2,
                                 .max_steps = 12,
                                 .n_rungs = RUNGS,
                                 .steps = {2, 4, 6, 8, 10, 12},
                                 .pbt = pbt_of(0.25),
                                 .seed = 5};
    p->spec.pbt.resample = 0.3;
    ck_ok(stopping_create(&p->spec, &p->index, &err), err);
    rng_init(&p->r, seed, 0);
    for (size_t i = 0; i < POPULATION; i++) {
        p->configs[i] =
            config_of(p->space, "{\"lr\":0.01,\"decay\":0.2,\"width\":16,\"size\":\"m\","
                                "\"kind\":\"a\",\"fixed\":3}");
        p->lives[i] = true;
    }
    p->n_trials = POPULATION;
    for (;;) {
        uint64_t lives[MOST], n = 0;
        for (size_t i = 0; i < p->n_trials; i++)
            if (p->lives[i])
                lives[n++] = i;
        if (n == 0)
            return p;
        reach(p, lives[rng_below(&p->r, n)]);
    }
}

static void play_done(struct play *p)
{
    for (size_t i = 0; i < p->n_trials; i++)
        config_free(p->configs[i]);
    stopping_free(p->index);
    arena_done(&p->arena);
    space_free(p->space);
    free(p);
}

/* How many decisions differ, and the place of the first. */
static size_t replay(const struct play *p, uint64_t *ret_first)
{
    AS_AUTO(decision_replay_freep) struct decision_replay *r = NULL;
    struct as_err err = {0};
    struct decision_step step;
    struct stored_event copy[EVENTS];
    size_t differences = 0;
    for (size_t i = 0; i < p->n; i++)
        copy[p->n - 1 - i] = p->events[i];
    ck_ok(decision_replay_create(&p->spec, p->space, copy, p->n, &r, &err), err);
    as_status st;
    while ((st = decision_replay_next(r, &step, &err)) == AS_OK)
        if (!step.is_same && differences++ == 0)
            *ret_first = step.stored->result.seq;
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
    return differences;
}

/* Every trial but the last ones is replaced by one fork; each rung has at most one result for each
 * place of the population. */
START_TEST(test_population)
{
    size_t n_all = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct play *p = play(seed, _i == 0 ? MOST : POPULATION + 3);
        size_t at[RUNGS] = {0}, n_forks = p->n_trials - POPULATION;
        uint64_t first = 0;
        ck_assert_uint_le(p->n_trials, p->most);
        n_all += n_forks;
        for (size_t i = 0; i < p->n; i++) {
            const struct stored_event *e = &p->events[i];
            at[e->kind == STORED_RESULT ? e->result.rung : 0] += e->kind == STORED_RESULT;
            if (e->kind == STORED_RESULT && rung_order_is_full(e->reason))
                ck_assert(_i == 1 && e->result.decision == STOP_GO_ON);
        }
        for (size_t k = 0; k < RUNGS; k++)
            ck_assert_uint_eq(at[k], POPULATION);
        ck_assert_uint_eq(replay(p, &first), 0);
        play_done(p);
    }
    ck_assert_uint_ge(n_all, _i == 0 ? 50 : 25);
}
END_TEST

/* A parent, a place or a parameter that is another one is found at its own place. */
START_TEST(test_a_changed_fork_is_found)
{
    struct play *p = play(3, MOST);
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct stored_event kept = p->events[i];
        uint64_t first = 0;
        if (!kept.fork)
            continue;
        struct stored_fork other = *kept.fork;
        AS_AUTO(config_freep) struct config *c = config_copy(other.config);
        c->entries[LR].value.real *= 1.0000001;
        other.config = c;
        p->events[i].fork = &other;
        ck_assert_uint_eq(replay(p, &first), 1);
        ck_assert_uint_eq(first, kept.result.seq);
        other = *kept.fork;
        other.parent = (other.parent + 1) % POPULATION;
        ck_assert_uint_eq(replay(p, &first), 1);
        ck_assert_uint_eq(first, kept.result.seq);
        other = *kept.fork;
        other.step++;
        ck_assert_uint_eq(replay(p, &first), 1);
        p->events[i].fork = NULL;
        ck_assert_uint_eq(replay(p, &first), 1);
        p->events[i] = kept;
        n++;
    }
    ck_assert_uint_ge(n, 5);
    play_done(p);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_pbt");
    TCase *t = tcase_create("pbt");
    tcase_add_test(t, test_fields);
    tcase_add_test(t, test_what_is_refused);
    tcase_add_test(t, test_truth_table);
    tcase_add_test(t, test_parents_are_drawn_evenly);
    tcase_add_test(t, test_places_in_the_order);
    tcase_add_test(t, test_perturbed);
    tcase_add_test(t, test_ends_of_ranges);
    tcase_add_test(t, test_what_holds_for_every_fork);
    tcase_add_test(t, test_no_way_out);
    tcase_add_loop_test(t, test_population, 0, 2);
    tcase_add_test(t, test_a_changed_fork_is_found);
    suite_add_tcase(s, t);
    return s;
}
