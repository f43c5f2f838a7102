/* Which rungs a report reaches, and what follows.
 *
 * A report is looked at step by step. A rung is reached when every metric that is compared has a
 * value at its step: from this report, from one before it, or stored. A rung that was missed is
 * passed over when these metrics are past it, so that not every later report has to hold the
 * sweep. */
#include "scheduler/lifecycle/rungs.h"

#include <math.h>

#include "base/number.h"
#include "base/str.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/fork_store.h"
#include "scheduler/store/rung_board_store.h"
#include "scheduler/store/rung_report_store.h"
#include "search/stopping/stop_warning.h"

/* ---- the plan ---- */

static const struct measurement *find_value(const struct rung_report *r, const char *metric,
                                            int64_t step)
{
    const struct measurement *p = measurement_at(r->points, r->n, metric, step);
    return p ? p : measurement_at(r->stored, r->n_stored, metric, step);
}

/* The values at a step. False: one that is compared is not there. */
static bool gather(const struct rung_report *r, int64_t step, struct rung_result *ret)
{
    const struct rung_board *b = r->board;
    ret->step = step;
    ret->feasible = true;
    for (size_t i = 0; i < SEARCH_MAX_OBJECTIVES; i++)
        ret->values[i] = NAN;
    for (size_t i = 0; i < b->n_metrics; i++) {
        const struct measurement *p = find_value(r, b->metrics[i], step);
        if (!p && rung_board_compares(b, i))
            return false;
        if (p)
            ret->values[i] = p->value;
    }
    for (size_t i = 0; i < b->n_outcomes; i++) {
        const struct sweep_outcome *o = &b->outcomes[i];
        const struct measurement *p = find_value(r, o->metric, step);
        if (p && !(p->value >= o->min && p->value <= o->max))
            ret->feasible = false;
    }
    return true;
}

/* With patience the built-in trainer repeats its best report one step after its end, and says of
 * which step the values are (decision 2003). They are no result of the step at which they stand. */
static bool is_repeat(const struct rung_report *r, int64_t step)
{
    return r->board->repeats && find_value(r, "best_step", step);
}

/* Room for one more element. */
static as_status grow(struct arena *a, void **rows, size_t n, size_t *cap, size_t size,
                      struct as_err *err)
{
    if (n < *cap)
        return AS_OK;
    size_t more = *cap ? 2 * *cap : 8;
    char *grown = arena_alloc(a, more, size);
    if (!grown)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n * size; i++)
        grown[i] = ((const char *)*rows)[i];
    *rows = grown;
    *cap = more;
    return AS_OK;
}

static as_status add_result(struct arena *a, struct rung_planned *p, const struct rung_new *row,
                            struct as_err *err)
{
    void *rows = p->changes.results;
    as_status st = grow(a, &rows, p->changes.n_results, &p->cap_results, sizeof *row, err);
    if (st != AS_OK)
        return st;
    p->changes.results = rows;
    p->changes.results[p->changes.n_results++] = *row;
    return AS_OK;
}

static as_status add_promotion(struct arena *a, struct rung_planned *p, const struct sweep_head *s,
                               const struct rung_promotion *promotion, struct as_err *err)
{
    struct rung_promoted row = {.sweep_key = s->key,
                                .sweep = s->id,
                                .promotion = *promotion,
                                .reason = arena_printf(a, "promoted: %s", promotion->reason)};
    void *rows = p->changes.promotions;
    if (!row.reason)
        return as_fail_nomem(err);
    as_status st = grow(a, &rows, p->changes.n_promotions, &p->cap_promotions, sizeof row, err);
    if (st != AS_OK)
        return st;
    p->changes.promotions = rows;
    p->changes.promotions[p->changes.n_promotions++] = row;
    return AS_OK;
}

/* A fork of the parent takes the place of the trial, as a queued trial with the next number. */
static as_status add_fork(struct arena *a, const struct rung_report *r,
                          const struct rung_result *now, int64_t parent, struct rung_planned *p,
                          struct as_err *err)
{
    struct sweep_head *s = r->sweep;
    const struct fork_new row = {.sweep_key = s->key,
                                 .sweep = s->id,
                                 .number = s->counts.total,
                                 .parent = parent,
                                 .replaced = r->trial->number,
                                 .step = now->step,
                                 .next = now->rung + 1};
    void *rows = p->changes.forks;
    as_status st = grow(a, &rows, p->changes.n_forks, &p->cap_forks, sizeof row, err);
    if (st != AS_OK)
        return st;
    p->changes.forks = rows;
    p->changes.forks[p->changes.n_forks++] = row;
    s->counts.total++;
    s->counts.by_state[TRIAL_QUEUED]++;
    s->planned++;
    s->forks_left--;
    return AS_OK;
}

/* The trial may go on: take the steps to its next rung from what limits.max_steps leaves. If that
 * is less, the trial ends here. The rule's decision stays what it is, so that a replay makes it
 * again. */
static as_status spend(struct arena *a, struct rung_board *b, const struct rung_result *now,
                       struct rung_place *at, struct as_err *err)
{
    if (b->steps_left == INT64_MAX || now->rung + 1 >= b->spec.n_rungs)
        return AS_OK;
    int64_t need = as_max_i64(0, b->spec.steps[now->rung + 1] - now->step);
    if (need <= b->steps_left) {
        b->steps_left -= need;
        return AS_OK;
    }
    at->decision = DECIDED_PRUNE;
    at->reason = arena_printf(a, "max_steps leaves %lld steps: its next rung is %lld away",
                              (long long)as_max_i64(0, b->steps_left), (long long)need);
    return at->reason ? AS_OK : as_fail_nomem(err);
}

/* The trial reached this rung. */
static as_status reach(struct arena *a, const struct rung_report *r, struct rung_result *now,
                       struct rung_place *at, int64_t *seq, struct rung_planned *p,
                       struct as_err *err)
{
    static const trial_decision decisions[] = {
        [STOP_GO_ON] = DECIDED_NOTHING, [STOP_PRUNE] = DECIDED_PRUNE, [STOP_PAUSE] = DECIDED_PAUSE};
    struct rung_board *b = r->board;
    struct rung_step step;
    int64_t place = ++*seq;
    const struct rung_arrival arrival = {
        .result = *now,
        .ends = r->ends,
        .successor = r->sweep->forks_left > 0 ? r->sweep->counts.total : -1};
    as_status st = rung_order_reach(b->index, a, &arrival, seq, &step, err);
    if (st != AS_OK)
        return st;
    now->seq = (uint64_t)place;
    now->decision = step.verdict;
    *at = (struct rung_place){.rung = now->rung + 1,
                              .decision = decisions[step.verdict],
                              .reason = step.verdict == STOP_GO_ON ? NULL : step.reason};
    if (step.verdict == STOP_GO_ON && !r->ends && (st = spend(a, b, now, at, err)) != AS_OK)
        return st;
    const struct rung_new row = {.sweep_key = r->sweep->key,
                                 .sweep = r->sweep->id,
                                 .number = r->trial->number,
                                 .attempt = r->trial->attempt,
                                 .next = at->rung,
                                 .is_result = true,
                                 .told = at->decision,
                                 .told_why = at->reason,
                                 .result = *now,
                                 .n_objectives = b->n_metrics,
                                 .rank = step.rank,
                                 .of = step.of,
                                 .reason = step.reason,
                                 .value = now->values[b->spec.has_metric ? b->spec.metric : 0]};
    st = add_result(a, p, &row, err);
    if (st == AS_OK && step.parent >= 0)
        st = add_fork(a, r, now, step.parent, p, err);
    for (size_t i = 0; i < step.n_promotions && st == AS_OK; i++)
        st = add_promotion(a, p, r->sweep, &step.promotions[i], err);
    b->seq = *seq;
    return st;
}

/* The latest step of the report that every metric which is compared has reached; -1: one has no
 * point. Points of other metrics say nothing: a program may report a step's losses after it has
 * begun the next step, and its metrics line by line. */
static int64_t latest_compared(const struct rung_report *r)
{
    const struct rung_board *b = r->board;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < b->n_metrics; i++) {
        int64_t latest = -1;
        for (size_t k = 0; k < r->n; k++)
            if (r->points[k].step > latest && as_streq(r->points[k].metric, b->metrics[i]))
                latest = r->points[k].step;
        least = rung_board_compares(b, i) && latest < least ? latest : least;
    }
    return least;
}

/* Pass over the rungs that the trial has missed. */
static as_status pass_missed(struct arena *a, const struct rung_report *r, struct rung_place *at,
                             struct rung_planned *p, struct as_err *err)
{
    const struct stop_spec *spec = &r->board->spec;
    int64_t next = at->rung, latest = latest_compared(r);
    while (next + 1 < (int64_t)spec->n_rungs &&
           (spec->steps[next + 1] <= latest ||
            (r->was_past && next == at->rung && spec->steps[next] < latest)))
        next++;
    if (next == at->rung)
        return AS_OK;
    at->rung = next;
    return add_result(a, p,
                      &(struct rung_new){.sweep_key = r->sweep->key,
                                         .number = r->trial->number,
                                         .attempt = r->trial->attempt,
                                         .next = next},
                      err);
}

/* The rungs that an attempt has passed which was told to pause and went on before it ended: another
 * one may have nothing more to report there. Of one that goes on only those before its report. */
static as_status reach_passed(struct arena *a, const struct rung_report *r, struct rung_place *at,
                              int64_t *seq, struct rung_planned *p, struct as_err *err)
{
    const struct stop_spec *spec = &r->board->spec;
    bool looks = r->ends || (r->was_past && r->n > r->n_before);
    for (int64_t k = at->rung; looks && k < (int64_t)spec->n_rungs; k++) {
        struct rung_result now = {.number = (uint64_t)r->trial->number, .rung = (uint32_t)k};
        bool is_there = !is_repeat(r, spec->steps[k]) && gather(r, spec->steps[k], &now);
        if (!r->ends && (!is_there || spec->steps[k] >= r->points[r->n_before].step))
            return AS_OK;
        as_status st = is_there ? reach(a, r, &now, at, seq, p, err) : AS_OK;
        if (st != AS_OK || at->decision != DECIDED_NOTHING)
            return st;
    }
    return AS_OK;
}

as_status rungs_plan(struct arena *a, const struct rung_report *r, struct rung_place *at,
                     int64_t *seq, struct rung_planned *p, struct as_err *err)
{
    const struct stop_spec *spec = &r->board->spec;
    if (at->decision == DECIDED_NOTHING) {
        as_status st = reach_passed(a, r, at, seq, p, err);
        if (st != AS_OK)
            return st;
    }
    for (size_t i = r->n_before; i < r->n && at->decision == DECIDED_NOTHING; i++) {
        struct rung_result now = {.number = (uint64_t)r->trial->number};
        if (!stop_spec_rung(spec, 0, r->points[i].step, &now.rung) ||
            (int64_t)now.rung < at->rung || is_repeat(r, r->points[i].step) ||
            !gather(r, r->points[i].step, &now))
            continue;
        as_status st = reach(a, r, &now, at, seq, p, err);
        if (st != AS_OK)
            return st;
    }
    return at->decision == DECIDED_NOTHING ? pass_missed(a, r, at, p, err) : AS_OK;
}

/* ---- one report ---- */

static as_status open_board(struct tx *t, struct arena *a, const struct sweep_head *s,
                            struct rung_board **ret, struct as_err *err)
{
    struct rung_opening o = {
        .sweep_key = s->key, .finish_seq = s->finish_seq, .limits_steps = s->limits_steps};
    as_status st = store_rung_open(t, a, &o, 1, err);
    if (st == AS_OK)
        *ret = o.board;
    return st;
}

static as_status write_changes(struct tx *t, struct arena *a, const struct rung_changes *c,
                               struct as_err *err)
{
    size_t most = c->n_results + c->n_forks + c->n_promotions;
    struct event_new *events = arena_alloc(a, most + 1, sizeof *events);
    size_t n = 0;
    if (!events)
        return as_fail_nomem(err);
    as_status st = store_rung_add_many(t, c->results, c->n_results, events, &n, err);
    if (st == AS_OK)
        st = store_fork_add_many(t, a, c->forks, c->n_forks, events, &n, err);
    if (st == AS_OK)
        st = store_rung_promote_many(t, c->promotions, c->n_promotions, events, &n, err);
    return st == AS_OK && n > 0 ? store_event_add_many(t, events, n, err) : st;
}

as_status rungs_reach(struct tx *t, struct arena *a, struct sweep_head *s, struct trial_head *x,
                      const struct rung_near *near, const struct measurement *points, size_t n,
                      bool ends, struct as_err *err)
{
    struct rung_report r = {.sweep = s,
                            .trial = x,
                            .points = points,
                            .n = n,
                            .was_past = rung_is_past(near),
                            .ends = ends};
    struct rung_points look = {.sweep_key = s->key,
                               .number = x->number,
                               .rung = x->at.rung,
                               .points = points,
                               .n = n,
                               .every = ends};
    struct rung_planned p = {0};
    struct rung_place at = x->at;
    as_status st = open_board(t, a, s, &r.board, err);
    look.board = r.board;
    if (st == AS_OK && (!ends || n == 0))
        st = store_rung_stored(t, a, &look, 1, err);
    r.stored = look.stored;
    r.n_stored = look.n_stored;
    if (st == AS_OK)
        st = rungs_plan(a, &r, &at, &s->finish_seq, &p, err);
    if (st == AS_OK)
        st = write_changes(t, a, &p.changes, err);
    if (st == AS_OK)
        x->at = at;
    return st;
}

bool rungs_in_vain(const struct sweep_head *s)
{
    return s->counts.by_state[TRIAL_COMPLETED] - (s->known - s->known_failed) <= 0;
}

as_status rungs_close(struct tx *t, struct arena *a, const struct sweep_head *s, bool *ret_any,
                      struct as_err *err)
{
    struct rung_board *b = NULL;
    struct rung_promotion *rows = NULL;
    struct rung_planned p = {0};
    size_t n = 0;
    int64_t seq = s->finish_seq;
    as_status st = open_board(t, a, s, &b, err);
    if (st == AS_OK)
        st = rung_order_close(b->index, a, rungs_in_vain(s), &seq, &rows, &n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = add_promotion(a, &p, s, &rows[i], err);
    if (st == AS_OK)
        st = write_changes(t, a, &p.changes, err);
    if (st != AS_OK)
        return st;
    b->seq = seq;
    *ret_any = n > 0;
    return AS_OK;
}

/* What the first ended trial without a comparison reported of each metric that is compared. */
static as_status read_reported(struct tx *t, struct arena *a, int64_t sweep_key,
                               const struct rung_board *b, struct stop_progress *p,
                               struct as_err *err)
{
    struct stop_reported *list = arena_alloc(a, SEARCH_MAX_OBJECTIVES, sizeof *list);
    if (!list)
        return as_fail_nomem(err);
    p->reported = list;
    for (size_t i = 0; i < b->n_metrics; i++) {
        if (!rung_board_compares(b, i))
            continue;
        struct stop_reported *r = &list[p->n_metrics++];
        r->metric = b->metrics[i];
        as_status st = store_rung_reported(t, a, sweep_key, r->metric, &r->steps, &r->n, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status rungs_warning(struct tx *t, struct arena *a, int64_t sweep_key, const char **ret,
                        struct as_err *err)
{
    AS_AUTO(rung_board_freep) struct rung_board *b = NULL;
    struct rung_ended ended = {0};
    char text[STOP_WARNING_MAX];
    as_status st = store_rung_read(t, a, sweep_key, &b, err);
    if (st != AS_OK || (st = store_rung_ended(t, sweep_key, &ended, err)) != AS_OK)
        return st;
    struct stop_progress p = {.n_ended = (uint64_t)ended.n,
                              .n_with_result = (uint64_t)ended.n_with_result,
                              .n_completed = (uint64_t)ended.n_completed,
                              .furthest = ended.furthest};
    if ((st = read_reported(t, a, sweep_key, b, &p, err)) != AS_OK)
        return st;
    *ret = NULL;
    if (!stop_warning(b->index, &p, text))
        return AS_OK;
    *ret = arena_strdup(a, text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status rungs_directive(struct arena *a, const struct attempt_ref *ref,
                          const struct rung_place *at, const struct directive_row **ret,
                          struct as_err *err)
{
    *ret = NULL;
    if (at->decision == DECIDED_NOTHING)
        return AS_OK;
    struct directive_row *row = arena_alloc(a, 1, sizeof *row);
    const char *reason = arena_strdup(a, at->reason ? at->reason : "");
    const char *sweep = arena_strdup(a, ref->sweep);
    if (!row || !reason || !sweep)
        return as_fail_nomem(err);
    *row = (struct directive_row){.ref = {sweep, ref->number, ref->attempt},
                                  .reason = reason,
                                  .action = at->decision == DECIDED_PRUNE ? DIRECTIVE_PRUNE
                                                                          : DIRECTIVE_PAUSE};
    *ret = row;
    return AS_OK;
}
