/* The index of the rules follows the stored events. rung_order_reach() makes a decision and takes
 * it; where the stored one is another, the index is built again from what is stored, because
 * nothing can be taken out of it. */
#include "search/stopping/decision_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/stopping/explore.h"

struct decision_replay {
    const struct stop_spec *spec;
    const struct space *space;
    const struct stored_event *events;
    size_t n, n_compared;
    size_t next;                /* the event that is looked at first */
    struct stopping *index;     /* owned: knows the events before `next` */
    struct arena arena;         /* of one step */
    struct rung_promotion *due; /* of the latest result: those that are in their places, in the
                                   arena */
    size_t n_due, due_at;
    bool *under_way; /* by trial: it goes on, from a rung to the next one */
    size_t n_trials, n_under_way, n_completed, n_differences;
    bool is_closing; /* the event before `next` is a promotion that follows from no result */
    char why[2 * STOP_REASON_MAX + 80];
};

void decision_replay_free(struct decision_replay *r)
{
    if (!r)
        return;
    stopping_free(r->index);
    arena_done(&r->arena);
    free(r->under_way);
    free(r);
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct stored_event *)a)->result.seq;
    uint64_t y = ((const struct stored_event *)b)->result.seq;
    return x < y ? -1 : x > y;
}

static bool is_compared(const struct stored_event *e)
{
    return e->kind == STORED_RESULT || e->kind == STORED_PROMOTION;
}

/* Count what comes before the first free place. */
static as_status read_order(struct decision_replay *r, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct stored_event *e = &r->events[i];
        if (i > 0 && e->result.seq == r->events[i - 1].result.seq)
            return as_fail(err, AS_E_INVAL,
                           "trials %" PRIu64 " and %" PRIu64 " have the place %" PRIu64
                           " of the order both",
                           r->events[i - 1].result.number, e->result.number, e->result.seq);
        if (is_compared(e) && e->result.rung >= r->spec->n_rungs)
            return as_fail(err, AS_E_INVAL,
                           "trial %" PRIu64 ": found rung %u, expected one below %zu",
                           e->result.number, e->result.rung, r->spec->n_rungs);
        if (e->result.seq != i + 1)
            break;
        r->n++;
        r->n_compared += is_compared(e);
        if (e->result.number >= r->n_trials)
            r->n_trials = e->result.number + 1;
    }
    return AS_OK;
}

as_status decision_replay_create(const struct stop_spec *spec, const struct space *space,
                                 struct stored_event *events, size_t n,
                                 struct decision_replay **ret, struct as_err *err)
{
    AS_AUTO(decision_replay_freep) struct decision_replay *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    if (n > 0)
        qsort(events, n, sizeof *events, by_place);
    r->spec = spec;
    r->space = space;
    r->events = events;
    as_status st = read_order(r, n, err);
    if (st != AS_OK)
        return st;
    r->under_way = as_calloc(r->n_trials + 1, sizeof *r->under_way);
    if (!r->under_way)
        return as_fail_nomem(err);
    if ((st = stopping_create(spec, &r->index, err)) != AS_OK)
        return st;
    *ret = as_steal(r);
    return AS_OK;
}

size_t decision_replay_total(const struct decision_replay *r)
{
    return r->n_compared;
}

/* ---- what is stored ---- */

static struct rung_entry entry_of(const struct stored_event *e)
{
    static const rung_event events[] = {[STORED_RESULT] = RUNG_RESULT,
                                        [STORED_PROMOTION] = RUNG_PROMOTED,
                                        [STORED_END] = RUNG_LEFT,
                                        [STORED_DONE] = RUNG_LEFT};
    return (struct rung_entry){.event = events[e->kind], .result = e->result};
}

/* An index of the first n events. A result that repeats another one is left out, as it was when its
 * difference was found. */
static as_status build(struct decision_replay *r, size_t n, struct as_err *err)
{
    AS_AUTO(stopping_freep) struct stopping *s = NULL;
    struct as_err why = {0};
    as_status st = stopping_create(r->spec, &s, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        const struct rung_entry e = entry_of(&r->events[i]);
        if ((st = rung_order_apply(s, &e, &why)) == AS_E_INTERNAL)
            st = AS_OK;
        else if (st != AS_OK && err)
            *err = why;
    }
    if (st != AS_OK)
        return st;
    stopping_free(r->index);
    r->index = as_steal(s);
    return AS_OK;
}

static void set_under_way(struct decision_replay *r, uint64_t number, bool goes_on)
{
    r->n_under_way += goes_on - (size_t)r->under_way[number];
    r->under_way[number] = goes_on;
}

static void follow_trial(struct decision_replay *r, const struct stored_event *e)
{
    set_under_way(r, e->result.number,
                  e->kind == STORED_PROMOTION ||
                      (e->kind == STORED_RESULT && e->result.decision == STOP_GO_ON));
    r->n_completed += e->kind == STORED_DONE;
}

/* ---- comparing ---- */

/* A trial that completes goes on whatever the rule says: that end is its next event after the last
 * of these results, if the order is known so far. */
static bool completes(const struct decision_replay *r, const struct stored_event *e)
{
    if (!rung_order_is_end(e->reason))
        return false;
    for (const struct stored_event *f = e + 1; f < r->events + r->n; f++)
        if (f->result.number == e->result.number &&
            !(f->kind == STORED_RESULT && rung_order_is_end(f->reason)))
            return f->kind == STORED_DONE;
    return true;
}

/* Which of the promotions that follow from a result are stored in the next places? */
static void match_promotions(struct decision_replay *r, const struct stored_event *e,
                             const struct rung_step *step)
{
    const struct stored_event *next = e + 1, *end = r->events + r->n;
    r->due = step->promotions;
    r->due_at = r->n_due = 0;
    for (; r->n_due < step->n_promotions && next < end; r->n_due++, next++) {
        const struct rung_promotion *p = &r->due[r->n_due];
        if (next->kind == STORED_PROMOTION && next->result.number == (uint64_t)p->number &&
            next->result.rung == (uint64_t)p->rung)
            continue;
        (void)snprintf(r->why, sizeof r->why,
                       "again trial %" PRId64 " is promoted at rung %" PRId64 " after it (%s)",
                       p->number, p->rung, p->reason);
        return;
    }
}

static void compare_result(struct decision_replay *r, const struct stored_event *e,
                           const struct rung_step *step)
{
    match_promotions(r, e, step);
    if (step->verdict != e->result.decision)
        (void)snprintf(r->why, sizeof r->why, "stored %s, again %s (%s)",
                       stop_verdict_words[e->result.decision], stop_verdict_words[step->verdict],
                       step->reason);
    else if ((uint64_t)step->rank != e->rank || (uint64_t)step->of != e->of)
        (void)snprintf(r->why, sizeof r->why,
                       "stored rank %" PRIu64 " of %" PRIu64 ", again %" PRId64 " of %" PRId64,
                       e->rank, e->of, step->rank, step->of);
    else if (strcmp(step->reason, e->reason) != 0)
        (void)snprintf(r->why, sizeof r->why, "stored '%.150s', again '%.150s'", e->reason,
                       step->reason);
}

/* The fork that took the trial's place; nothing else differs. */
static as_status compare_fork(struct decision_replay *r, const struct stored_event *e,
                              const struct rung_step *step, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    const struct stored_fork *f = e->fork;
    if (!f) {
        (void)snprintf(r->why, sizeof r->why, "no trial is stored that took its place");
        return AS_OK;
    }
    if (f->parent != (uint64_t)step->parent || f->step != e->result.step) {
        (void)snprintf(r->why, sizeof r->why,
                       "stored trial %" PRIu64 " from trial %" PRIu64 " at step %" PRId64
                       ", again from trial %" PRId64 " at step %" PRId64,
                       f->number, f->parent, f->step, step->parent, e->result.step);
        return AS_OK;
    }
    as_status st =
        explore(r->space, &r->spec->pbt, r->spec->seed, f->number, f->parent_config, &c, err);
    if (st == AS_OK && !config_equal(r->space, c, f->config))
        (void)snprintf(r->why, sizeof r->why,
                       "trial %" PRIu64 ", which took its place, has other parameters than those "
                       "that follow from trial %" PRIu64,
                       f->number, f->parent);
    return st;
}

/* The number that its fork had, or would have. */
static int64_t successor_of(const struct decision_replay *r, const struct stored_event *e)
{
    return e->fork                         ? (int64_t)e->fork->number
           : rung_order_is_full(e->reason) ? -1
                                           : (int64_t)r->n_trials;
}

static as_status decide_again(struct decision_replay *r, const struct stored_event *e,
                              struct as_err *err)
{
    int64_t seq = (int64_t)e->result.seq;
    struct rung_step step;
    struct as_err why = {0};
    arena_done(&r->arena);
    r->arena = (struct arena){0};
    const struct rung_arrival now = {
        .result = e->result, .ends = completes(r, e), .successor = successor_of(r, e)};
    as_status st = rung_order_reach(r->index, &r->arena, &now, &seq, &step, &why);
    if (st == AS_OK) {
        compare_result(r, e, &step);
        if (!r->why[0] && step.parent >= 0)
            st = compare_fork(r, e, &step, &why);
    } else if (st == AS_E_INTERNAL) {
        (void)snprintf(r->why, sizeof r->why, "%s", why.msg);
        st = AS_OK;
    }
    if (st != AS_OK) {
        if (err)
            *err = why;
        return st;
    }
    return r->why[0] ? build(r, (size_t)(e - r->events) + 1, err) : AS_OK;
}

/* A promotion that follows from no result. One closing may promote several, in places that follow
 * each other: those before it are under way, too. */
static void close_again(struct decision_replay *r, const struct stored_event *e,
                        struct stop_promotion *p)
{
    bool any = stopping_promote(
        r->index, r->is_closing || r->n_completed > 0 ? STOP_CLOSING : STOP_CLOSING_IN_VAIN, p);
    if (r->n_under_way > 0 && !r->is_closing)
        (void)snprintf(r->why, sizeof r->why,
                       "stored a promotion, and %zu trials were on their way to a rung",
                       r->n_under_way);
    else if (!any)
        (void)snprintf(r->why, sizeof r->why, "stored a promotion, again none");
    else if (p->number != e->result.number || p->rung != e->result.rung)
        (void)snprintf(r->why, sizeof r->why,
                       "stored a promotion, again trial %" PRIu64 " at rung %u is promoted (%s)",
                       p->number, p->rung, p->reason);
    r->is_closing = true;
}

static void promote_again(struct decision_replay *r, const struct stored_event *e)
{
    struct stop_promotion p = {0};
    const char *reason = p.reason;
    if (r->due_at < r->n_due)
        reason = r->due[r->due_at++].reason;
    else
        close_again(r, e, &p);
    if (!r->why[0] && e->reason && strcmp(reason, e->reason) != 0)
        (void)snprintf(r->why, sizeof r->why, "stored '%.150s', again '%.150s'", e->reason, reason);
}

static as_status compare(struct decision_replay *r, const struct stored_event *e,
                         struct as_err *err)
{
    const struct rung_entry entry = entry_of(e);
    r->why[0] = '\0';
    if (e->kind == STORED_RESULT) {
        r->is_closing = false;
        return decide_again(r, e, err);
    }
    if (e->kind == STORED_PROMOTION)
        promote_again(r, e);
    else
        r->is_closing = false;
    return rung_order_apply(r->index, &entry, err);
}

as_status decision_replay_next(struct decision_replay *r, struct decision_step *ret,
                               struct as_err *err)
{
    while (r->next < r->n && r->n_differences < DECISION_REPLAY_DIFFERENCES) {
        const struct stored_event *e = &r->events[r->next];
        as_status st = compare(r, e, err);
        if (st != AS_OK)
            return st;
        follow_trial(r, e);
        r->next++;
        if (!is_compared(e))
            continue;
        r->n_differences += r->why[0] != '\0';
        *ret = (struct decision_step){
            .stored = e, .is_same = !r->why[0], .why = r->why[0] ? r->why : NULL};
        return AS_OK;
    }
    return AS_E_EXHAUSTED;
}
