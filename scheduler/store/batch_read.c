/* What a batch reads of its members, in statements on sets.
 *
 * Rows are locked in the documented order: clients (batch_find.c), sweeps by key, trials, gangs. A
 * row that another transaction holds is skipped, so a batch never waits in a queue behind one
 * sweep. A patient batch waits. */
#include "scheduler/store/batch_read_priv.h"

#include "scheduler/store/batch_find_priv.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/rung_board_store.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store_priv.h"

enum { BATCH_FACTS };

static const struct stmt stmts[] = {
    /* $4: is the latest step wanted? Not of an attempt whose end was reported before. */
    [BATCH_FACTS] =
        {"batch_facts",
         "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[], $3::bigint[], "
         "$4::int[]) with ordinality as u(key, number, attempt, wants, place) cross join lateral "
         "(select x.reported, t.metrics, case when u.wants = 1 and x.reported is null then (select "
         "max(c.steps[cardinality(c.steps)]) from measurement_chunk c where c.sweep_key = u.key "
         "and c.number = u.number and c.attempt = u.attempt) end from trial t left join attempt x "
         "on x.sweep_key = t.sweep_key and x.number = t.number and x.attempt = u.attempt where "
         "t.sweep_key = u.key and t.number = u.number limit 1) h"},
};
const struct stmt_set batch_read_stmts = {"batch_read", stmts, AS_ARRAY_LEN(stmts)};

/* May the rows of member i still be read? */
static bool is_open(const struct batch_reading *b, size_t i)
{
    return b->facts[i].has_sweep && b->facts[i].has_trial && !b->facts[i].is_busy;
}

/* May it reach a rung? The final values of an end have their steps only later. */
static bool is_near(const struct batch_reading *b, size_t i)
{
    const struct batch_ask *m = &b->asks[i];
    const struct rung_near *near = &b->facts[i].holder.near;
    if (!m->ends)
        return rung_is_near(near, m->points, m->n_points);
    return near->step > 0 && (m->n_points > 0 || rung_is_past(near));
}

/* Is the row of its sweep locked? */
static bool needs_sweep(const struct batch_reading *b, size_t i)
{
    return is_open(b, i) && (b->asks[i].ends || is_near(b, i));
}

static as_status lock_sweeps(struct batch_reading *b, struct as_err *err)
{
    int64_t *keys = arena_alloc(b->a, b->n + 1, sizeof *keys);
    struct sweep_locked **rows = arena_alloc(b->a, b->n + 1, sizeof(struct sweep_locked *));
    size_t n = 0, k = 0;
    if (!keys || !rows)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        int64_t key = b->facts[i].holder.sweep_key;
        if (needs_sweep(b, i) && (n == 0 || keys[n - 1] != key))
            keys[n++] = key;
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_sweep_lock_many(b->t, b->a, keys, n, b->is_patient, rows, err);
    for (size_t j = 0; j < b->n && st == AS_OK; j++) {
        struct batch_fact *f = &b->facts[b->order[j]];
        if (!needs_sweep(b, b->order[j]))
            continue;
        while (keys[k] != f->holder.sweep_key)
            k++;
        f->sweep = rows[k];
        f->is_busy = !rows[k];
    }
    return st;
}

/* Members as the keys of BATCH_FACTS. */
struct picked {
    struct arrays x;
    size_t *of; /* places of the members */
    size_t n;
};

static as_status pick(struct batch_reading *b,
                      bool (*wants)(const struct batch_reading *b, size_t i), struct picked *ret,
                      struct as_err *err)
{
    ret->of = arena_alloc(b->a, b->n + 1, sizeof *ret->of);
    if (!ret->of)
        return as_fail_nomem(err);
    arrays_open(&ret->x);
    for (size_t i = 0; i < b->n; i++) {
        if (!is_open(b, i) || !wants(b, i))
            continue;
        array_i64(&ret->x.c[0], b->facts[i].holder.sweep_key);
        array_i64(&ret->x.c[1], b->asks[i].ref.number);
        array_i64(&ret->x.c[2], b->facts[i].attempt);
        array_i64(&ret->x.c[3], b->asks[i].wants_step);
        ret->of[ret->n++] = i;
    }
    return arrays_close(&ret->x, err);
}

static void picked_done(struct picked *p)
{
    arrays_done(&p->x);
}

static as_status send_facts(struct batch_reading *b,
                            bool (*wants)(const struct batch_reading *b, size_t i),
                            struct picked *of, struct result *ret, struct as_err *err)
{
    as_status st = pick(b, wants, of, err);
    if (st != AS_OK || of->n == 0)
        return st;
    return tx_send(b->t, &stmts[BATCH_FACTS],
                   ARGS(arg_array(&of->x, 0), arg_array(&of->x, 1), arg_array(&of->x, 2),
                        arg_array(&of->x, 3)),
                   ret, err);
}

static as_status take_facts(struct batch_reading *b, const struct picked *of,
                            const struct result *r, struct as_err *err)
{
    as_status st = AS_OK;
    for (int k = 0; k < r->rows && st == AS_OK; k++) {
        struct reader rd;
        reader_init(&rd, r, k, b->a);
        struct batch_fact *f = &b->facts[of->of[read_i64(&rd)]];
        f->reported = read_str(&rd);
        f->metrics = read_str(&rd);
        f->latest_step = read_null(&rd) ? -1 : read_i64(&rd);
        st = reader_check(&rd, err);
    }
    return st;
}

static bool is_end(const struct batch_reading *b, size_t i)
{
    return b->asks[i].ends;
}

/* The facts of ends are asked with the locks, in one round trip: each statement sees what was
 * committed when it begins, so they are read with the rows locked. */
static as_status lock_trials(struct batch_reading *b, struct as_err *err)
{
    struct trial_key *keys = arena_alloc(b->a, b->n + 1, sizeof *keys);
    struct trial_head *heads = arena_alloc(b->a, b->n + 1, sizeof *heads);
    bool *locked = arena_alloc(b->a, b->n + 1, sizeof *locked);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of); /* the key of each member */
    AS_AUTO(picked_done) struct picked ends = {0};
    RESULT_AUTO trials = {0}, facts = {0};
    size_t n = 0;
    if (!keys || !heads || !locked || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        const struct trial_key key = {b->facts[i].holder.sweep_key, b->asks[i].ref.number};
        of[i] = SIZE_MAX;
        if (!is_open(b, i))
            continue;
        if (n == 0 || keys[n - 1].sweep_key != key.sweep_key || keys[n - 1].number != key.number)
            keys[n++] = key;
        of[i] = n - 1;
    }
    if (n == 0)
        return AS_OK;
    as_status st = trial_lock_send(b->t, keys, n, b->is_patient, &trials, err);
    if (st == AS_OK)
        st = send_facts(b, is_end, &ends, &facts, err);
    if (st == AS_OK)
        st = tx_wait(b->t, err);
    if (st == AS_OK)
        st = trial_lock_read(&trials, b->a, n, heads, locked, err);
    for (size_t i = 0; i < b->n && st == AS_OK; i++) {
        if (of[i] == SIZE_MAX)
            continue;
        b->facts[i].is_busy = !locked[of[i]];
        if (locked[of[i]])
            b->facts[i].trial = heads[of[i]];
    }
    return st == AS_OK ? take_facts(b, &ends, &facts, err) : st;
}

/* The boards of the sweeps in which a rung may be reached. */
static as_status open_boards(struct batch_reading *b, struct as_err *err)
{
    struct rung_opening *list = arena_alloc(b->a, b->n + 1, sizeof *list);
    struct sweep_locked **of = arena_alloc(b->a, b->n + 1, sizeof(struct sweep_locked *));
    size_t n = 0;
    if (!list || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) { /* in the order of sweeps */
        struct batch_fact *f = &b->facts[b->order[j]];
        if (!is_open(b, b->order[j]) || !f->sweep || !is_near(b, b->order[j]) ||
            (n > 0 && of[n - 1] == f->sweep))
            continue;
        of[n] = f->sweep;
        list[n++] = (struct rung_opening){.sweep_key = f->sweep->head.key,
                                          .finish_seq = f->sweep->head.finish_seq,
                                          .limits_steps = f->sweep->head.limits_steps};
    }
    as_status st = n > 0 ? store_rung_open(b->t, b->a, list, n, err) : AS_OK;
    for (size_t k = 0; k < n && st == AS_OK; k++)
        of[k]->board = list[k].board;
    return st;
}

static as_status read_stored(struct batch_reading *b, struct as_err *err)
{
    struct rung_points *list = arena_alloc(b->a, b->n + 1, sizeof *list);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!list || !of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_fact *f = &b->facts[i];
        bool ends = b->asks[i].ends;
        bool looks = ends ? rung_is_past(&f->holder.near) : is_near(b, i);
        if (!is_open(b, i) || !f->sweep || !looks)
            continue;
        of[n] = i;
        list[n++] = (struct rung_points){.board = f->sweep->board,
                                         .sweep_key = f->holder.sweep_key,
                                         .number = b->asks[i].ref.number,
                                         .rung = f->trial.at.rung,
                                         .points = b->asks[i].points,
                                         .n = ends ? 0 : b->asks[i].n_points,
                                         .every = ends};
    }
    as_status st = n > 0 ? store_rung_stored(b->t, b->a, list, n, err) : AS_OK;
    for (size_t k = 0; k < n && st == AS_OK; k++) {
        b->facts[of[k]].stored = list[k].stored;
        b->facts[of[k]].n_stored = list[k].n_stored;
    }
    return st;
}

static as_status share_gangs(struct batch_reading *b, struct as_err *err)
{
    struct gang_fence *fences = arena_alloc(b->a, b->n + 1, sizeof *fences);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!fences || !of)
        return as_fail_nomem(err);
    for (size_t j = 0; j < b->n; j++) {
        size_t i = b->order[j];
        const struct trial_head *x = &b->facts[i].trial;
        if (!is_open(b, i) || !x->gang || x->state != TRIAL_RUNNING)
            continue;
        of[n] = i;
        fences[n++].key = (struct gang_key){x->sweep_key, x->number, x->attempt};
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_gang_fence_many(b->t, fences, n, b->is_patient, err);
    for (size_t k = 0; k < n && st == AS_OK; k++) {
        struct batch_fact *f = &b->facts[of[k]];
        f->is_busy = !fences[k].is_held;
        f->epoch = fences[k].epoch;
        f->leader = fences[k].leader;
    }
    return st;
}

/* What was reported of a trial that waits again is only known to be needed when its row is read. */
static bool is_queued_report(const struct batch_reading *b, size_t i)
{
    return !b->asks[i].ends && b->facts[i].trial.state == TRIAL_QUEUED;
}

static as_status read_queued(struct batch_reading *b, struct as_err *err)
{
    AS_AUTO(picked_done) struct picked of = {0};
    RESULT_AUTO r = {0};
    as_status st = send_facts(b, is_queued_report, &of, &r, err);
    if (st == AS_OK && of.n > 0)
        st = tx_wait(b->t, err);
    return st == AS_OK ? take_facts(b, &of, &r, err) : st;
}

/* The values of ends that were reported before, against what is recorded. */
static as_status compare_repeats(struct batch_reading *b, struct as_err *err)
{
    struct trial_points *sets = arena_alloc(b->a, b->n + 1, sizeof *sets);
    struct measured_other *others = arena_alloc(b->a, b->n + 1, sizeof *others);
    size_t *of = arena_alloc(b->a, b->n + 1, sizeof *of);
    size_t n = 0;
    if (!sets || !others || !of)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++) {
        const struct batch_fact *f = &b->facts[i];
        if (!is_open(b, i) || !f->reported || !b->asks[i].ends || b->asks[i].n_points == 0)
            continue;
        of[n] = i;
        sets[n++] = (struct trial_points){.sweep_key = f->holder.sweep_key,
                                          .number = b->asks[i].ref.number,
                                          .attempt = f->attempt,
                                          .points = b->asks[i].points,
                                          .n = b->asks[i].n_points};
    }
    if (n == 0)
        return AS_OK;
    as_status st = store_measurement_other_many(b->t, sets, n, others, err);
    for (size_t k = 0; k < n && st == AS_OK; k++)
        b->facts[of[k]].other = others[k];
    return st;
}

as_status batch_read(struct tx *t, struct arena *a, const struct batch_ask *asks, size_t n,
                     bool is_patient, struct batch_fact *ret, struct as_err *err)
{
    struct batch_reading b = {
        .t = t, .a = a, .asks = asks, .facts = ret, .n = n, .is_patient = is_patient};
    static as_status (*const steps[])(struct batch_reading * b, struct as_err * err) = {
        batch_find,  lock_sweeps,     lock_trials, share_gangs,
        read_queued, compare_repeats, open_boards, read_stored,
    };
    as_status st = AS_OK;
    for (size_t k = 0; k < AS_ARRAY_LEN(steps) && st == AS_OK; k++)
        st = steps[k](&b, err);
    return st;
}
