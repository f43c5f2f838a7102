/* The plan of a batch.
 *
 * The rules are those of attempts.c and asks.c, applied to rows that were read at once
 * (lifecycle/attempt_rules.h, feasibility.h, transition.h). A member that is refused gets its
 * answer here, before anything is written.
 *
 * Ends of one sweep follow each other: each takes the next number in the order of ends, and is
 * judged by the counts that the ends before it leave. An end that also ends its sweep, and those
 * after it, run alone: the end of a sweep touches many other rows.
 *
 * Rung results and ends of a sweep have one order, which this file gives out. Members of a trial
 * follow each other: what a report decides holds for the end after it, and a promotion of a trial
 * whose attempt ends in the same batch too.
 *
 * Left to run alone, because they are rare: ends of gangs; final values at a step that is not after
 * the latest one; a seat that does not exist. */
#include "scheduler/commit/batch_plan.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "scheduler/lifecycle/attempt_rules.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/lifecycle/transition.h"

#define FINAL_METRICS_MAX 64 /* more final values than this run alone */

/* A sweep while its members are planned. */
struct sweep_progress {
    struct sweep_locked *row; /* head: with the counts and the order after the members so far */
    bool is_ending;           /* an end would end the sweep too */
};

struct planning {
    struct arena *a;
    struct batch_changes *changes;
    struct rung_planned rungs; /* their changes go to `changes` at the end */
    struct sweep_progress *sweeps;
    size_t n_sweeps;
};

/* One member that is being decided. */
struct deciding {
    struct planning *p;
    struct commit_member *const *members; /* of the batch, with the decisions before this one */
    const struct batch_decision *decisions;
    size_t place;
    const struct measurement *earlier; /* points of members of its trial that come before it */
    size_t n_earlier;
    const struct measurement *latest; /* of an end: of each metric that they or it measure */
    size_t n_latest;
    struct commit_member *m;
    const struct batch_fact *f;
    struct trial_head trial; /* of the fact, after the members before this one */
    struct attempt_ref ref;  /* with the attempt that is meant */
    struct batch_decision *d;
    struct as_err *err; /* of the member */
};

struct batch_ask batch_ask_of(const struct commit_member *m)
{
    struct batch_ask ask = {.ref = m->ref,
                            .client = m->by.client,
                            .token = m->token,
                            .has_seat = m->by.has_seat,
                            .seat = m->by.seat,
                            .ends = m->kind == COMMIT_END,
                            .extends = m->kind == COMMIT_RECORD && m->by.client};
    if (m->kind == COMMIT_RECORD) {
        ask.points = m->in.report.points;
        ask.n_points = m->in.report.n_points;
    }
    if (ask.ends) {
        ask.points = m->in.end.metrics;
        ask.n_points = m->in.end.n_metrics;
        ask.wants_step = ask.n_points > 0 || m->follows;
    }
    return ask;
}

/* ---- the request, the writer, the fence ---- */

static as_status check_request(const struct commit_member *m, struct as_err *err)
{
    if (m->kind == COMMIT_RECORD)
        return attempt_check_report(&m->in.report, err);
    as_status st = m->by.client ? ask_check_outcome(&m->in.end, err) : AS_OK;
    return st == AS_OK ? attempt_check_completion(&m->in.end, err) : st;
}

/* The client says the trial, and perhaps the attempt. */
static as_status check_client(struct deciding *x)
{
    const struct ask_ref ask = {.sweep = x->ref.sweep,
                                .number = x->ref.number,
                                .client = x->m->by.client,
                                .attempt = x->m->ref.attempt,
                                .token = x->m->token};
    return ask_check_held(&ask, &x->trial, x->f->latest, x->f->is_anothers, false, &x->ref.attempt,
                          x->err);
}

static as_status check_writer(struct deciding *x)
{
    const struct attempt_writer *by = &x->m->by;
    as_status st = by->client ? check_client(x) : AS_OK;
    if (st == AS_OK)
        st = attempt_check_holder(&x->ref, by, &x->f->holder, x->err);
    if (st != AS_OK || !x->f->holder.gang || !by->has_seat)
        return st;
    if (!x->f->has_seat)
        x->d->fate = COMMIT_ALONE;
    return x->f->has_seat ? attempt_check_seat(&x->ref, by, x->f->seat_secret, x->err) : AS_OK;
}

static as_status check_fence(struct deciding *x)
{
    const struct trial_head *t = &x->trial;
    if (attempt_is_late(t, &x->ref))
        return x->f->reported ? attempt_stale(&x->ref, t, x->err) : AS_OK;
    if (t->attempt != x->ref.attempt || t->state != TRIAL_RUNNING)
        return attempt_stale(&x->ref, t, x->err);
    if (!t->gang)
        return AS_OK;
    as_status st = attempt_check_says_seat(&x->ref, &x->m->by, x->err);
    return st == AS_OK ? attempt_check_leader(&x->m->by, x->f->epoch, x->f->leader, x->err) : st;
}

/* ---- members of one trial ---- */

/* The place of the member that this one follows; SIZE_MAX: it follows none in this batch. */
static size_t place_before(const struct deciding *x, size_t place)
{
    const struct commit_member *m = x->members[place];
    for (size_t i = place; i > 0 && m->follows; i--) {
        const struct commit_member *p = x->members[i - 1];
        if (p == m->follows && p->ref.number == m->ref.number &&
            as_streq(p->ref.sweep, m->ref.sweep))
            return i - 1;
    }
    return SIZE_MAX;
}

/* May it be decided after those of its trial before it? */
static bool is_in_order(const struct deciding *x)
{
    size_t before = place_before(x, x->place);
    return before == SIZE_MAX || x->decisions[before].fate == COMMIT_DONE;
}

/* Collect the points that the members of the trial before this one record, in their order. */
static as_status collect_earlier(struct deciding *x)
{
    size_t n = 0;
    for (size_t i = place_before(x, x->place); i != SIZE_MAX; i = place_before(x, i))
        n += x->decisions[i].record != SIZE_MAX ? x->members[i]->in.report.n_points : 0;
    size_t k = n;
    if (n == 0)
        return AS_OK;
    struct measurement *points = arena_alloc(x->p->a, n, sizeof *points);
    if (!points)
        return as_fail_nomem(x->err);
    for (size_t i = place_before(x, x->place); i != SIZE_MAX; i = place_before(x, i)) {
        const struct attempt_report *r = &x->members[i]->in.report;
        if (x->decisions[i].record == SIZE_MAX)
            continue;
        k -= r->n_points;
        for (size_t j = 0; j < r->n_points; j++)
            points[k + j] = r->points[j];
    }
    x->earlier = points;
    x->n_earlier = n;
    return AS_OK;
}

/* Are they newer than what the attempt measured? Else it is not known which is the latest. */
static bool is_earlier_new(const struct deciding *x)
{
    for (size_t i = 0; i < x->n_earlier; i++)
        if (x->earlier[i].step <= x->f->latest_step)
            return false;
    return true;
}

/* ---- rungs ---- */

/* Was the trial promoted in this batch? Then its attempt ends into the queue. */
static const struct rung_promoted *promoted_here(const struct deciding *x)
{
    const struct rung_changes *c = &x->p->rungs.changes;
    for (size_t i = 0; i < c->n_promotions; i++)
        if (c->promotions[i].sweep_key == x->trial.sweep_key &&
            c->promotions[i].promotion.number == x->trial.number)
            return &c->promotions[i];
    return NULL;
}

/* Where the trial stands now. */
static struct rung_place place_now(const struct deciding *x)
{
    size_t before = place_before(x, x->place);
    struct rung_place at = before == SIZE_MAX ? x->f->trial.at : x->decisions[before].at;
    const struct rung_promoted *p = at.decision == DECIDED_PAUSE ? promoted_here(x) : NULL;
    if (p)
        at = (struct rung_place){at.rung, DECIDED_RESUME, p->reason};
    return at;
}

/* Decide about the rungs that these points reach; `looks`: with values that were stored before. */
static as_status reach_rungs(struct deciding *x, const struct measurement *points, size_t n,
                             bool ends, bool looks)
{
    struct rung_report r = {.sweep = &x->f->sweep->head,
                            .trial = &x->trial,
                            .board = x->f->sweep->board,
                            .points = points,
                            .n = n,
                            .stored = x->f->stored,
                            .n_stored = looks ? x->f->n_stored : 0,
                            .was_past = !ends && rung_is_past(&x->f->holder.near),
                            .ends = ends};
    if (!r.board || x->trial.state != TRIAL_RUNNING || x->trial.at.decision != DECIDED_NOTHING)
        return AS_OK;
    if (x->n_earlier > 0) {
        struct measurement *all = arena_alloc(x->p->a, x->n_earlier + n, sizeof *all);
        if (!all)
            return as_fail_nomem(x->err);
        for (size_t i = 0; i < x->n_earlier; i++)
            all[i] = x->earlier[i];
        for (size_t i = 0; i < n; i++)
            all[x->n_earlier + i] = points[i];
        r.points = all;
        r.n_before = x->n_earlier;
        r.n = x->n_earlier + n;
    }
    as_status st =
        rungs_plan(x->p->a, &r, &x->trial.at, &x->f->sweep->head.finish_seq, &x->p->rungs, x->err);
    x->d->at = x->trial.at;
    return st;
}

/* ---- a report ---- */

static as_status plan_record(struct deciding *x)
{
    const struct attempt_report *r = &x->m->in.report;
    const struct trial_head *t = &x->trial;
    struct batch_changes *c = x->p->changes;
    as_status st = check_fence(x);
    if (st == AS_OK && x->f->sweep && (st = collect_earlier(x)) == AS_OK)
        st = reach_rungs(x, r->points, r->n_points, false, true);
    if (st != AS_OK || r->n_points + r->n_notes == 0)
        return st;
    x->d->record = c->n_records;
    c->records[c->n_records++] = (struct batch_record){.points = {.sweep_key = t->sweep_key,
                                                                  .number = t->number,
                                                                  .attempt = t->attempt,
                                                                  .points = r->points,
                                                                  .n = r->n_points},
                                                       .notes = {.sweep_key = t->sweep_key,
                                                                 .number = t->number,
                                                                 .notes = r->notes,
                                                                 .n = r->n_notes},
                                                       .is_report = true,
                                                       .sweep = x->ref.sweep,
                                                       .state = t->state};
    return AS_OK;
}

/* ---- an end ---- */

/* The final values with their steps. NULL: they must run alone, or memory is out (*ret_st). */
static const struct measurement *final_points(struct deciding *x, as_status *ret_st)
{
    const struct completion *c = &x->m->in.end;
    int64_t latest = x->f->latest_step;
    *ret_st = AS_OK;
    for (size_t i = 0; i < x->n_earlier; i++)
        latest = x->earlier[i].step > latest ? x->earlier[i].step : latest;
    if (c->n_metrics > FINAL_METRICS_MAX || latest == INT64_MAX)
        return NULL;
    struct measurement *points = arena_alloc(x->p->a, c->n_metrics + 1, sizeof *points);
    if (!points)
        *ret_st = as_fail_nomem(x->err);
    for (size_t i = 0; points && i < c->n_metrics; i++) {
        points[i] = c->metrics[i];
        if (points[i].step < 0)
            points[i].step = latest + 1;
        if (points[i].step <= latest)
            return NULL;
        for (size_t k = 0; k < i; k++)
            if (as_streq(points[k].metric, points[i].metric))
                return NULL;
    }
    return points;
}

/* The latest of the points of a metric; of two at a step the one that came first, which is the one
 * that is recorded. */
static void keep_latest(struct measurement *latest, size_t *n, const struct measurement *p)
{
    for (size_t i = 0; i < *n; i++) {
        if (!as_streq(latest[i].metric, p->metric))
            continue;
        if (p->step > latest[i].step)
            latest[i] = *p;
        return;
    }
    latest[(*n)++] = *p;
}

/* What the trial measured last, by the members before the end and by its final values. */
static as_status collect_latest(struct deciding *x, const struct measurement *points)
{
    size_t n_points = x->m->in.end.n_metrics;
    struct measurement *latest = arena_alloc(x->p->a, x->n_earlier + n_points + 1, sizeof *latest);
    if (!latest)
        return as_fail_nomem(x->err);
    for (size_t i = 0; i < x->n_earlier; i++)
        keep_latest(latest, &x->n_latest, &x->earlier[i]);
    for (size_t i = 0; i < n_points; i++)
        keep_latest(latest, &x->n_latest, &points[i]);
    x->latest = latest;
    return AS_OK;
}

static const struct measurement *find_latest(const struct deciding *x, const char *metric)
{
    for (size_t i = 0; i < x->n_latest; i++)
        if (as_streq(x->latest[i].metric, metric))
            return &x->latest[i];
    return NULL;
}

/* Judge the trial by its values with the final ones. */
static as_status judge(struct deciding *x, const struct trial_head *t, struct feasibility *ret)
{
    struct required_metrics w;
    JSON_AUTO metrics = NULL;
    double values[METRICS_MAX] = {t->value};
    bool has[METRICS_MAX] = {t->has_value};
    as_status st = required_metrics_of(x->p->a, &x->f->sweep->head, &w, x->err);
    if (st == AS_OK && w.n > 1 && x->f->metrics)
        st = json_parse(x->f->metrics, strlen(x->f->metrics), &metrics, x->err);
    for (size_t i = 0; i < w.n && w.n > 1 && st == AS_OK; i++) {
        const struct measurement *p = find_latest(x, w.names[i]);
        has[i] = p || json_number_get(json_object_get(metrics, w.names[i]), &values[i]);
        if (p)
            values[i] = p->value;
    }
    if (st == AS_OK)
        *ret = feasibility_of(&w, values, has);
    return st;
}

static as_status change_of(struct deciding *x, const struct trial_head *t, struct trial_change *ret)
{
    const struct completion *c = &x->m->in.end;
    bool is_kept = c->outcome == OUTCOME_TIMEOUT && x->f->sweep->head.keeps_timed_out;
    struct feasibility v;
    as_status st = attempt_change_of(x->p->a, c, ret, x->err);
    if (st != AS_OK || t->at.decision != DECIDED_NOTHING ||
        (c->outcome != OUTCOME_COMPLETED && !is_kept))
        return st;
    st = judge(x, t, &v);
    if (st != AS_OK)
        return st;
    return is_kept ? trial_judged_timeout(x->p->a, &v, ret, x->err)
                   : trial_judged(x->p->a, t, &v, ret, x->err);
}

static struct sweep_progress *progress_of(struct planning *p, struct sweep_locked *row)
{
    for (size_t i = p->n_sweeps; i > 0; i--)
        if (p->sweeps[i - 1].row == row)
            return &p->sweeps[i - 1];
    p->sweeps[p->n_sweeps] = (struct sweep_progress){.row = row};
    return &p->sweeps[p->n_sweeps++];
}

/* Count the end of a trial in its sweep. False: the sweep would end with it, or may. */
static bool count_end(struct sweep_progress *s, const struct trial_head *t,
                      const struct trial_plan *plan)
{
    struct sweep_head after = s->row->head;
    const struct trial_move *m = &plan->move;
    after.counts.by_state[m->from]--;
    after.counts.by_state[m->to]++;
    after.finish_seq += trial_state_is_final(m->to);
    if (m->to == TRIAL_COMPLETED && m->feasible && s->row->has_target)
        after.target_reached |=
            after.maximize ? t->value >= s->row->target : t->value <= s->row->target;
    const struct sweep_standing now = sweep_standing_of(&after);
    bool may_be_spent = after.limits_steps && after.counts.by_state[TRIAL_RUNNING] == 0;
    if (may_be_spent || sweep_end_due(after.state, &now) != SWEEP_GOES_ON)
        s->is_ending = true;
    else
        s->row->head = after;
    return !s->is_ending;
}

/* A value as PostgreSQL's to_jsonb() has it, to the last character: whole numbers without a point.
 */
static json_t *latest_json(double v)
{
    return fabs(v) < 1e15 && v == floor(v) ? json_integer((json_int_t)v) : json_number_new(v);
}

/* What the row of the trial gets: all of it is newer than what is stored. */
static as_status latest_of(struct deciding *x, const struct trial_head *t, struct trial_latest *ret)
{
    AS_AUTO(as_freep) char *text = NULL;
    *ret = (struct trial_latest){.has_value = t->has_value, .value = t->value};
    if (x->n_latest == 0)
        return AS_OK;
    JSON_AUTO metrics = json_object();
    bool has_memory = metrics != NULL;
    for (size_t i = 0; i < x->n_latest && has_memory; i++) {
        const struct measurement *p = &x->latest[i];
        ret->step = i == 0 || p->step > ret->step ? p->step : ret->step;
        has_memory = json_object_set_new(metrics, p->metric, latest_json(p->value)) == 0;
    }
    if (has_memory)
        text = json_format_ordered(metrics);
    ret->metrics = text ? arena_strdup(x->p->a, text) : NULL;
    return ret->metrics ? AS_OK : as_fail_nomem(x->err);
}

/* The points of the members before an end, and its own, leave the row of the trial to the end. */
static void leave_row(struct deciding *x, const struct trial_latest *latest)
{
    for (size_t i = place_before(x, x->place); i != SIZE_MAX; i = place_before(x, i)) {
        if (x->decisions[i].record == SIZE_MAX)
            continue;
        struct batch_record *r = &x->p->changes->records[x->decisions[i].record];
        r->points.keeps_row = true;
        r->has_value = latest->has_value;
        r->value = latest->value;
    }
}

/* The answer is the trial as it is afterwards. */
static void want_row(struct deciding *x, trial_state state)
{
    struct batch_changes *c = x->p->changes;
    x->d->state = state;
    if (x->m->is_brief)
        return;
    x->d->row = c->n_rows;
    c->rows[c->n_rows++] =
        (struct batch_row){.key = {x->trial.sweep_key, x->trial.number}, .arena = x->m->arena};
}

/* The end takes its place in the order, after the rungs that its last values reach, and those that
 * a trial that completes has passed. */
static as_status order_end(struct deciding *x, struct sweep_head *s, struct trial_plan *plan,
                           const struct measurement *points)
{
    bool is_final = trial_state_is_final(plan->move.to);
    s->finish_seq -= is_final; /* count_end() had it next */
    size_t n = x->m->in.end.n_metrics;
    as_status st = reach_rungs(x, points, n, true, false);
    if (st == AS_OK && plan->move.to == TRIAL_COMPLETED && rung_is_past(&x->f->holder.near))
        st = reach_rungs(x, points, n, true, true);
    s->finish_seq += is_final;
    if (is_final)
        plan->move.seq = s->finish_seq;
    return st;
}

/* The steps that the end of a trial that is no fork adds to those of its sweep. */
static int64_t spent_of(const struct trial_head *t, const struct trial_latest *latest)
{
    int64_t step = latest->metrics ? latest->step : t->step;
    return t->state == TRIAL_RUNNING && step > t->spent ? step - t->spent : 0;
}

static as_status write_end(struct deciding *x, const struct trial_head *t,
                           const struct trial_plan *plan, const struct measurement *points)
{
    struct batch_changes *c = x->p->changes;
    struct trial_latest latest;
    as_status st = latest_of(x, t, &latest);
    if (st != AS_OK)
        return st;
    leave_row(x, &latest);
    c->ends[c->n_ends++] = (struct batch_end){.trial = {.sweep_key = t->sweep_key,
                                                        .number = t->number,
                                                        .move = plan->move,
                                                        .latest = latest,
                                                        .spent = spent_of(t, &latest)},
                                              .attempt = plan->end,
                                              .event = plan->event,
                                              .is_plain = !t->is_fork && !t->is_known};
    if (x->m->in.end.n_metrics > 0)
        c->records[c->n_records++] = (struct batch_record){.points = {.sweep_key = t->sweep_key,
                                                                      .number = t->number,
                                                                      .attempt = t->attempt,
                                                                      .points = points,
                                                                      .n = x->m->in.end.n_metrics,
                                                                      .keeps_row = true}};
    x->d->is_end = true;
    x->d->is_late = x->trial.state == TRIAL_QUEUED;
    return AS_OK;
}

static as_status accept_end(struct deciding *x)
{
    struct trial_head t = x->trial;
    struct sweep_progress *s = progress_of(x->p, x->f->sweep);
    struct trial_change ch;
    struct trial_plan plan;
    as_status st = collect_earlier(x);
    if (st != AS_OK)
        return st;
    if (!is_earlier_new(x)) {
        x->d->fate = COMMIT_LATER;
        return AS_OK;
    }
    const struct measurement *points = final_points(x, &st);
    if (st != AS_OK)
        return st;
    const struct completion *c = &x->m->in.end;
    bool may_stop = s->row->head.stops && c->n_metrics > 0 && !attempt_is_last(c);
    if (!points || s->is_ending || may_stop) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    if ((st = collect_latest(x, points)) != AS_OK)
        return st;
    const struct measurement *value = find_latest(x, s->row->head.metric);
    t.has_value |= value != NULL;
    t.value = value ? value->value : t.value;
    if ((st = change_of(x, &t, &ch)) != AS_OK)
        return st;
    if (!attempt_end_counts(&t, &x->ref, ch.event == TRIAL_EV_COMPLETE))
        return attempt_stale(&x->ref, &t, x->err);
    st = trial_change_plan(x->p->a, &s->row->head, &t, &ch, &plan, x->err);
    if (st != AS_OK)
        return st;
    if (!plan.ends_attempt || !count_end(s, &t, &plan)) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    if ((st = order_end(x, &s->row->head, &plan, points)) == AS_OK)
        st = write_end(x, &t, &plan, points);
    if (st == AS_OK)
        want_row(x, plan.move.to);
    return st;
}

/* The same end was reported before: the answer is the same too. */
static as_status repeat_end(struct deciding *x)
{
    const struct completion *c = &x->m->in.end;
    const struct measured_other *other = &x->f->other;
    if (!as_streq(x->f->reported, attempt_outcome_words[c->outcome]))
        return attempt_stale(&x->ref, &x->trial, x->err);
    if (other->place >= 0)
        return attempt_other_value(&c->metrics[other->place], other, x->trial.state, x->err);
    want_row(x, x->trial.state);
    return AS_OK;
}

static as_status plan_end(struct deciding *x)
{
    const struct completion *c = &x->m->in.end;
    const struct trial_head *t = &x->trial;
    if (x->f->reported)
        return repeat_end(x);
    if (!attempt_end_counts(t, &x->ref, c->outcome == OUTCOME_COMPLETED))
        return attempt_stale(&x->ref, t, x->err);
    if (t->gang) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    as_status st = attempt_check_timeout(c, &x->f->sweep->head, x->err);
    if (st == AS_OK)
        st = attempt_check_told(c, t, x->err);
    return st == AS_OK ? accept_end(x) : st;
}

/* ---- the batch ---- */

static as_status decide(struct deciding *x)
{
    const struct batch_fact *f = x->f;
    as_status st = check_request(x->m, x->err);
    if (st != AS_OK)
        return st;
    if (!f->has_sweep)
        return as_fail(x->err, AS_E_NOT_FOUND, "there is no sweep '%.80s'", x->ref.sweep);
    if (f->is_busy || !is_in_order(x)) {
        x->d->fate = COMMIT_LATER;
        return AS_OK;
    }
    if (!f->has_trial)
        return as_fail(x->err, AS_E_NOT_FOUND, "the sweep has no trial %lld",
                       (long long)x->ref.number);
    x->trial.at = x->d->at = place_now(x);
    st = check_writer(x);
    if (st != AS_OK || x->d->fate != COMMIT_DONE)
        return st;
    return x->m->kind == COMMIT_RECORD ? plan_record(x) : plan_end(x);
}

static as_status planning_init(struct planning *p, size_t n, struct as_err *err)
{
    struct batch_changes *c = p->changes;
    *c = (struct batch_changes){.records = arena_alloc(p->a, n + 1, sizeof *c->records),
                                .ends = arena_alloc(p->a, n + 1, sizeof *c->ends),
                                .rows = arena_alloc(p->a, n + 1, sizeof *c->rows)};
    p->sweeps = arena_alloc(p->a, n + 1, sizeof *p->sweeps);
    return c->records && c->ends && c->rows && p->sweeps ? AS_OK : as_fail_nomem(err);
}

as_status batch_plan(struct arena *a, struct commit_member *const *members,
                     const struct batch_fact *facts, size_t n, struct batch_decision *ret,
                     struct batch_changes *ret_changes, struct as_err *err)
{
    struct planning p = {.a = a, .changes = ret_changes};
    as_status st = planning_init(&p, n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        struct as_err why = {0};
        ret[i] = (struct batch_decision){.record = SIZE_MAX, .row = SIZE_MAX};
        struct deciding x = {.p = &p,
                             .members = members,
                             .decisions = ret,
                             .place = i,
                             .m = members[i],
                             .f = &facts[i],
                             .trial = facts[i].trial,
                             .ref = members[i]->ref,
                             .d = &ret[i],
                             .err = &why};
        x.ref.attempt = facts[i].attempt;
        ret[i].attempt = facts[i].attempt;
        ret[i].status = decide(&x);
        if (ret[i].status == AS_OK)
            continue;
        if (ret[i].status == AS_E_NOMEM || ret[i].status == AS_E_INTERNAL)
            return as_fail(err, ret[i].status, "%s", why.msg);
        ret[i].err = arena_alloc(a, 1, sizeof why);
        if (!ret[i].err)
            return as_fail_nomem(err);
        *ret[i].err = why;
    }
    ret_changes->rungs = p.rungs.changes;
    return st;
}
