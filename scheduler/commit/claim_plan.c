/* The plan of a batch of claims.
 *
 * It repeats what claim_trials() does for one claim after another (assign/claims.c: rounds of
 * shares, sharing.h), on rows that were read once. A claim that needs anything beyond that runs
 * alone:
 * - a repeat, a runner whose epoch or secret is not current, ranks of gangs that are about;
 * - a group, or a sweep whose trials have shapes or name a data set (the built-in trainer);
 * - a sweep whose trials need cores, memory, a machine, or more GPUs than are free;
 * - a suggestion that is not ready, or cannot be made. */
#include "scheduler/commit/claim_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "scheduler/assign/drawn.h"
#include "scheduler/assign/sharing.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/suggester/prepared.h"
#include "scheduler/sweep/trial_seed.h"

#define ENDING_MAX 64 /* attempts that end; more run alone */

struct claim_side {
    const struct batch_turn *turn;
    const struct batch_source *source; /* NULL: only its turn was read */
    int64_t running, queued, left, turns, served;
    int64_t steps_room, ahead_room; /* as in batch_turn */
    size_t n_begun;                 /* queued trials that began */
    int64_t n_made, n_suggested;
    int64_t mark;
    const char *state; /* the search state that the last suggestion left */
    bool has_searched, has_begun;
};

as_status claims_plan_init(struct claims_plan *p, const struct batch_turns *turns,
                           struct commit_member *const *members, size_t n, struct as_err *err)
{
    for (size_t i = 0; i < n; i++)
        p->cap_begun += (size_t)as_min_i64(64, members[i]->in.claim->max_trials & INT64_MAX);
    p->turns = turns;
    p->sides = arena_alloc(p->a, turns->n + 1, sizeof *p->sides);
    p->decisions = arena_alloc(p->a, n + 1, sizeof *p->decisions);

    p->begun = arena_alloc(p->a, p->cap_begun + 1, sizeof *p->begun);
    p->queued = arena_alloc(p->a, p->cap_begun + 1, sizeof(struct batch_queued *));
    return p->sides && p->decisions && p->begun && p->queued ? AS_OK : as_fail_nomem(err);
}

/* Begin again: the sides as they were read. */
static void reset_sides(struct claims_plan *p)
{
    for (size_t i = 0; i < p->turns->n; i++) {
        const struct batch_turn *t = &p->turns->rows[i];
        p->sides[i] = (struct claim_side){.turn = t,
                                          .running = t->running,
                                          .queued = t->queued,
                                          .left = t->left,
                                          .steps_room = t->steps_room,
                                          .ahead_room = t->ahead_room,
                                          .turns = t->turns,
                                          .served = t->served};
    }
    p->n_begun = 0;
    p->n_learned = 0;
    p->max_turns = p->turns->max_turns;
    p->next_served = INT64_MAX / 2; /* after all turns of before */
}

/* ---- one claim ---- */

/* A claim that is being decided. */
struct claiming_one {
    struct claims_plan *p;
    const struct claim_request *req;
    const struct batch_runner *runner;
    struct claim_decision *d;
    bool is_rough;                               /* count trials, and make none */
    struct claim_side *list[TURN_LIST_MAX];      /* sweeps with work, in the order of turns */
    struct claimable_sweep order[TURN_LIST_MAX]; /* the same, for share_of_first() */
    size_t n_list;
    int64_t want, gpus;
};

/* May this claim be decided here? */
static bool is_simple(const struct claiming_one *x)
{
    const struct claim_request *req = x->req;
    const struct batch_runner *r = x->runner;
    const struct batch_turns *t = x->p->turns;
    const struct runner_id id = {req->runner, req->epoch, req->secret};
    const struct runner_head head = {.epoch = r->epoch, .secret = r->secret};
    if (!r->state || r->epoch != req->epoch || !as_streq(r->state, "live") ||
        runner_id_check(&id, &head, NULL) != AS_OK)
        return false;
    return !r->is_repeated && !req->groups.fit.group && req->n_ending <= ENDING_MAX &&
           req->n_ending_seats == 0 && !t->has_waits && (req->seats > 0) == r->takes_seats &&
           !(req->seats > 0 && (t->has_gangs || r->has_seats));
}

static int64_t ending_in(const struct batch_runner *r, int64_t key)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->n_ending; i++)
        n += r->ending[i] == key;
    return n;
}

static int64_t available(const struct claim_side *s)
{
    int64_t n = as_min_i64(s->queued + s->left, s->steps_room);
    if (s->source && s->source->row && s->source->row->head.state != SWEEP_RUNNING)
        return 0;
    return s->turn->max_concurrent > 0 ? as_min_i64(n, s->turn->max_concurrent - s->running) : n;
}

/* Does the sweep of `a` come before that of `b`? */
static bool goes_first(const struct claims_plan *p, const struct claim_side *a, int64_t a_running,
                       const struct claim_side *b, int64_t b_running)
{
    int64_t a_turns = a->turns > p->max_turns - 8 ? a->turns : p->max_turns - 8;
    int64_t b_turns = b->turns > p->max_turns - 8 ? b->turns : p->max_turns - 8;
    if (a->turn->priority != b->turn->priority)
        return a->turn->priority > b->turn->priority;
    if (a_running != b_running)
        return a_running < b_running;
    if (a_turns != b_turns)
        return a_turns < b_turns;
    return a->served != b->served ? a->served < b->served : a->turn->key < b->turn->key;
}

/* Add a sweep to the list at its place; what falls off the end had its turn last. */
static void list_insert(struct claiming_one *x, struct claim_side *s, int64_t running)
{
    size_t i = x->n_list;
    while (i > 0 && goes_first(x->p, s, running, x->list[i - 1], x->order[i - 1].running))
        i--;
    if (i == TURN_LIST_MAX)
        return;
    size_t n = x->n_list < TURN_LIST_MAX ? x->n_list++ : TURN_LIST_MAX - 1;
    memmove(&x->list[i + 1], &x->list[i], (n - i) * sizeof(struct claim_side *));
    memmove(&x->order[i + 1], &x->order[i], (n - i) * sizeof x->order[0]);
    x->list[i] = s;
    x->order[i] = (struct claimable_sweep){
        .key = s->turn->key, .priority = s->turn->priority, .running = running, .fits = true};
}

/* The sweeps with work for this runner. False: one of them needs what a batch does not decide. */
static bool list_sweeps(struct claiming_one *x)
{
    int64_t most = x->req->gpus > x->runner->gpus ? x->req->gpus : x->runner->gpus;
    for (size_t i = 0; i < x->p->turns->n; i++) {
        struct claim_side *s = &x->p->sides[i];
        const struct batch_turn *t = s->turn;
        if (available(s) <= 0 || t->gpus > most || (t->is_gang && x->req->seats == 0))
            continue;
        if (t->is_gang || t->has_needs || t->gpus > x->req->gpus)
            return false;
        list_insert(x, s, s->running - ending_in(x->runner, t->key));
    }
    return true;
}

/* The next suggestion of a sweep. COMMIT_ALONE: it is not ready, or there is none. */
static as_status make_one(struct claiming_one *x, struct claim_side *s, const struct claim_doc *doc,
                          struct batch_begun *b, struct as_err *err)
{
    const struct sweep_head *h = &s->source->row->head;
    struct claims_plan *p = x->p;
    int64_t number = h->counts.total + s->n_made;
    struct prepared prepared = {0};
    bool ready = false;
    as_status st = AS_OK;
    if (!h->learns) {
        st = draw_suggestion(p->a, doc->ref.doc, number, h->suggested + s->n_made, &b->made, NULL);
        ready = st == AS_OK;
    } else if (p->sg) {
        const struct search_place place = {.key = h->key,
                                           .number = number,
                                           .mark = s->mark,
                                           .finish_seq = h->finish_seq,
                                           .arrived_ns = x->req->arrived_ns ? x->req->arrived_ns
                                                                            : clock_mono_ns()};
        st = suggester_peek(p->sg, p->a, &place, &ready, &prepared, NULL);
        b->made = prepared_suggestion(&prepared, number);
    }
    if (st == AS_E_NOMEM)
        return as_fail_nomem(err);
    if (st != AS_OK || !ready) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    if (h->learns) {
        s->mark = prepared.mark;
        s->state = prepared.state;
        s->has_searched = true;
        p->n_learned++;
    }
    b->made.seed = trial_seed_of(h->seed, number);
    b->made.runs = true;
    b->is_made = true;
    b->attempt = 1;
    s->n_made++;
    return AS_OK;
}

/* Begin one trial of a sweep: the oldest of the queue, or the next suggestion. */
static as_status begin_one(struct claiming_one *x, struct claim_side *s, struct as_err *err)
{
    struct claims_plan *p = x->p;
    struct batch_begun *b = &p->begun[p->n_begun];
    as_status st = AS_OK;
    bool from_queue = s->queued > 0;
    if (!x->is_rough) {
        *b = (struct batch_begun){
            .sweep_key = s->turn->key, .sweep = s->source->row->head.id, .owner = &x->d->owner};
        p->queued[p->n_begun] = NULL;
        const struct claim_doc *doc = claim_docs_find(p->docs, s->turn->key);
        if (!doc || !doc->is_command || p->n_begun == p->cap_begun ||
            (from_queue && s->n_begun == s->source->n_queue)) {
            x->d->fate = COMMIT_ALONE;
            return AS_OK;
        }
        if (from_queue) {
            p->queued[p->n_begun] = &s->source->queue[s->n_begun];
            b->made.number = s->source->queue[s->n_begun].number;
            b->attempt = s->source->queue[s->n_begun].attempt + 1;
        } else {
            st = make_one(x, s, doc, b, err);
        }
    }
    if (st != AS_OK || x->d->fate != COMMIT_DONE)
        return st;
    s->n_begun += from_queue;
    s->queued -= from_queue;
    s->left -= !from_queue;
    s->steps_room -= s->steps_room < INT64_MAX;
    s->ahead_room--;
    s->running++;
    s->has_begun = true;
    p->n_begun++;
    x->d->n++;
    return AS_OK;
}

/* Give the share of the first sweep of a round. *ret_more: all of it, and there may be more. */
static as_status give_share(struct claiming_one *x, size_t i, bool *ret_more, struct as_err *err)
{
    struct claim_side *s = x->list[i];
    int64_t share = share_of_first(&x->order[i], x->n_list - i, x->want), got = 0;
    if (x->req->is_ahead)
        share = share_ahead(share, s->ahead_room, &x->want);
    *ret_more = share == 0;
    if (share == 0)
        return AS_OK;
    if (!x->is_rough && (!s->source || !s->source->row)) {
        x->d->fate = COMMIT_LATER;
        x->d->busy_key = s->turn->key;
        return AS_OK;
    }
    if (s->turn->has_shapes) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    if (s->turn->learns && ending_in(x->runner, s->turn->key) > 0) {
        x->d->awaits_ends = true;
        return AS_OK;
    }
    int64_t n = as_min_i64(share, available(s));
    n = as_min_i64(n, RUNNER_HELD_MAX - x->runner->running - (int64_t)x->d->n);
    if (s->turn->gpus > 0 && n > x->gpus / s->turn->gpus) {
        x->d->fate = COMMIT_ALONE;
        return AS_OK;
    }
    as_status st = AS_OK;
    for (; got < n && st == AS_OK && x->d->fate == COMMIT_DONE; got++)
        st = begin_one(x, s, err);
    x->want -= got;
    x->gpus -= got * s->turn->gpus;
    x->order[i].running += got;
    *ret_more = got == share;
    if (got > 0 && x->d->fate == COMMIT_DONE) {
        int64_t floor = x->p->max_turns - 8;
        s->turns = (s->turns > floor ? s->turns : floor) + got;
        s->served = x->p->next_served++;
        x->p->max_turns = s->turns > x->p->max_turns ? s->turns : x->p->max_turns;
    }
    return st;
}

/* Rounds of shares until nothing changes, as take_rounds() of assign/claims.c. */
static as_status give_rounds(struct claiming_one *x, struct as_err *err)
{
    size_t before = SIZE_MAX, had = SIZE_MAX;
    as_status st = AS_OK;
    while (x->want > 0 && x->n_list > 0 &&
           (before == SIZE_MAX || x->d->n > before || x->n_list < had)) {
        before = x->d->n;
        had = x->n_list;
        for (size_t i = 0; i < x->n_list && x->want > 0;) {
            bool more = false;
            st = give_share(x, i, &more, err);
            if (st != AS_OK || x->d->fate != COMMIT_DONE)
                return st;
            i += more;
            if (more)
                continue;
            x->n_list--;
            memmove(&x->list[i], &x->list[i + 1], (x->n_list - i) * sizeof(struct claim_side *));
            memmove(&x->order[i], &x->order[i + 1], (x->n_list - i) * sizeof x->order[0]);
        }
    }
    return st;
}

static as_status decide_claim(struct claims_plan *p, const struct commit_member *m,
                              const struct batch_runner *r, bool is_rough,
                              struct claim_decision *ret, struct as_err *err)
{
    struct claiming_one x = {
        .p = p, .req = m->in.claim, .runner = r, .d = ret, .is_rough = is_rough};
    *ret = (struct claim_decision){.fate = COMMIT_LATER, .first = p->n_begun};
    if (!r->is_there)
        return AS_OK;
    ret->fate = COMMIT_ALONE;
    if (claim_check(x.req, NULL) != AS_OK || !is_simple(&x) || !list_sweeps(&x))
        return AS_OK;
    ret->fate = COMMIT_DONE;
    ret->extends = r->is_due;
    ret->owner = (struct owner){.runner = x.req->runner,
                                .epoch = x.req->epoch,
                                .claim_id = x.req->claim_id,
                                .secret = r->secret};
    x.want = as_min_i64(r->slots - r->used, x.req->max_trials);
    x.gpus = x.req->gpus;
    return give_rounds(&x, err);
}

/* Decide all claims. One that is not decided here leaves everything as it was before it. */
static as_status decide_all(struct claims_plan *p, struct commit_member *const *members,
                            const struct batch_runner *runners, size_t n, bool is_rough,
                            struct as_err *err)
{
    struct claim_side *kept = arena_alloc(p->a, p->turns->n + 1, sizeof *kept);
    if (!kept)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const struct claims_plan before = *p;
        memcpy(kept, p->sides, p->turns->n * sizeof *kept);
        as_status st = decide_claim(p, members[i], &runners[i], is_rough, &p->decisions[i], err);
        if (st != AS_OK)
            return st;
        if (p->decisions[i].fate == COMMIT_DONE)
            continue;
        memcpy(p->sides, kept, p->turns->n * sizeof *kept);
        p->n_begun = before.n_begun;
        p->n_learned = before.n_learned;
        p->max_turns = before.max_turns;
        p->next_served = before.next_served;
        p->decisions[i].n = 0;
    }
    return AS_OK;
}

/* ---- sources ---- */

int claims_source_order(const void *pa, const void *pb)
{
    const struct batch_source *a = pa, *b = pb;
    return a->key < b->key ? -1 : a->key > b->key;
}

as_status claims_plan_sources(struct claims_plan *p, struct commit_member *const *members,
                              const struct batch_runner *runners, size_t n,
                              struct batch_source **ret, size_t *ret_n, struct as_err *err)
{
    struct batch_source *sources = arena_alloc(p->a, p->turns->n + 1, sizeof *sources);
    size_t n_sources = 0;
    if (!sources)
        return as_fail_nomem(err);
    reset_sides(p);
    as_status st = decide_all(p, members, runners, n, true, err);
    for (size_t i = 0; i < p->turns->n && st == AS_OK; i++) {
        const struct claim_side *s = &p->sides[i];
        if (s->has_begun)
            sources[n_sources++] = (struct batch_source){.key = s->turn->key,
                                                         .n_wanted = s->running - s->turn->running};
    }
    qsort(sources, n_sources, sizeof *sources, claims_source_order);
    *ret = sources;
    *ret_n = n_sources;
    return st;
}

static const struct batch_source *source_of(const struct batch_source *sources, size_t n,
                                            int64_t key)
{
    for (size_t i = 0; i < n; i++)
        if (sources[i].key == key)
            return &sources[i];
    return NULL;
}

as_status claims_plan_take(struct claims_plan *p, struct commit_member *const *members,
                           const struct batch_runner *runners, size_t n,
                           const struct batch_source *sources, size_t n_sources, struct as_err *err)
{
    reset_sides(p);
    for (size_t i = 0; i < p->turns->n; i++) {
        struct claim_side *s = &p->sides[i];
        s->source = source_of(sources, n_sources, s->turn->key);
        if (!s->source || !s->source->row)
            continue;
        const struct sweep_head *h = &s->source->row->head; /* as it is now */
        s->running = h->counts.by_state[TRIAL_RUNNING];
        s->queued = h->counts.by_state[TRIAL_QUEUED];
        s->left = h->planned - h->counts.total;
        s->steps_room = s->source->steps_room;
        s->mark = h->search_mark;
    }
    return decide_all(p, members, runners, n, false, err);
}

/* ---- changes ---- */

/* Add a sweep at its place in the order of latest turns. */
static void turned_insert(struct batch_turned *list, const struct claim_side **sides, size_t n,
                          const struct claim_side *s)
{
    size_t i = n;
    for (; i > 0 && sides[i - 1]->served > s->served; i--) {
        list[i] = list[i - 1];
        sides[i] = sides[i - 1];
    }
    sides[i] = s;
    list[i] = (struct batch_turned){s->turn->key, s->turns};
}

static as_status list_turned(const struct claims_plan *p, struct batch_claims *ret,
                             struct as_err *err)
{
    struct batch_turned *turned = arena_alloc(p->a, p->turns->n + 1, sizeof *turned);
    const struct claim_side **sides =
        arena_alloc(p->a, p->turns->n + 1, sizeof(const struct claim_side *));
    size_t n = 0;
    if (!turned || !sides)
        return as_fail_nomem(err);
    for (size_t i = 0; i < p->turns->n; i++)
        if (p->sides[i].has_begun)
            turned_insert(turned, sides, n++, &p->sides[i]);
    ret->turned = turned;
    ret->n_turned = n > 1 ? n : 0;
    return AS_OK;
}

as_status claims_plan_changes(const struct claims_plan *p, size_t n, struct batch_claims *ret,
                              struct as_err *err)
{
    const char **runners = arena_alloc(p->a, n + 1, sizeof *runners);
    struct batch_searched *searched = arena_alloc(p->a, p->turns->n + 1, sizeof *searched);
    int64_t *started = arena_alloc(p->a, p->turns->n + 1, sizeof *started);
    if (!runners || !searched || !started)
        return as_fail_nomem(err);
    *ret = (struct batch_claims){.begun = p->begun,
                                 .n_begun = p->n_begun,
                                 .runners = runners,
                                 .searched = searched,
                                 .started = started};
    for (size_t i = 0; i < n; i++)
        if (p->decisions[i].n > 0 && p->decisions[i].extends)
            runners[ret->n_runners++] = p->decisions[i].owner.runner;
    for (size_t i = 0; i < p->turns->n; i++) {
        const struct claim_side *s = &p->sides[i];
        if (s->has_searched)
            searched[ret->n_searched++] = (struct batch_searched){s->turn->key, s->mark, s->state};
        if (s->has_begun && !s->source->row->head.has_started)
            started[ret->n_started++] = s->turn->key;
    }
    return list_turned(p, ret, err);
}

const struct sweep_head *claims_plan_sweep(const struct claims_plan *p, int64_t key,
                                           const struct batch_turn **ret_turn)
{
    size_t i = 0;
    while (p->sides[i].turn->key != key)
        i++;
    *ret_turn = p->sides[i].turn;
    return &p->sides[i].source->row->head;
}
